"""Every case runs on the emulator; with `pytest -m gpu` also on the machine's GPU."""

from __future__ import annotations

import pytest

from tests.simt.harness import Verify, verify_on_chip, verify_on_emulator


@pytest.fixture(params=["emulator", pytest.param("chip", marks=pytest.mark.gpu)])
def verify(request: pytest.FixtureRequest) -> Verify:
    """Checks a case: the emulator against the reference, or against the chip."""
    return verify_on_emulator if request.param == "emulator" else verify_on_chip
