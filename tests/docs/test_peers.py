"""The section on peers says what was measured, and judges verdicts by what the chip counted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from docs.peers import page
from docs.peers.measure import RECORD, SECTORS, WAVEFRONTS


@pytest.fixture
def kernel() -> dict[str, Any]:
    """A kernel that wastes wavefronts and no sectors."""
    chip = {WAVEFRONTS: 64, f"{WAVEFRONTS}_ideal": 32, SECTORS: 8, f"{SECTORS}_ideal": 8}
    return {"chip": chip, "memsim": {"shared": True, "global": False}}


def test_a_verdict_is_right_if_the_chip_says_the_same(kernel: dict[str, Any]) -> None:
    assert [page.judged(kernel, "memsim", space) for space in page.SPACES] == [page.RIGHT, page.RIGHT]
    kernel["memsim"] = {"shared": False, "global": True}
    assert [page.judged(kernel, "memsim", space) for space in page.SPACES] == [page.MISSED, page.ALARM]


def test_every_verdict_that_the_chip_contradicts_is_in_the_table() -> None:
    kernels = json.loads(RECORD.read_text("utf-8"))["kernels"]
    section = page.section()
    for name, found in kernels.items():
        right = all(
            page.judged(found, tool, space) == page.RIGHT for tool in page.TOOLS for space in page.SPACES
        )
        assert (f"\n| `{name}` |" in section) != right
