"""Runs PyTorch's operators on memsim's device and compares them with the processor's results.

    python tools/exec_operators.py PYTHON RESULTS.json [--count 200] [--seed 27] [--part 0/2] [--seconds 60]

PYTHON is one that has PyTorch's CUDA wheel, `expecttest` and `hypothesis`. Operators are drawn by seed from
PyTorch's own list for its tests (`op_db`), of those that its `test_compare_cpu` compares, in the first type
of numbers that this test takes, with its tolerance; of each operator's sample inputs the first few. Many
run in one process, as a fault ends them all: the rest then goes on in a new one. Results are added to those
in the file, which docs/exec.md shows.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from exec_in_turn import run_in_turn, take_part

SUITE = "PyTorch's operators"
#: Of each operator's sample inputs; those of more elements are left out.
SAMPLES, MOST_ELEMENTS = 3, 4096
#: Of `TestCommon.test_compare_cpu` in PyTorch's test/test_ops.py.
TOLERANCE = 1e-3


def operators() -> dict[str, Any]:
    """Those that PyTorch itself compares with the processor, by name."""
    from torch.testing._internal.common_methods_invocations import op_db

    def is_compared(operator: Any) -> bool:
        decorators = [
            one for one in operator.decorators if getattr(one, "test_name", "") == "test_compare_cpu"
        ]
        return not decorators and bool(operator.dtypes & operator.dtypesIfCUDA)

    return {one.formatted_name: one for one in op_db if is_compared(one)}


def compare(operator: Any) -> str:
    """Runs an operator's samples on both; returns the type of numbers, and how many samples agree.

    Raises:
        AssertionError: results differ. Others: the operator fails on the device.
    """
    import torch
    from torch.utils._pytree import tree_flatten, tree_map

    common = operator.dtypes & operator.dtypesIfCUDA
    order = (torch.float32, torch.complex64, torch.int64, torch.bool)
    dtype = next((one for one in order if one in common), None) or min(common, key=str)

    def to_device(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.detach().to("cuda")
        return torch.device("cuda") if value == "cpu" or value == torch.device("cpu") else value

    compared = 0
    for sample in operator.sample_inputs("cpu", dtype, requires_grad=False):
        given = [
            one for one in tree_flatten((sample.input, sample.args, sample.kwargs))[0] if torch.is_tensor(one)
        ]
        if sum(one.numel() for one in given) > MOST_ELEMENTS:
            continue
        device = tree_map(to_device, (sample.input, tuple(sample.args), dict(sample.kwargs)))
        wanted = operator(sample.input, *sample.args, **sample.kwargs)
        found = operator(device[0], *device[1], **device[2])
        found = tree_map(lambda one: one.cpu() if torch.is_tensor(one) else one, found)
        torch.testing.assert_close(found, wanted, atol=TOLERANCE, rtol=TOLERANCE, equal_nan=True)
        compared += 1
        if compared == SAMPLES:
            break
    if not compared:
        raise LookupError("no sample input is small enough")
    return f"{str(dtype).removeprefix('torch.')}, {compared} inputs"


def work(names: list[str], results: Path) -> None:
    """Compares operators one after the other, a line in a file when one begins and one when it ends."""
    import torch

    known = operators()
    with results.open("a") as file:
        for name in names:
            print(json.dumps({"begins": name}), file=file, flush=True)
            began = time.time()
            said = {"name": name, "arguments": "", "cause": ""}
            try:
                said["arguments"] = compare(known[name])
            except Exception as error:  # whatever PyTorch raises is an outcome
                said["cause"] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            print(json.dumps({**said, "seconds": round(time.time() - began, 1)}), file=file, flush=True)
            try:
                torch.cuda.synchronize()
            except RuntimeError:  # a fault: nothing works from here on
                return


def main() -> None:
    if sys.argv[1] == "--work":
        work(sys.argv[3:], Path(sys.argv[2]))
        return
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("python", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=27)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--only", nargs="*", help="operators by name, of those drawn")
    given = parser.parse_args()
    listing = "import exec_operators; print(*exec_operators.operators())"
    folder = Path(__file__).parent
    names = sorted(subprocess.check_output([given.python, "-c", listing], text=True, cwd=folder).split())
    print(f"{len(names)} operators", flush=True)
    random.Random(given.seed).shuffle(names)
    chosen = take_part(names[: given.count], given.part)
    command = [sys.executable, "-m", "memsim", "exec", "--", str(given.python), __file__]
    run_in_turn(SUITE, [one for one in chosen if not given.only or one in given.only], command, given)


if __name__ == "__main__":
    main()
