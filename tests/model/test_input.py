"""What the models refuse, each beside the nearest thing that they take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memsim.arch import ARCHS, SM_90, get_arch
from memsim.errors import MemsimError
from memsim.model import global_access, global_source_page, shared_access, shared_source_page

LANES = np.arange(32)
GOOD: dict[str, Any] = {"addresses": LANES * 16, "width": 16}
EVERY = [shared_access, global_access, shared_source_page, global_source_page]


@pytest.mark.parametrize("call", EVERY)
@pytest.mark.parametrize(
    ("bad", "twin", "message", "hint"),
    [
        ({"addresses": LANES * 16.0}, {"addresses": LANES * 16}, "must be integers, not float64", "int64"),
        ({"addresses": LANES > 3}, {"addresses": (LANES > 3) * 16}, "must be integers, not bool", "int64"),
        ({"addresses": [2**70] * 32}, {"addresses": [2**62] * 32}, "not object", "int64"),
        ({"addresses": LANES[:31] * 16}, {"addresses": LANES * 16}, "shape (31,)", "one row of 32"),
        ({"addresses": 16}, {"addresses": np.full((1, 32), 16)}, "shape ()", "one row of 32"),
        ({"width": 3}, {"width": 4}, "load of 3 bytes", "1, 2, 4, 8, 16 bytes"),
        ({"width": 32}, {"width": 16}, "load of 32 bytes", "1, 2, 4, 8, 16 bytes"),
        ({"op": "laod"}, {"op": "load"}, "op 'laod'", "did you mean 'load'?"),
        ({"op": "x"}, {"op": "store"}, "op 'x'", "load, store, atomic"),
        ({"active": LANES}, {"active": LANES > 0}, "boolean, not int64", "astype(bool)"),
        ({"active": [True] * 31}, {"active": [True] * 32}, "active has shape (31,)", "each lane"),
        ({"active": np.ones((2, 32), bool)}, {"active": True}, "active has shape (2, 32)", "each lane"),
    ],
)
def test_bad_input_and_its_good_twin(
    call: Any, bad: dict[str, Any], twin: dict[str, Any], message: str, hint: str
) -> None:
    call(**(GOOD | twin))
    with pytest.raises(MemsimError) as caught:
        call(**(GOOD | bad))
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("call", EVERY)
@pytest.mark.parametrize("width", [2, 4, 8, 16])
def test_a_misaligned_lane_is_named(call: Any, width: int) -> None:
    addresses = np.tile(LANES * width, (9000, 1))
    addresses[8000, 5] += width // 2
    active = np.ones(addresses.shape, bool)
    with pytest.raises(
        MemsimError, match=f"request 8000, lane 5 accesses {width} bytes at address {width * 11 // 2}"
    ):
        call(addresses, width, active=active)
    active[8000, 5] = False  # idle lanes may hold anything
    call(addresses, width, active=active)


@pytest.mark.parametrize(
    ("op", "bad", "good"),
    [
        *[("atomic", 16, 8), ("reduction", 8, 4), ("atomic_inc", 8, 4), ("atomic_cas", 2, 8)],
        *[("ldmatrix", 4, 16), ("stmatrix", 8, 16), ("cp_async", 2, 4)],
    ],
)
def test_an_unmeasured_width_of_a_shared_op_is_refused(op: str, bad: int, good: int) -> None:
    shared_access(LANES * good, good, op)
    with pytest.raises(MemsimError, match=f"shared {op} of {bad} bytes per lane is not modelled on sm_90"):
        shared_access(LANES * bad, bad, op)


def test_a_copy_past_the_cache_has_a_global_side_only() -> None:
    global_access(LANES * 16, 16, "cp_async_cg")
    with pytest.raises(MemsimError, match="shared op 'cp_async_cg' is not modelled"):
        shared_access(LANES * 16, 16, "cp_async_cg")


def test_every_arch_says_what_was_measured_and_where() -> None:
    for name, arch in ARCHS.items():
        assert get_arch(name) is arch
        assert arch.name == name
        assert {entry.space for entry in arch.rules} >= {"shared", "global"}
        for entry in arch.rules:
            assert entry.where
            assert set(entry.widths) <= set(arch.widths(entry.space, entry.op))
            assert entry.op in arch.ops(entry.space)
        assert arch.widths("shared", "nothing") == ()


@pytest.mark.parametrize("call", [shared_access, global_access])
def test_a_chip_goes_by_its_name_or_by_itself(call: Any) -> None:
    by_name, by_itself = call(**GOOD, arch="sm_90"), call(**GOOD, arch=SM_90)
    assert all((getattr(by_name, name) == getattr(by_itself, name)).all() for name in by_name.__slots__)
    with pytest.raises(MemsimError, match="architecture 'sm_12'") as caught:
        call(**GOOD, arch="sm_12")
    assert "known: sm_75, sm_80, " in str(caught.value)
