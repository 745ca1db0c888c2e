"""What is fuzzed: for each kind of input a function that makes one from a seed and reads it.

Whatever it is given, memsim answers, or raises a `MemsimError` with exit code 1 or 2.
"""

from __future__ import annotations

import copy
import gzip
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import tomllib

import memsim
from lab.experiments import RATES
from memsim.analysis import analyze_trace
from memsim.api.kernel_file import KernelFile
from memsim.api.running import trace_job
from memsim.argument_types import ArrayArg
from memsim.arguments import describe, read_arguments
from memsim.captured.launched import Launched
from memsim.captured.saved_launch import read_launch, write_launch
from memsim.data import data_folder
from memsim.guard import baseline
from memsim.guard.budget import parse_budget
from memsim.guard.comparison import side_of_document
from memsim.guard.select import parse_selector
from memsim.isa.program import Parameter
from memsim.kernel import Kernel
from memsim.kernels import catalog
from memsim.sass.machine_code import read_module
from memsim.shown import ShownAnalysis
from memsim.targets.project import read_project
from memsim.trace import storage
from memsim.trace.trace import Trace
from memsim.validate.code_recording import load_code_recording
from memsim.views.analyze.terminal import render
from tests.fuzz.mutate import any_value, bytes_of, text_of, value_of

STEPS = 5_000  # instructions after which a launch is endless
# Kernels with tiles, loops, 16-byte accesses, XOR, PTX in the source; at a size that takes few instructions.
SIZES = {
    **dict.fromkeys(("transpose_naive", "transpose_xor"), (64, 64)),
    **dict.fromkeys(("permuted_write", "permuted_write_fixed"), None),
    **dict.fromkeys(("kernel_v1", "kernel_v4", "opt_3_shared", "guide_v4", "guide_v10"), (64, 64, 32)),
}


@cache
def shipped_of(name: str) -> tuple[bytes, bytes]:
    with zipfile.ZipFile(catalog()[name].compiled_path) as file:
        return file.read("kernel.cubin"), file.read("kernel.sass")


def sass(random: Random, folder: Path) -> None:
    """A cubin and its listing, one of them damaged: decoded and launched."""
    name = random.choice(list(SIZES))
    code, text = shipped_of(name)
    if random.random() < 0.2:
        code = bytes_of(code, random)
    else:
        text = text_of(text, random)
    module = read_module(code, text.decode("utf-8", "replace"), "fuzz.cubin")
    kernels = [Kernel(machine.name, machine) for machine in module.kernels.values()]
    _launched(kernels, name, random)


def _launched(kernels: list[Kernel], name: str, random: Random) -> None:
    """The first kernel, launched as the one that it was made from."""
    job = catalog()[name].job(SIZES[name])
    how = {"blocks": random.choice((1, 3)), "allow_out_of_bounds": random.random() < 0.5}
    for kernel in kernels[:1]:
        render(analyze_trace(trace_job(replace(job, kernel=kernel, max_steps=STEPS, **how))))


@cache
def trace_file() -> bytes:
    content = io.BytesIO()
    storage.write(catalog()["transpose_xor"].trace((64, 64)), content)
    return content.getvalue()


def npz(random: Random, folder: Path) -> None:
    """A saved trace: its header, its columns, or its bytes."""
    content = trace_file()
    if random.random() < 0.2:
        content = bytes_of(content, random)
    else:
        with np.load(io.BytesIO(content)) as file:
            stored = {name: file[name] for name in file.files}
        if random.random() < 0.7:
            header = value_of(json.loads(stored["header"].tobytes()), random)
            stored["header"] = np.frombuffer(_json(header), np.uint8)
        else:
            name = random.choice(list(stored))
            stored[name] = _array(stored[name], random)
        made = io.BytesIO()
        np.savez(made, **stored)
        content = made.getvalue()
    analysis = ShownAnalysis.of(analyze_trace(storage.read_trace(content, "fuzz.npz")))
    str(analysis)
    analysis.to_dict(sass=True)
    analysis._repr_html_()


def _array(column: np.ndarray, random: Random) -> np.ndarray:
    match random.randrange(4):
        case 0:
            return column[: random.randrange(len(column) + 1)]
        case 1:
            return column.astype(random.choice((np.float64, np.int8, np.uint64, np.complex64, "U3")))
        case 2:
            return column.reshape(random.choice(((-1,), (1, -1), (-1, 1))))
        case _:
            changed = column.copy()
            if changed.size:
                at = random.randrange(changed.size)
                most = np.iinfo(changed.dtype).max if changed.dtype.kind in "iu" else 1
                changed.flat[at] = random.choice((0, 1, 31, most, most // 2, min(most, 1 << 20)))  # type: ignore[call-overload]
            return changed


def _json(document: Any) -> bytes:
    try:
        return json.dumps(document, default=str).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):  # what Python cannot write it may still have to read
        return b"[" * 5000 + b"9" * 5000


BASELINE = """\
schema = 1

[kernels."k"]
launch = "grid 1x1x1, block 32x1x1"
arguments = "f32[64]"
read = "machine code of sm_90"
sites = [
  { code = "x = s[i];", access = "shared load 4 B", array = "s", instructions = 1, requests = 1, \
wavefronts = 2, conflicts = 1, ways = 2, ideal_wavefronts = 1 },
  { code = "o[i] = x;", access = "global store 4 B", array = "o", instructions = 1, unresolved = "why" },
]
"""
PROJECT = """\
budgets = ["ways <= 1", "sites(array=s_a, store).conflicts == 0"]
accept = ["sites(array=index)"]
arch = "sm_90"
baseline = "b.toml"

[[targets]]
kernel = "transpose_*"
size = "64,64"
blocks = 1

[[targets]]
file = "k.cu"
name = "k"
kernel = "k"
grid = [1, 1]
block = 32
args = ["f32[64]", 1.0, 3]
shared_bytes = 0
options = ["-DN=1"]
max_steps = 100
"""


def toml(random: Random, folder: Path) -> None:
    """A baseline, or a configuration with all that it says."""
    if random.random() < 0.5:
        if random.random() < 0.5:
            text = text_of(BASELINE.encode(), random)
        else:
            text = _toml(value_of(tomllib.loads(BASELINE), random))
        baseline.render(baseline.parse(text.decode("utf-8", "replace"), "b.toml"))
        return
    (folder / "k.cu").write_text("")
    path = folder / "memsim.toml"
    use_text = random.random() < 0.5
    path.write_bytes(
        text_of(PROJECT.encode(), random) if use_text else _toml(value_of(tomllib.loads(PROJECT), random))
    )
    for job in read_project(path).targets:
        assert job.given is not None


def _toml(document: Any) -> bytes:
    """TOML of plain values; what TOML cannot say is a text."""

    def value(of: Any) -> str:
        match of:
            case bool():
                return str(of).lower()
            case int() | float():
                return str(of) if not isinstance(of, int) or abs(of) < 10**4000 else "9" * 4000
            case list():
                return f"[{', '.join(map(value, of))}]"
            case dict():
                return (
                    f"{{{', '.join(f'{json.dumps(str(key))} = {value(item)}' for key, item in of.items())}}}"
                )
        return json.dumps(str(of))

    if not isinstance(document, dict):
        return b"a = " + b"[" * 5000
    try:
        lines = [f"{json.dumps(str(key))} = {value(item)}" for key, item in document.items()]
    except RecursionError:
        return b"a = " + b"[" * 5000
    return "\n".join(lines).encode("utf-8", "surrogatepass")


@cache
def documents() -> list[tuple[str, Any]]:
    analysis = analyze_trace(storage.read_trace(trace_file(), "t.npz")).to_dict()
    found: list[tuple[str, Any]] = [("analysis", analysis)] * 4
    for path in sorted(data_folder("traces").rglob("*.json"))[::25]:
        record = json.loads(path.read_text("utf-8"))
        if "profiles" in record:
            found.append(("code", record))
    for path in data_folder("traces").glob("*/rates/rates.json"):
        record = json.loads(path.read_text("utf-8"))
        found.append(("rates", {**record, "launches": record["launches"][:2]}))
    return found


READERS: dict[str, Callable[[Path], Any]] = {
    "code": load_code_recording,
    "rates": RATES.load,
}


def documents_of_json(random: Random, folder: Path) -> None:
    """A saved analysis, or a recording."""
    kind, good = random.choice(documents())
    document = value_of(copy.deepcopy(good), random)
    if kind == "analysis":
        side_of_document("fuzz.json", document)
        return
    path = folder / "r.json"
    path.write_bytes(_json(document) if random.random() < 0.8 else text_of(_json(document), random))
    READERS[kind](path)


ARGUMENTS = (
    *("f32[64]", "i32[8,8]=iota", "u8[256]=zeros", "1.5", "0x10", "true", "@m.npy", "f16(1,1)"),
    *("f32(1,2)+i32(3)", "f32[64]+i32(3)", "f64[2]", "-1", "1e400"),
)
PARAMETERS = (
    *(
        Parameter(f"p{n}", kind, size, size, 0)
        for n, (kind, size) in enumerate((("u64", 8), ("f32", 4), ("b8", 1)))
    ),
    Parameter("s", "b8", 4, 16, 0),
)
BUDGETS = ("ways <= 1", "excess < 5%", "sites(array=s_a, line=3).wavefronts <= ideal", "baseline")


def arguments(random: Random, folder: Path) -> None:
    """Arguments, budgets and filters as texts, arrays as files, arrays by shape and type."""
    match random.randrange(4):
        case 0:
            text = text_of(random.choice(ARGUMENTS).encode(), random).decode("utf-8", "replace")
            given = read_arguments([text], {"p": random.choice(PARAMETERS)}, folder)
            assert describe(given[0]) is not None
        case 1:
            text = text_of(random.choice(BUDGETS).encode(), random).decode("utf-8", "replace")
            random.choice((parse_budget, parse_selector))(text)
        case 2:
            made = io.BytesIO()
            kind = random.choice(("f4", "i8", "U4", "c8", "O", "V3", "M8[s]"))
            np.save(made, np.zeros((4, 4), kind), allow_pickle=True)
            (folder / "m.npy").write_bytes(bytes_of(made.getvalue(), random))
            _launch(random, read_arguments(["@m.npy"], {"p": PARAMETERS[0]}, folder)[0])
        case _:
            _launch(random, random.choice((any_value(random), _array_arg(random))))


def _array_arg(random: Random) -> Any:
    shape = random.choice(((64,), (0,), (-1,), 64, (2**40,), (2**70,), ("a",), None, (1.5,), (64, 64)))
    kind = random.choice(
        ("f32", "float32", "i32", "bfloat16", "int8", "O", "U3", "nothing", None, 3, "M8[s]")
    )
    return ArrayArg(shape, kind, random.choice(("random", "zeros", "iota", "other", None)))  # type: ignore[arg-type]


def _launch(random: Random, value: Any) -> None:
    shape = (
        random.choice((1, (1, 1), 0, -1, "a", None, 2**40, (1, 1, 1, 1), 1.5)) if random.random() < 0.3 else 1
    )
    kernel = _small()
    memsim.analyze(kernel, grid=shape, block=32, args=[value, value, 32, 32], max_steps=STEPS)


@cache
def _small() -> Kernel:
    return catalog()["transpose_naive"].kernel()


def files(random: Random, folder: Path) -> None:
    """CUDA source that is hardly any, and files that are no machine code."""
    suffix = random.choice((".cubin", ".so", ".zip"))
    code, _ = shipped_of("transpose_xor")
    good = catalog()["transpose_xor"].compiled_path.read_bytes() if suffix == ".zip" else code
    (folder / f"f{suffix}").write_bytes(bytes_of(good, random))
    KernelFile(folder, f"f{suffix}").load(memsim.arch.SM_90)


FOREIGN = Path(__file__).parents[1] / "trace" / "foreign"


def traces(random: Random, folder: Path) -> None:
    """Traces of other tools, compressed or not."""
    good = random.choice([FOREIGN / "transpose.traceg", FOREIGN / "two_launches.txt"])
    content = text_of(good.read_bytes(), random)
    path = folder / f"fuzz{good.suffix}"
    if random.random() < 0.1:
        path = path.with_name(f"{path.name}.gz")
        content = bytes_of(gzip.compress(content), random)
    path.write_bytes(content)
    render(analyze_trace(Trace.load(path, random.choice(("0", None)) if good.suffix == ".txt" else None)))


@cache
def launched(folder: Path) -> tuple[Path, Any]:
    """A folder with a launch that was captured, and its document."""
    spec = catalog()["transpose_xor"]
    job = spec.job((64, 64))
    path = write_launch(Launched.of(job), folder / "launched")
    return path, json.loads(path.read_text("utf-8"))


def launches(random: Random, folder: Path) -> None:
    """A `launch.json`, or the listing that it names, where no disassembler is installed."""
    path, good = launched(folder)
    damaged = path.with_name("damaged.json")
    if random.random() < 0.3:
        damaged.write_bytes(_json({**good, "listing": _damaged_listing(path.parent, random)}))
        with patch("memsim.sass.disassemble.find_tool", return_value=None):
            launch = read_launch(damaged)
    else:
        document = _json(value_of(copy.deepcopy(good), random))
        damaged.write_bytes(document if random.random() < 0.8 else text_of(document, random))
        launch = read_launch(damaged)
    render(analyze_trace(trace_job(replace(launch.job(), max_steps=STEPS, blocks=64))))


def _damaged_listing(folder: Path, random: Random) -> dict[str, str]:
    """A damaged listing beside a launch, or a damaged file of it, and its record: whoever damages it can
    write the digest, too.
    """
    code, content = ((folder / name).read_bytes() for name in ("kernel.cubin", "kernel.sass.gz"))
    if random.random() < 0.2:
        content = bytes_of(content, random)
    else:
        content = gzip.compress(text_of(gzip.decompress(content), random))
    (folder / "damaged.gz").write_bytes(content)
    return {"file": "damaged.gz", "sha256": sha256(code + content).hexdigest()}


SUBJECTS: dict[str, Callable[[Random, Path], None]] = {
    "sass": sass,
    "npz": npz,
    "toml": toml,
    "json": documents_of_json,
    "arguments": arguments,
    "files": files,
    "traces": traces,
    "launches": launches,
}
