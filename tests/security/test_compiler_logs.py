"""Compilers print lines and names of what a source includes; those of files outside of it are left out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from memsim.compile.compilers import run_nvrtc
from memsim.compile.included_files import literal_includes
from memsim.compile.prepare import prepare
from memsim.compile.shown_sources import LEFT_OUT, shown_log
from tests.security.conftest import Place, Run

KERNEL = 'extern "C" __global__ void k(float *o) { o[threadIdx.x] = own_name; }\n'
INCLUDED = KERNEL + '#include "NAMED"\n'
AS_AN_ARGUMENT = KERNEL + '#define SAME(x) x\nSAME(\n#include "NAMED"\n)\n'


def log_of(text: str, named: Path) -> str:
    """What NVRTC says of the text, as it is shown."""
    path = Path("k.cu")
    path.write_text(text.replace("NAMED", str(named)))
    source, options, _ = prepare(path, (), None)
    made = run_nvrtc(source.text, source.true_name, options)
    assert made.ptx is None
    return shown_log(made.log, source, options, (source.true_name,))


@pytest.mark.parametrize("text", [INCLUDED, AS_AN_ARGUMENT])
def test_names_of_a_file_outside_are_not_shown(place: Place, text: str) -> None:
    """Not even where the compiler places them in the source; the source's own are."""
    log = log_of(text, place.secret)
    assert "rootpw" not in log
    assert "hunter2" not in log
    assert "error" in log
    assert 'identifier "own_name"' in log
    assert "hunter2" in log_of(text, place.inside)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc, which prints lines")
def test_lines_of_a_file_outside_are_not_shown(memsim: Run, place: Place) -> None:
    """nvcc prints the line of each error; its place stays."""
    for named in (place.secret, place.inside):
        Path("k.cu").write_text(INCLUDED.replace("NAMED", str(named)))
        done = memsim("analyze k.cu --compiler nvcc --grid 1 --block 32 --arg 'f32[32]'")
        done.refused("does not compile", f"{named.name}(1): error")
        assert ("hunter2" in done.err) == (named == place.inside)
        assert (LEFT_OUT in done.err) == (named == place.secret)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('#include "a.h"\n  # include <b>  // c\n', ["a.h", "b"]),
        ("// #include MACRO\n#define include x\n#if 1\n", []),
        ("#include MACRO\n", None),
        ('#inc\\\nlude "a.h"\n', None),
        ("#inc??/\nlude MACRO\n", None),
        ('/* c */ #include "a.h"\n', None),
        ('const char *s = "/*";\n# /* c */ include MACRO\n"*/"\n', None),
        ('%:include "a.h"\n', None),
        ("int i;\r#include MACRO\n", None),
        ("#include_next <b>\n", None),
        ('#embed "a.h"\n', None),
    ],
)
def test_no_include_escapes(text: str, names: list[str] | None) -> None:
    """One that is not written out is said to be so."""
    assert literal_includes(text) == names
