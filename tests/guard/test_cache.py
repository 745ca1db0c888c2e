"""The cache of traces: what decides a trace decides its name, and a bad file is as good as none."""

from __future__ import annotations

import dataclasses
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsim.api.kernel_file import KernelFile, _module_once
from memsim.api.loading import Module
from memsim.arch import Arch
from memsim.argument_types import ArrayArg
from memsim.compile import compile_cache
from memsim.compile.cuda_source import compile_cubin
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.kernel import Kernel
from memsim.kernels import catalog
from memsim.launch import Launch
from memsim.sass import disassemble
from memsim.sass import machine_code as sass
from memsim.store import Store, cache_folder
from memsim.targets import cache, kept_answers
from memsim.targets.analyze_targets import analyze_all, analyze_job
from memsim.targets.cache import key_of, model_version
from memsim.trace.trace import Trace
from studies.kernel_ptx import compile_cuda
from tests.assembler import needs_assembler
from tests.guard.conftest import TILE

TARGET = catalog()["transpose_xor"].job((64, 64))
OTHER = catalog()["transpose_padded"].job((64, 64))
LAUNCH = Launch((1, 1, 1), (32, 1, 1))


@pytest.fixture(autouse=True)
def version() -> str:
    """Known before: it is kept, too, by the process that needs it first."""
    return model_version()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that were traced."""
    traced: list[str] = []
    real = cache.trace_job

    def trace_job(job: Job, progress: Any, **how: Any) -> Trace:
        traced.append(job.loaded.name)
        return real(job, progress, **how)

    monkeypatch.setattr(cache, "trace_job", trace_job)
    return traced


def test_a_trace_is_made_once(tmp_path: Path, counted: list[str]) -> None:
    first = analyze_job(TARGET, tmp_path / "deep" / "cache")
    second = analyze_job(TARGET, tmp_path / "deep" / "cache")
    assert counted == ["transpose_xor"]
    assert first.to_dict() == second.to_dict()
    analyze_job(TARGET, None)
    assert len(counted) == 2


def test_nothing_is_kept_without_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSIM_CACHE_DIR", str(tmp_path))
    analyze_job(TARGET, None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-100]),
        lambda path: path.write_bytes(b"not a trace"),
        lambda path: path.write_bytes(path.read_bytes()[::-1]),
        lambda path: (path.unlink(), path.mkdir()),
        lambda path: analyze_job(
            catalog()["transpose_naive"].job((64, 64)), None
        ).trace.save(path),
    ],
)  # fmt: skip
def test_a_bad_file_is_as_good_as_none(
    tmp_path: Path, counted: list[str], spoil: Callable[[Path], object]
) -> None:
    good = analyze_job(TARGET, tmp_path)
    (path,) = tmp_path.iterdir()
    spoil(path)
    counted.clear()
    again = analyze_job(TARGET, tmp_path)
    assert counted == ["transpose_xor"]
    assert again.to_dict() == good.to_dict()
    if path.is_file():
        analyze_job(TARGET, tmp_path)
        assert counted == ["transpose_xor"]  # it was written anew


def test_a_folder_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert analyze_job(TARGET, file / "cache").to_dict() == analyze_job(TARGET, None).to_dict()


def test_no_file_is_ever_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    replace = Path.replace

    def watched(path: Path, target: Path) -> Path:
        seen.append(path.name)
        assert not Path(target).exists()
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", watched)
    analyze_job(TARGET, tmp_path)
    assert [name.endswith(".tmp") for name in seen] == [True]
    assert [path.suffix for path in tmp_path.iterdir()] == [".kept"]


# --- what the name is made of


def jobs() -> dict[str, Job]:
    """A launch, and the same launch with one thing changed."""
    args = [ArrayArg((64, 64)), np.zeros(4096, np.float32), 64, 64]
    job = dataclasses.replace(TARGET, kernel=TARGET.loaded, args=args)
    changed: dict[str, dict[str, Any]] = {
        "itself": {},
        "code": {"kernel": dataclasses.replace(job.loaded, machine=OTHER.loaded.machine)},
        "name of a kernel": {"kernel": dataclasses.replace(job.loaded, name="other")},
        "sources": {"kernel": dataclasses.replace(job.loaded, sources={"kernels/transpose_xor.cu": "//"})},
        "grid": {"launch": Launch((2, 2, 2), (32, 32, 1))},
        "block": {"launch": Launch((2, 2, 1), (32, 16, 1))},
        "shared": {"launch": Launch((2, 2, 1), (32, 32, 1), 16)},
        "blocks": {"blocks": 1},
        "shape": {"args": [ArrayArg((64, 65)), *job.args[1:]]},
        "fill": {"args": [ArrayArg((64, 64), fill="iota"), *job.args[1:]]},
        "content": {"args": [job.args[0], np.ones(4096, np.float32), 64, 64]},
        "strides": {"args": [job.args[0], np.zeros(8192, np.float32)[::2], 64, 64]},
        "scalar": {"args": [*job.args[:3], 63]},
        "type of a scalar": {"args": [*job.args[:3], 64.0]},
    }
    return {name: dataclasses.replace(job, **fields) for name, fields in changed.items()}


def test_whatever_decides_a_trace_decides_its_name() -> None:
    keys = {name: key_of(job) for name, job in jobs().items()}
    assert len(set(keys.values())) == len(keys)
    assert keys == {name: key_of(job) for name, job in jobs().items()}


def test_another_memsim_has_other_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = jobs()["itself"]
    before = key_of(job)
    package = tmp_path / "memsim" / "targets"
    package.mkdir(parents=True)
    (package / "cache.py").write_text("")
    model_version.cache_clear()
    monkeypatch.setattr(kept_answers, "__file__", str(package / "cache.py"))
    one = key_of(job)
    model_version.cache_clear()
    (package.parent / "model.py").write_text("RULE = 2")
    two = key_of(job)
    monkeypatch.undo()
    model_version.cache_clear()
    assert len({before, one, two}) == 3
    assert key_of(job) == before


@pytest.mark.slow
def test_a_comment_in_the_source_is_seen(tmp_path: Path) -> None:
    """The trace has the source's text: without it in the name, an old text would come back."""
    (tmp_path / "tile.cu").write_text(TILE)
    kernel = KernelFile(tmp_path, "tile.cu", options=("-DPAD=1",))
    target = Job(kernel, Launch((1, 1, 1), (32, 32, 1)), ("f32[1024]", "f32[1024]", "32"))
    store = tmp_path / "cache"
    assert analyze_job(target, store).sites[0].source.startswith("tile[y][x] =")
    (tmp_path / "tile.cu").write_text(TILE.replace("tile[y][x] =", "tile[y][x] = /* A */"))
    assert "/* A */" in analyze_job(dataclasses.replace(target), store).sites[0].source


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MEMSIM_CACHE_DIR", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("MEMSIM_CACHE_DIR")
    assert cache_folder().name == "memsim" or "memsim" in cache_folder().parts


# --- in parallel


@pytest.mark.slow
def test_processes_give_the_same_in_the_same_order(tmp_path: Path) -> None:
    targets = [catalog()["transpose_padded"].job((size, size)) for size in (64, 32, 96)]
    targets.insert(1, Job(KernelFile(tmp_path, "none.cu"), LAUNCH, name="bad"))
    alone, together = (list(analyze_all(targets, None, jobs)) for jobs in (1, 2))
    made = [(one.name, one.analysis and one.analysis.trace.launch) for one in together]
    assert made == [(one.name, one.launch if one.name != "bad" else None) for one in targets]
    for a, b in zip(alone, together, strict=True):
        assert (a.analysis and a.analysis.to_dict()) == (b.analysis and b.analysis.to_dict())
        assert str(a.error) == str(b.error)
    assert isinstance(together[1].error, MemsimError)
    assert "no such file" in str(together[1].error)


@pytest.mark.slow
def test_an_error_keeps_its_place_through_a_process(tmp_path: Path) -> None:
    (tmp_path / "bad.cu").write_text("__global__ void f() { nothing; }\n")
    bad = Job(KernelFile(tmp_path, "bad.cu"), LAUNCH, name="bad")
    for measured in analyze_all([bad, bad], None, 2):
        assert measured.error is not None
        assert (measured.error.file, measured.error.line, measured.error.column) == ("bad.cu", 1, 23)


class Killer(KernelFile):
    """A kernel that kills the process which loads it."""

    def load(self, arch: Arch) -> Kernel:
        os._exit(1)


@pytest.mark.slow
def test_a_process_that_dies_is_an_error() -> None:
    with pytest.raises(MemsimError, match="was killed"):
        list(analyze_all([Job(Killer(Path(), "a"), LAUNCH), Job(Killer(Path(), "b"), LAUNCH)], None, 2))


# --- compiling, too


MANY = """\
#include "pad.h"
template <int P> __global__ void k(float *o, const float *a) {
    __shared__ float s[32][32 + P + PAD];
    s[threadIdx.y][threadIdx.x] = a[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    o[threadIdx.y * 32 + threadIdx.x] = s[threadIdx.x][threadIdx.y];
}
template __global__ void k<0>(float *, const float *);
template __global__ void k<1>(float *, const float *);
template __global__ void k<2>(float *, const float *);
"""
WAYS, PADDED = [32, 1, 2], [1, 2, 1]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was compiled, disassembled and decoded."""
    done: list[str] = []
    for module, name in ((compile_cache, "compile_cubin"), (disassemble, "_run"), (sass, "read_cubin")):
        real = getattr(module, name)

        def watched(*arguments: Any, real: Any = real, name: str = name) -> Any:
            done.append(name)
            return real(*arguments)

        monkeypatch.setattr(module, name, watched)
    return done


def many(folder: Path, options: tuple[str, ...] = (), text: str = MANY, header: str = "0") -> list[Job]:
    """Three kernels of one file."""
    (folder / "k.cu").write_text(text)
    (folder / "pad.h").write_text(f"#define PAD {header}\n")
    launch, args = Launch((1, 1, 1), (32, 32, 1)), ("f32[1024]", "f32[1024]")
    kernels = [KernelFile(folder, "k.cu", f"k<{n}>", options) for n in range(3)]
    return [Job(kernel, launch, args, name=str(kernel.name)) for kernel in kernels]


def ways(jobs: list[Job], folder: Path | None) -> list[int]:
    _module_once.cache_clear()
    return [max(s.max_ways or 0 for s in one.result().sites) for one in analyze_all(jobs, folder, 2)]


@pytest.mark.slow
def test_kernels_of_one_file_are_compiled_once_and_then_never(tmp_path: Path, made: list[str]) -> None:
    store = tmp_path / "cache"
    assert ways(many(tmp_path), store) == WAYS
    assert made.count("compile_cubin") == 1
    assert made.count("read_cubin") == 1
    made.clear()
    assert ways(many(tmp_path), store) == WAYS
    assert made == []
    assert ways(many(tmp_path), None) == WAYS
    assert "compile_cubin" in made


@pytest.mark.slow
def test_another_launch_of_a_file_needs_no_compiler(tmp_path: Path, made: list[str]) -> None:
    store = tmp_path / "cache"
    ways(many(tmp_path), store)
    made.clear()
    launch = Launch((2, 1, 1), (32, 32, 1))
    other = [dataclasses.replace(job, launch=launch, blocks=1) for job in many(tmp_path)]
    assert ways(other, store) == WAYS
    assert "compile_cubin" not in made


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"text": MANY.replace("32 + P", "33 + P")}, PADDED),
        ({"header": "1"}, PADDED),
        pytest.param({"options": ("-Iinner", "-DNDEBUG")}, WAYS, marks=pytest.mark.slow),
        pytest.param({"options": ("-Iinner", "-Dk=k", "-DP=P")}, WAYS, marks=pytest.mark.slow),
        pytest.param({"text": "// a comment\n" + MANY}, WAYS, marks=pytest.mark.slow),
    ],
)
def test_whatever_is_read_is_seen(
    tmp_path: Path, made: list[str], changes: dict[str, Any], expected: list[int]
) -> None:
    store, before = tmp_path / "cache", {"options": ("-Iinner",)}
    assert ways(many(tmp_path, **before), store) == WAYS
    made.clear()
    assert ways(many(tmp_path, **{**before, **changes}), store) == expected
    assert made.count("compile_cubin") == 1


@pytest.mark.slow
def test_a_header_that_stands_in_front_of_another_is_seen(tmp_path: Path, made: list[str]) -> None:
    text, store, first = MANY.replace('"pad.h"', '"inner.h"'), tmp_path / "cache", tmp_path / "first"
    second = tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    (second / "inner.h").write_text("#define PAD 0\n")
    options = ("-Ifirst", "-Isecond")
    assert ways(many(tmp_path, options, text), store) == WAYS
    (first / "inner.h").write_text("#define PAD 1\n")
    assert ways(many(tmp_path, options, text), store) == PADDED


@pytest.mark.slow
def test_another_compiler_makes_it_anew(
    tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ways(many(tmp_path), tmp_path / "cache")
    made.clear()
    monkeypatch.setattr(compile_cache, "identity", lambda file: ["another", 1, 2])
    assert ways(many(tmp_path), tmp_path / "cache") == WAYS
    assert made.count("compile_cubin") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "unseen",
    [
        "#define WHICH <pad.h>\n#include WHICH",
        pytest.param(
            '#if __has_include("other.h")\n#define OTHER 1\n#endif\n#include "pad.h"', marks=pytest.mark.slow
        ),
        pytest.param('#include \\\n"pad.h"', marks=pytest.mark.slow),
        pytest.param('#/**/include "pad.h"', marks=pytest.mark.slow),
    ],
)
def test_where_it_is_not_known_what_is_read_nothing_is_kept(
    tmp_path: Path, made: list[str], unseen: str
) -> None:
    text, store = MANY.replace('#include "pad.h"', unseen), tmp_path / "cache"
    assert ways(many(tmp_path, ("-I.",), text), store) == WAYS
    made.clear()
    assert ways(many(tmp_path, ("-I.",), text, "1"), store) == PADDED
    assert "compile_cubin" in made


def given(folder: Path, suffix: str, name: str = "k") -> Path:
    """A file of PTX or of machine code beside the source that it names."""
    (folder / "pad.h").write_text("#define PAD 0\n")
    source = folder / "k.cu"
    source.write_text(MANY)
    compiled = folder / f"{name}{suffix}"
    if suffix == ".ptx":
        compiled.write_text(compile_cuda(source))
    else:
        compiled.write_bytes(compile_cubin(source).cubin)
    os.utime(source, (1, 1))
    os.utime(folder / "pad.h", (1, 1))
    return compiled


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [pytest.param(".ptx", marks=needs_assembler), ".cubin"])
def test_a_compiled_file_is_read_once_and_then_never(
    tmp_path: Path, counted: list[str], monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    file, store = given(tmp_path, suffix), tmp_path / "cache"
    launch, args = Launch((1, 1, 1), (32, 32, 1)), ("f32[1024]", "f32[1024]")

    def jobs() -> list[Job]:
        kernels = [KernelFile(tmp_path, file.name, f"k<{n}>") for n in range(3)]
        return [Job(kernel, launch, args, name=str(kernel.name)) for kernel in kernels]

    assert [max(s.max_ways or 0 for s in one.result().sites) for one in analyze_all(jobs(), store, 1)] == WAYS
    counted.clear()
    real = KernelFile.load
    with monkeypatch.context() as nothing:
        nothing.setattr(KernelFile, "load", lambda *_: pytest.fail("it was loaded"))
        kept = [one.result() for one in analyze_all(jobs(), store, 1)]
    assert [max(s.max_ways or 0 for s in one.sites) for one in kept] == WAYS
    assert KernelFile.load is real and not counted
    for changed in (tmp_path / "k.cu", tmp_path / "pad.h", file):  # whatever lies beside it is looked at
        changed.write_bytes(changed.read_bytes() + b"\n" * 4)
        again = analyze_job(jobs()[0], store)
        assert len(counted) == 1
        counted.clear()
        assert again.to_dict() == analyze_job(jobs()[0], None).to_dict()
        counted.clear()


@pytest.mark.slow
def test_a_source_that_appears_beside_a_compiled_file_is_seen(tmp_path: Path, counted: list[str]) -> None:
    file, store = given(tmp_path, ".cubin"), tmp_path / "cache"
    job = Job(
        KernelFile(tmp_path, file.name, "k<0>"), Launch((1, 1, 1), (32, 32, 1)), ("f32[1024]", "f32[1024]")
    )
    text = (tmp_path / "k.cu").read_bytes()
    (tmp_path / "k.cu").unlink()
    analyze_job(job, store)
    (tmp_path / "k.cu").write_bytes(text)
    counted.clear()
    analyze_job(dataclasses.replace(job), store)
    assert len(counted) == 1


class Logged(KernelFile):
    """A kernel whose file tells when it is loaded."""

    def _module(self, arch: Arch) -> Module:
        with (self.folder / f"{self.file}.log").open("a") as log:
            log.write(f"{os.getpid()}\n")
        return super()._module(arch)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "jobs"),
    [
        pytest.param(".ptx", 2, marks=needs_assembler),
        (".cu", 1),
        pytest.param(".ptx", 1, marks=needs_assembler),
        (".cubin", 1),
    ],
)
def test_a_file_is_loaded_once_for_its_kernels_by_whichever_process(
    tmp_path: Path, suffix: str, jobs: int
) -> None:
    """Also where it is not known before what a compiler reads."""
    for name in ("a", "b"):
        if suffix == ".cu":
            (tmp_path / f"{name}.cu").write_text(MANY.replace('"pad.h"', "PAD_H"))
        else:
            given(tmp_path, suffix, name)
    (tmp_path / "pad.h").write_text("#define PAD 0\n")
    options = ("-DPAD_H=<pad.h>",) if suffix == ".cu" else ()
    launch, args = Launch((1, 1, 1), (32, 32, 1)), ("f32[1024]", "f32[1024]")
    files = [f"{name}{suffix}" for name in "abaabb"]
    kernels = [Logged(tmp_path, file, f"k<{n}>", options) for file, n in zip(files, (0, 0, 1, 2, 1, 2))]
    targets = [Job(kernel, launch, args) for kernel in kernels]
    found = [max(s.max_ways or 0 for s in one.result().sites) for one in analyze_all(targets, None, jobs)]
    assert found == [32, 32, 1, 2, 1, 2]
    logs = [(tmp_path / f"{name}{suffix}.log").read_text().splitlines() for name in "ab"]
    assert [len(log) for log in logs] == [1, 1]
    assert (str(os.getpid()) in logs[0]) == (jobs == 1)


def test_an_entry_holds_its_own_key(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put("one", b"1")
    store.put("two", b"2")
    assert (store.get("one"), store.get("two"), store.get("three")) == (b"1", b"2", None)
    store.path("one").replace(store.path("two"))  # whole, and another's
    assert store.get("two") is None
    store.put("one", b"1")
    entry = store.path("one").read_bytes()
    for spoiled in (entry[:-1] + b"2", entry[:-1], entry + b"1", b"", entry[:5], b"x" + entry):
        store.path("one").write_bytes(spoiled)
        assert store.get("one") is None
    store.put("one", b"1")
    assert store.get("one") == b"1"


@pytest.mark.skipif(os.name != "posix", reason="a pipe")
def test_a_pipe_in_place_of_an_entry_or_of_the_folder_is_never_waited_for(tmp_path: Path) -> None:
    store = Store(tmp_path / "cache")
    store.folder.mkdir()
    os.mkfifo(store.path("one"))
    store.put("one", b"1")
    assert store.get("one") is None
    os.mkfifo(tmp_path / "pipe")
    assert analyze_job(TARGET, tmp_path / "pipe").to_dict() == analyze_job(TARGET, None).to_dict()


def test_a_job_that_was_sent_has_the_same_key(tmp_path: Path) -> None:
    """What another process keeps is found here: what is a default there is one here."""
    random, zeros = (ArrayArg((64,), fill=fill) for fill in ("random", "zeros"))
    job = dataclasses.replace(TARGET, args=(random, zeros, *TARGET.args[2:]))
    sent = pickle.loads(pickle.dumps(job))
    assert cache.key_before(sent) == cache.key_before(job) is not None
    assert cache.key_before(dataclasses.replace(job, args=(zeros, random, *TARGET.args[2:]))) not in (
        None,
        cache.key_before(job),
    )


@pytest.mark.slow
def test_what_processes_made_is_known_before(tmp_path: Path) -> None:
    jobs = [catalog()[name].job((64, 64)) for name in ("transpose_naive", "transpose_xor")]
    assert not any(cache.is_known_before(job, tmp_path) for job in jobs)
    assert len(list(analyze_all(jobs, tmp_path, 2))) == 2
    assert all(cache.is_known_before(job, tmp_path) for job in jobs)
