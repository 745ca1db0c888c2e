"""The whole catalogue beside everything that was recorded: equal where equality is promised."""

from __future__ import annotations

import pytest

from memsim.kernels import Spec, compiled
from memsim.validate.gaps import FILE, judge, read_gaps
from memsim.validate.replay import replay
from memsim.validate.shelf import newest_recording
from memsim.validate.sizes import RAGGED, size_of
from tests.validate.conftest import H100, TRACES

GAPS = read_gaps(TRACES / FILE)
GPUS = (H100, "nvidia-h200")


@pytest.mark.parametrize("size", [None, RAGGED], ids=["default", "ragged"])
@pytest.mark.parametrize("spec", compiled().values(), ids=compiled())
def test_every_kernel_is_recorded_and_as_predicted(spec: Spec, size: str | None) -> None:
    for gpu in GPUS:
        recording = newest_recording(TRACES, spec, size_of(spec, size), gpu)
        judged = judge(replay(recording), GAPS)
        assert not judged.unexplained
        assert not judged.gone
        assert recording.result.right


def test_every_known_gap_speaks_of_what_was_recorded() -> None:
    sizes = {
        name: {",".join(map(str, size_of(s, size))) for size in (None, RAGGED)}
        for name, s in compiled().items()
    }
    for gap in GAPS:
        for kernel in gap.kernels:
            assert set(gap.sizes) <= sizes[kernel]


def test_ragged_sizes_fit_no_tile_where_the_kernel_allows() -> None:
    for spec in compiled().values():
        size = dict(zip(spec.family.sizes, size_of(spec, RAGGED), strict=True))
        for name, divisor in spec.requires:
            assert size[name] % divisor == 0
        free = set(size) - {name for name, _ in spec.requires}
        assert all(size[name] % 2 for name in free)
