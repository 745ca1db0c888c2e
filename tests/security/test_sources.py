"""A line table can name any file; only those of the project are opened, whatever shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from memsim.compile.cuda_source import compile_cubin
from studies.kernel_ptx import compile_cuda
from tests.assembler import needs_assembler
from tests.security.conftest import SECRET, Place, Run

TEXT = """\


extern "C" __global__ void k(float *o) {
#line 1 "NAMED"
    o[threadIdx.x * 2 % 32] = 1;
}
"""
LAUNCH = "--grid 1 --block 32 --arg 'f32[64]'"
TARGET = """\
[[targets]]
file = "k.SUFFIX"
grid = 1
block = 32
args = ["f32[64]"]
budgets = ["sectors <= 1"]
"""
FORMS = ("cu", pytest.param("ptx", marks=needs_assembler), "cubin")
FORMATS = ("text", "github", "sarif", "junit", "json", "markdown")


def kernel(named: str | Path, suffix: str = "cu") -> Path:
    """`k.cu`, or what is compiled of it, in the working folder; its one access is in the line `named:1`."""
    text, path = TEXT.replace("NAMED", str(named)), Path(f"k.{suffix}")
    if suffix == "cubin":
        path.write_bytes(compile_cubin(text).cubin)
    else:
        path.write_text(compile_cuda(text) if suffix == "ptx" else text)
    return path


def outside(place: Place, how: str) -> str:
    """A name of a file with the secret that is not the project's."""
    if how == "a link":
        Path("link.txt").symlink_to(place.secret)
        return "link.txt"
    if how == "a hidden file":
        Path(".git/config").write_text(f"{SECRET}\n")
        return ".git/config"
    return {"absolute": str(place.secret), "relative": "../elsewhere/secret.txt"}[how]


@pytest.mark.some(1)
@pytest.mark.parametrize("how", ["absolute", "relative", "a link", "a hidden file"])
def test_a_file_outside_of_the_project_is_not_shown(memsim: Run, place: Place, how: str) -> None:
    """Its row has no code; the file is named, as the code does it."""
    shown = memsim("analyze", kernel(outside(place, how)), LAUNCH, "--json")
    assert SECRET not in shown.out
    assert shown.document()["sites"][0]["source"] == ""


@pytest.mark.some(1)
@pytest.mark.parametrize("suffix", FORMS)
def test_no_form_of_code_opens_it(memsim: Run, place: Place, suffix: str) -> None:
    """Source, PTX and machine code all have line tables; one that names a file of the project is shown."""
    shown = memsim("analyze", kernel(place.secret, suffix), LAUNCH)
    assert shown.code == 0
    assert SECRET not in shown.out
    assert SECRET[:20] in memsim("analyze", kernel(place.inside, suffix), LAUNCH).out


@pytest.mark.slow
def test_the_environment_is_no_source(memsim: Run, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """`/proc/self/environ` is a regular file by its mode; not even a target at the root may name it."""
    monkeypatch.setenv("MEMSIM_TEST_TOKEN", SECRET)
    assert SECRET not in memsim("analyze", kernel("/proc/self/environ"), LAUNCH, "--json").out


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_no_format_of_check_shows_it(memsim: Run, place: Place, form: str) -> None:
    """A pull request reads them all; a line of the project is in those that have lines."""
    Path("memsim.toml").write_text(TARGET.replace("SUFFIX", "cu"))
    for named, is_shown in ((place.secret, False), (place.inside, form in ("json", "markdown", "text"))):
        kernel(named)
        done = memsim("check --no-cache --format", form)
        assert done.code == 1
        assert is_shown <= (SECRET in done.out) <= (named == place.inside)


@pytest.mark.slow
def test_no_file_that_is_written_has_it(memsim: Run, place: Place) -> None:
    """The page has whole files, the trace their texts, and the folder of a launch copies of them."""
    for named in (place.secret, place.inside):
        source = kernel(named)
        assert memsim("report", source, LAUNCH, "-o page.html").code == 0
        saves = "--save-trace t.npz --save-launch run"
        assert memsim("analyze", source, LAUNCH, saves).code == 0
        saved = [file.read_text("utf-8", "replace") for file in (Path("page.html"), *Path("run").iterdir())]
        has = [SECRET in text for text in (memsim("analyze t.npz --json").out, *saved)]
        assert has.count(True) == (3 if named == place.inside else 0)


@pytest.mark.slow
def test_a_folder_given_by_an_option_is_the_target_s(memsim: Run, place: Place) -> None:
    """-I says that a folder's files are sources."""
    shown = memsim("analyze", kernel(place.secret), LAUNCH, "-I", place.secret.parent, "--json")
    assert shown.document()["sites"][0]["source"] == SECRET


def test_a_linked_source_is_a_source(memsim: Run, place: Place) -> None:
    """Build systems link to sources; what is no source is not shown by a link to it."""
    source = place.secret.with_name("real.cu")
    source.write_text('extern "C" __global__ void k(float *o) { o[threadIdx.x] = 1; }\n')
    Path("linked.cu").symlink_to(source)
    Path("copied.cu").write_text("__global__ void k(float *o) { *o = hunter2; }\n")
    shown = memsim("analyze linked.cu", LAUNCH, "--json").document()
    assert shown["sites"][0]["source"] == source.read_text().strip()
    place.secret.write_text("__global__ void k(float *o) { *o = hunter2; }\n")
    Path("secret.cu").symlink_to(place.secret)
    for name, is_shown in (("secret.cu", False), ("copied.cu", True)):
        done = memsim(f"analyze {name} --compiler nvrtc", LAUNCH)
        done.refused("does not compile")
        assert ("hunter2" in done.err) == is_shown
