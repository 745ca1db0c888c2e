"""Builds the programs of public projects and runs them by `memsim exec`, to say how many end as they should.
Those in Python are run by the interpreter that runs this, which has what they need.

    python tools/exec_suites.py SUITE CHECKOUT RESULTS.json [--count N] [--seed S] [--part 0/2] [--gpu]

SUITE is cuda-samples, HeCBench, SGEMM_CUDA, LeetCUDA, llm.c or Rodinia (whose data tools/rodinia.py writes),
or of Python Triton (its tutorials), Gluon (likewise) or Numba (its documented examples), and CHECKOUT a
folder with that project; nothing is fetched, and nothing is written there. Programs are drawn by seed;
`--part 1/2` takes the second half of those drawn, so that what is mended on one half can be measured on the
other. With `--gpu` each runs on this machine's GPU first, and its exit code there is kept. Results are added
to those in the file. docs/exec.md shows them.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import rodinia

#: Libraries that link NVIDIA's static runtime, or draw, or need several machines.
OUT_OF_REACH = re.compile(
    r"cublas|cufft|curand|cusparse|cusolver|CUDA::npp|\bnpp|nvjpeg|[oO]penGL|OPENGL|GLUT|GLEW|glfw|[vV]ulkan|\bMPI|mpi\.h|"
    r"EGL|NvSci|cudla|FreeImage|nccl"
)
PASSED = re.compile(
    r"\bPASS(ED)?\b|Test passed|\bsuccess|Results? (are )?correct|All tests passed|\bOK\b|✅|"
    r"difference .* is 0\.0$",
    re.I | re.M,
)
FAILED = re.compile(r"\bFAIL(ED)?\b|Test failed|mismatch|incorrect|❌", re.I)
#: Of each suite in Python, its files and how the interpreter runs one.
SCRIPTS = {
    "Triton": ("python/tutorials/[0-9]*.py", "{name}.py"),
    "Gluon": ("python/tutorials/gluon/[0-9]*.py", "-m pytest -q -p no:cacheprovider {name}.py"),
    "Numba": (
        "numba_cuda/numba/cuda/tests/doc_examples/test_*.py",
        "-m unittest numba.cuda.tests.doc_examples.{name}",
    ),
}
LAUNCHED = re.compile(r"^memsim: ([\d,]+) launch", re.M)
SAID = re.compile(r"^memsim: (?!.* launch(?:es)? of \d)(.+)", re.M)


#: How often a program is looked at, in seconds, and how many times its limit it may take on a busy machine.
POLL, MOST_WALL = 0.5, 5


@dataclass(frozen=True)
class Program:
    """A program of a suite. sources: to be compiled, or none: `make` does it. arguments: of its run."""

    suite: str
    name: str
    folder: Path
    sources: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


@dataclass
class Outcome:
    """How far a program came. cause: why not further. gpu_exit_code: on a GPU, if it ran and ended there."""

    suite: str
    name: str
    arguments: str
    part: str
    built: bool = False
    launches: int = 0
    ended: bool = False
    exit_code: int | None = None
    passed: bool | None = None
    seconds: float = 0.0
    cause: str = ""
    gpu_exit_code: int | None = None


def cuda_samples(root: Path) -> Iterator[Program]:
    """Those that need no library, no graphics and no second GPU."""
    for listed in sorted(root.glob("Samples/*/*/CMakeLists.txt")):
        text = listed.read_text(errors="replace")
        made = re.search(r"add_executable\(\s*(\w+)([^)]*)\)", text)
        if (
            made is None
            or OUT_OF_REACH.search(re.sub(r"find_package|#.*", "", text))
            or "Tegra" in str(listed)
        ):
            continue
        sources = tuple(one for one in made[2].split() if one.endswith((".cu", ".cpp", ".c")))
        common = f"-I{root / 'Common'}"
        flags = ["-std=c++17", "--extended-lambda", "--expt-relaxed-constexpr", common, f"-I{listed.parent}"]
        flags += (
            ["-lcuda"] * ("cuda_driver" in text)
            + ["-lnvrtc"] * ("nvrtc" in text)
            + ["-Xcompiler", "-fopenmp"]
        )
        yield Program("cuda-samples", made[1], listed.parent, sources, tuple(flags))


def hecbench(root: Path) -> Iterator[Program]:
    """Those that check themselves and need no library, with small numbers for arguments."""
    for made in sorted(root.glob("src/*-cuda/Makefile")):
        texts = [one.read_text(errors="replace") for one in made.parent.glob("*.c*")]
        makefile = made.read_text(errors="replace").replace("\\\n", " ")
        if not any("PASS" in text for text in texts) or OUT_OF_REACH.search(makefile + "".join(texts)):
            continue
        run = re.search(r"^\s*\$\(LAUNCHER\)\s+\./\S+(.*)$", makefile, re.M)
        yield Program(
            "HeCBench", made.parent.name, made.parent, (), (), small((run[1] if run else "").split())
        )


def small(arguments: list[str]) -> tuple[str, ...]:
    """A program's own arguments with numbers a laptop can bear: the last one, how often it repeats, is 2, if
    it can be that.
    """
    numbers = [i for i, one in enumerate(arguments) if one.isdecimal()]
    found = [str(min(int(one), 256)) if one.isdecimal() else one for one in arguments]
    if numbers and 10 <= int(arguments[numbers[-1]]) < 1 << 16:
        found[numbers[-1]] = "2"
    return tuple(found)


def single_files(suite: str, root: Path, pattern: str, flags: tuple[str, ...]) -> Iterator[Program]:
    """Files with a `main`, with the sources that they share. Those of a ladder get the number of a kernel."""
    shared = tuple(map(str, root.glob("src/runner.cu")))
    for path in sorted(root.glob(pattern)):
        text = path.read_text(errors="replace")
        if re.search(r"\bint\s+main\s*\(", text):
            name = path.relative_to(root).with_suffix("").as_posix()
            sources = (path.name, *(shared if "runner.cuh" in text else ()))
            linked = ("-lcublas", "-lcublasLt") if suite == "llm.c" or "cublas" in text else ()
            numbered = suite in ("SGEMM_CUDA", "llm.c") and "argv[1]" in text
            yield Program(suite, name, path.parent, sources, (*flags, *linked), ("1",) if numbered else ())


def programs(suite: str, root: Path) -> list[Program]:
    """The programs of a suite."""
    if suite == "cuda-samples":
        return list(cuda_samples(root))
    if suite == "HeCBench":
        return list(hecbench(root))
    if suite == "Rodinia":
        return [
            Program(
                suite,
                name,
                root / "cuda" / one.folder,
                tuple(one.sources.split()),
                (*rodinia.FLAGS, *one.flags),
                tuple(one.arguments.split()),
            )
            for name, one in rodinia.PROGRAMS.items()
        ]
    if suite in SCRIPTS:
        pattern, how = SCRIPTS[suite]
        return [
            Program(suite, one.stem, one.parent, arguments=tuple(how.format(name=one.stem).split()))
            for one in sorted(root.glob(pattern))
        ]
    flags = ("-std=c++17", "--expt-relaxed-constexpr", "--extended-lambda", f"-I{root}", f"-I{root / 'src'}")
    pattern = {"SGEMM_CUDA": "*.cu", "LeetCUDA": "kernels/**/*.cu", "llm.c": "dev/cuda/*.cu"}[suite]
    return list(single_files(suite, root, pattern, flags))


def build(program: Program, scratch: Path, seconds: float) -> tuple[Path | None, str]:
    """The program, or why it cannot be built."""
    if program.suite in SCRIPTS:
        return Path(sys.executable), ""
    from memsim.driver.native_build import libraries, newest_headers  # who imports this may not have numpy

    environment = {**os.environ, "NVCC_APPEND_FLAGS": "-cudart shared -lineinfo", "NVCC_THREADS": "2"}
    stubs = scratch / "stubs"
    stubs.mkdir()
    (stubs / "libcuda.so.1").symlink_to(libraries() / "libcuda.so.1")
    for name in ("libcuda", "libcublas", "libcublasLt"):
        for newest in sorted(libraries().glob(f"{name}.so.*"))[-1:]:
            (stubs / f"{name}.so").symlink_to(newest)
    blas = [f"-I{folder}" for folder in newest_headers().values() if (folder / "cublas_v2.h").is_file()]
    target = scratch / "program"
    if program.sources:
        command = [
            "nvcc",
            "-arch=sm_90",
            *program.sources,
            "-o",
            str(target),
            f"-L{stubs}",
            *blas,
            *program.flags,
        ]
        ways = [command, [*command, "-rdc=true"]]
        folder = program.folder
    else:
        folder = scratch / "source" / program.folder.name
        shutil.copytree(program.folder, folder)
        for other in program.folder.parent.glob("*"):  # what it includes beside it
            if not (folder.parent / other.name).exists():
                (folder.parent / other.name).symlink_to(other)
        ways = [["make", "ARCH=sm_90"]]
    log = ""
    for way in ways:
        try:
            done = subprocess.run(
                way, cwd=folder, env=environment, capture_output=True, text=True, timeout=seconds
            )
        except subprocess.TimeoutExpired:
            return None, "build: time limit"
        log = log or done.stderr + done.stdout
        made = (
            target
            if program.sources
            else next((one for one in (folder / "main", *folder.iterdir()) if is_program(one)), None)
        )
        if done.returncode == 0 and made is not None:
            return made, ""
    first = re.search(r"(fatal error|undefined reference|cannot find|error)[^\n]*", log)
    return None, f"build: {first[0][:150] if first else 'unknown'}"


def is_program(path: Path) -> bool:
    """Whether it is an executable that was just linked."""
    return path.is_file() and os.access(path, os.X_OK) and path.read_bytes()[:4] == b"\x7fELF"


def run(program: Program, made: Path, outcome: Outcome, seconds: float) -> None:
    """Runs a program in its own folder and says how it ended."""
    command = [sys.executable, "-m", "memsim", "exec", "--", str(made), *program.arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    environment |= {"PYTHONUNBUFFERED": "1", "MPLBACKEND": "Agg"}
    folder = program.folder
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        began = time.time()
        ask = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell's background ignores it
        process = subprocess.Popen(
            preexec_fn=ask,
            args=command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
        )
        try:
            wait_for(process, seconds)
            outcome.exit_code, outcome.ended = process.returncode, True
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        outcome.seconds = round(time.time() - began, 1)
        printed, told = (read(one) for one in (out, errors))
    found = LAUNCHED.search(told)
    outcome.launches = int(found[1].replace(",", "")) if found else 0
    said = PASSED.search(printed + told), FAILED.search(printed)
    outcome.passed = False if said[1] else True if said[0] else None
    causes = [one for one in SAID.findall(told) if "no kernel" not in one]
    if not outcome.ended:
        outcome.cause = "time limit"
    elif outcome.exit_code or outcome.passed is False:
        outcome.cause = (causes[0] if causes else f"exit code {outcome.exit_code}: {printed.strip()[-120:]}")[
            :250
        ]


def record(program: Program, made: Path, folder: Path, seconds: float) -> None:
    """Writes the first launch of each kind that a program makes to a folder, as far as it comes in time."""
    command = [sys.executable, "-m", "memsim", "exec", "--record", str(folder), "--", str(made)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    process = subprocess.Popen(
        [*command, *program.arguments],
        cwd=program.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with suppress(subprocess.TimeoutExpired):
        wait_for(process, seconds)
    process.kill()
    process.wait()


def run_on_gpu(program: Program, made: Path, seconds: float) -> int | None:
    """Its exit code without memsim; None if it has not ended by then."""
    with suppress(subprocess.TimeoutExpired):
        command = [str(made), *program.arguments]
        return subprocess.run(command, cwd=program.folder, capture_output=True, timeout=seconds).returncode
    return None


def wait_for(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Waits until a process ends; so many seconds are those that it and its children had of a processor, so
    that others on the machine do not matter.

    Raises:
        subprocess.TimeoutExpired: it has not ended by then, or waits.
    """
    began = time.time()
    while processor_seconds(process.pid) < seconds and time.time() < began + MOST_WALL * seconds:
        with suppress(subprocess.TimeoutExpired):
            process.wait(POLL)
            return
    raise subprocess.TimeoutExpired(process.args, seconds)


def processor_seconds(pid: int) -> float:
    """What a process, its threads and its children that still run had of a processor (proc(5))."""
    try:
        times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:  # it has ended
        return 0
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK") + sum(map(processor_seconds, map(int, children)))


def read(file: BinaryIO) -> str:
    """The end of what was written to a file."""
    file.seek(0)
    return file.read()[-200_000:].decode(errors="replace")


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("suite")
    parser.add_argument("checkout", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=27)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--seconds", type=float, default=30, help="of a processor, each")
    parser.add_argument("--keep", type=Path, help="a folder for what is built, so that it is built once")
    parser.add_argument("--gpu", action="store_true", help="run each on this machine's GPU, too")
    parser.add_argument("--only", help="one program, by its name")
    given = parser.parse_args()
    drawn = programs(given.suite, given.checkout.resolve())
    print(f"{len(drawn)} programs of {given.suite}", flush=True)
    random.Random(given.seed).shuffle(drawn)
    number, parts = map(int, given.part.split("/"))
    chosen = [one for i, one in enumerate(drawn[: given.count]) if i % parts == number]
    if given.only:
        chosen = [one for one in drawn if one.name == given.only]
    for program in chosen:
        outcome = Outcome(program.suite, program.name, " ".join(program.arguments), given.part)
        with tempfile.TemporaryDirectory() as scratch:
            kept = given.keep and given.keep / program.suite / program.name.replace("/", ".")
            if kept and kept.exists():
                made: Path | None = kept
            else:
                made, outcome.cause = build(program, Path(scratch), 300)
            outcome.built = made is not None
            if made is not None:
                if given.gpu:
                    outcome.gpu_exit_code = run_on_gpu(program, made, given.seconds)
                run(program, made, outcome, given.seconds)
                if kept and made != kept:
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(made, kept)
        print(json.dumps(asdict(outcome)), flush=True)
        known = json.loads(given.results.read_text()) if given.results.exists() else []
        others = [one for one in known if (one["suite"], one["name"]) != (outcome.suite, outcome.name)]
        given.results.write_text(json.dumps([*others, asdict(outcome)], indent=1) + "\n")


if __name__ == "__main__":
    main()
