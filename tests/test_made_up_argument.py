"""A kind of argument that memsim does not know is one class: nothing else is told of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsim.api.running import run
from memsim.argument_types import ArrayArg, StructFields
from memsim.argument_types.argument import KINDS, Argument, ArgumentDocument, ArgumentPlaces, Parameter
from memsim.argument_types.array_arg import ArrayArgument
from memsim.arguments import describe
from memsim.captured.analyze_any import analyze
from memsim.captured.launched import Launched
from memsim.captured.saved_launch import read_launch, write_launch
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.kernel import Kernel
from memsim.launch import Launch
from memsim.suggest.prove import differing_results
from memsim.targets.cache import key_of
from tests.simt.cuda import machine_kernel

SOURCE = """
struct Strided { float *data; long long step; };
struct Pair { int first; Strided view; };
extern "C" __global__ void k(Strided view, Pair pair, float *out) {
    int i = threadIdx.x;
    out[i] = view.data[i * view.step] + pair.view.data[i * pair.view.step] + pair.first;
    view.data[i * view.step] = ADDED;
}"""


class StridedArgument(ArgumentDocument, tag="strided"):
    """An array, and the elements from one to the next that is read."""

    array: ArrayArgument
    step: int


@dataclass(frozen=True)
class Strided(Argument):
    """`struct { float *data; long long step; }`."""

    array: np.ndarray | ArrayArg
    step: int
    Document = StridedArgument

    def as_part(self) -> tuple[int, int]:
        return 16, 8

    def fits(self, parameter: Parameter, name: str) -> bool:
        return parameter.size == 16

    def encode(self, parameter: Parameter, places: ArgumentPlaces, at: int) -> bytes:
        return places.address().to_bytes(8, "little") + self.step.to_bytes(8, "little")


del KINDS["strided"]  # other tests list the kinds


@pytest.fixture(autouse=True)
def only_here() -> Iterator[None]:
    """The kind is known, as it is where its class is defined."""
    KINDS["strided"] = Strided
    yield
    del KINDS["strided"]


@cache
def kernel(added: str = "-1.0f") -> Kernel:
    return machine_kernel(SOURCE.replace("ADDED", added))


def arguments(step: int = 8, array: Any = None) -> list[Any]:
    array = np.arange(256, dtype=np.float32) if array is None else array
    pair = StructFields((np.int32(5), Strided(ArrayArg((64,), fill="ones"), 2)), ("first", "view"))
    return [Strided(array, step), pair, np.zeros(32, np.float32)]


def sectors(launched: Any) -> dict[tuple[str, str], int | None]:
    return {(site.array, site.op): site.sectors for site in launched.sites}


def test_it_is_analyzed() -> None:
    found = sectors(analyze(kernel(), 1, 32, arguments()))
    assert found == {
        ("view", "load"): 32,
        ("pair.view", "load"): 8,
        ("out", "store"): 4,
        ("view", "store"): 32,
    }
    assert sectors(analyze(kernel(), 1, 32, arguments(1)))["view", "load"] == 4


def test_it_is_run() -> None:
    array = np.arange(256, dtype=np.float32)
    given = arguments(8, array)
    run(kernel(), 1, 32, given)
    assert (given[2] == np.arange(32) * 8 + 6).all()
    assert (array[::8] == -1).all() and array[1] == 1


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    before = Launched(kernel(), (1, 1, 1), (32, 1, 1), tuple(arguments()))
    after = read_launch(write_launch(before, tmp_path))
    view, pair, _ = after.args
    assert isinstance(view, Strided) and view.step == 8
    assert np.array_equal(np.asarray(view.array), np.arange(256))
    assert pair.names == ("first", "view") and pair[1] == Strided(ArrayArg((64,), fill="ones"), 2)
    assert sectors(after.analyze()) == sectors(before.analyze())
    text = (tmp_path / "launch.json").read_text("utf-8")
    (tmp_path / "launch.json").write_text(text.replace('"step": 8', '"step": "8"'))
    with pytest.raises(MemsimError, match=r"Expected `int`, got `str` - at `\$.arguments\[0\].step`"):
        read_launch(tmp_path / "launch.json")


def job(given: list[Any], added: str = "-1.0f") -> Job:
    return Job(kernel(added), Launch((1, 1, 1), (32, 1, 1)), given)


def test_a_cache_knows_it_by_its_fields_and_contents() -> None:
    key, other = key_of(job(arguments())), np.arange(256, dtype=np.float32)
    assert key_of(job(arguments())) == key
    assert key_of(job(arguments(9))) != key
    other[3] = 0
    assert key_of(job(arguments(8, other))) != key
    assert key_of(job(arguments(8, ArrayArg((256,))))) != key
    assert key_of(job([object()])) != key  # no argument at all, which is said when it meets its parameter


def test_a_proof_compares_its_arrays() -> None:
    given = arguments()
    assert differing_results(job(given), job(given)) == ()
    assert differing_results(job(given), job(given, "-2.0f")) == ("view",)
    assert given[0].array.tolist() == list(range(256))


def test_it_has_a_text_and_what_it_does_not_fit_is_said() -> None:
    assert describe(arguments()[0]) == "strided(f32[256])"
    given = arguments()
    given[2] = replace(given[0], step=1)
    with pytest.raises(MemsimError, match="argument out of k must be an array"):
        analyze(kernel(), 1, 32, given)
