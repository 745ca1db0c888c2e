"""Whether a surplus of shared atomics is proven to be arbitration, which is counted in other passes."""

from __future__ import annotations

import pytest

from memsim.validate.compare_instructions import counter_figures
from memsim.validate.profiles import CONTENDED, ONE_PASS, CodeProfile, Counted

WAVEFRONTS, CONFLICTS = ONE_PASS["shared atomic",]


def profile(**counters: int) -> CodeProfile:
    names = {"wavefronts": WAVEFRONTS, "conflicts": CONFLICTS, "arbitration": CONTENDED}
    return CodeProfile(
        "k", None, None, 1, {names[key]: Counted(value, "") for key, value in counters.items()}
    )


@pytest.mark.parametrize(
    ("wavefronts", "conflicts", "elsewhere", "verdict"),
    [
        (362, 0, (0, 0), "exact"),
        (364, 2, (0, 3), "arbitration"),
        (364, 2, (3, 0), "arbitration"),
        (364, 2, (0, 1), "difference"),
        (364, 1, (0, 3), "difference"),
    ],
)
def test_of_atomics(wavefronts: int, conflicts: int, elsewhere: tuple[int, ...], verdict: str) -> None:
    profiles = [profile(wavefronts=wavefronts, conflicts=conflicts)]
    profiles += [profile(arbitration=value) for value in elsewhere]
    found = counter_figures(profiles, {WAVEFRONTS: 362, CONFLICTS: 0}, True)
    assert next(iter(found)).verdict == verdict
