"""The whole catalogue beside everything that was recorded: equal where equality is promised."""

from __future__ import annotations

import pytest

from memsim.kernels import Spec, compiled
from memsim.validate.code_recordings import newest_code
from memsim.validate.recordings import newest_recording
from memsim.validate.replay import replay, replay_code
from memsim.validate.sizes import RAGGED, size_of
from tests.few import few
from tests.validate.conftest import H100, TRACES

H200 = "nvidia-h200"
TILES = ("sgemm_parts", "sum_of_parts")  # families that are recorded by instruction only, on an H200
BY_LINE = [spec for spec in compiled().values() if spec.family.name not in TILES]
SIZES = pytest.mark.parametrize("size", [None, RAGGED], ids=["default", "ragged"])


@pytest.mark.some(4)
@SIZES
@pytest.mark.parametrize(
    "spec", few(list(compiled().values()), ("tile_32x64x32",), name=lambda spec: spec.name)
)
def test_every_kernel_is_recorded_by_instruction_and_as_predicted(spec: Spec, size: str | None) -> None:
    recording = newest_code(TRACES, spec, size_of(spec, size), H200)
    assert recording is not None and recording.result is not None
    assert recording.result.right
    assert replay_code(recording).differences == {}


@SIZES
@pytest.mark.parametrize("spec", few(BY_LINE, name=lambda spec: spec.name))
def test_every_kernel_is_recorded_by_line_and_as_predicted(spec: Spec, size: str | None) -> None:
    for gpu in (H100, H200):
        recording = newest_recording(TRACES, spec, size_of(spec, size), gpu)
        comparison = replay(recording)
        assert comparison.passed, comparison.differences
        assert recording.result.right


def test_ragged_sizes_fit_no_tile_where_the_kernel_allows() -> None:
    for spec in compiled().values():
        size = dict(zip(spec.family.sizes, size_of(spec, RAGGED), strict=True))
        for name, divisor in spec.requires:
            assert size[name] % divisor == 0
        free = set(size) - {name for name, _ in spec.requires}
        assert all(size[name] % 2 for name in free)
