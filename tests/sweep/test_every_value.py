"""A claim about every value: exact where all are replayed, else by residues, no more than was replayed."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest

from memsim.errors import MemsimError
from memsim.sweep.every_value import EveryValue, prove, write

COLUMN = """
from memsim import SharedArray

def column(t, n=32, layout=""):
    tile = SharedArray("tile", layout or (32, n), "f32")
    tile[t.x, 0].store()

def halves(t, n=32):
    tile = SharedArray("tile", (32, n), "f16")
    tile[t.x, 0].store()

def blocks(t, n=32):
    tile = SharedArray("tile", (32, n + n // 100), "f32")
    tile[t.x, 0].store()
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("s.py").write_text(COLUMN)
    return "s.py"


def shown(found: EveryValue) -> list[str]:
    stream = StringIO()
    write("s", found, stream)
    return stream.getvalue().splitlines()


def test_few_values_are_all_replayed(file: str) -> None:
    found = prove(f"{file}:column", {"block": "32"}, {"n": "31|33..35..2"})
    assert (found.is_exact, found.holds, found.asked) == (True, True, 3)
    assert shown(found) == ["s: conflict-free at each of the 3 values of n, all replayed"]
    wrong = prove(f"{file}:column", {"block": "32"}, {"n": "33|34"})
    assert [each.ways for each in wrong.replayed] == [1, 2]
    assert shown(wrong)[0] == "s: not conflict-free at 1 of 2 values of n"


@pytest.mark.slow
def test_a_range_counts_by_residues_modulo_128_bytes(file: str) -> None:
    found = prove(f"{file}:column", {"block": "32"}, {"n": "1..1000"})
    assert (found.period, found.holds, found.is_exact) == (32, False, False)
    for each in found.replayed:
        (n,) = each.values
        assert each.ways == max(step for step in (1, 2, 4, 8, 16, 32) if n % step == 0)
    lines = shown(found)
    assert lines[0] == "s: not conflict-free for every n: that depends on its residue modulo 32"
    assert "  n mod 32 = 0: 32-way" in lines
    assert lines[-1].endswith("The others were not replayed.")
    odd = prove(f"{file}:column", {"block": "32"}, {"n": "1..999..2"})
    assert odd.holds
    assert shown(odd)[0].startswith("s: conflict-free at every value of n that was replayed, ")


@pytest.mark.slow
def test_elements_of_two_bytes_have_a_longer_period(file: str) -> None:
    """Rows of 2 * n bytes: 64 of them are 128 bytes."""
    found = prove(f"{file}:halves", {"block": "32"}, {"n": "2..1000..2"})
    assert (found.period, found.holds) == (64, False)


@pytest.mark.slow
def test_what_has_no_period_is_told(file: str) -> None:
    """The stride jumps at every multiple of 100."""
    found = prove(f"{file}:blocks", {"block": "32"}, {"n": "1..1000"})
    assert found.period == 0
    assert found.contradicted is not None
    one, two = found.contradicted
    assert one.values[0] % 32 == two.values[0] % 32
    assert one.ways != two.ways
    lines = shown(found)
    assert lines[0] == "s: not conflict-free for every n, and not by residues"
    assert lines[1].startswith("Of one residue, and different: n = ")


def test_where_it_cannot_be_analyzed_nothing_is_claimed(file: str) -> None:
    found = prove(f"{file}:column", {"block": "32"}, {"n": "33|1817"})
    assert [each.ways for each in found.replayed] == [1, None]
    assert not found.holds
    assert "block has at most" in found.replayed[1].error


def test_names_stand_in_braces_in_other_options(file: str) -> None:
    options = ["-Dlayout=(32,{n}):({n + 1},1)"]
    found = prove(f"{file}:column", {"block": "{BLOCK}", "options": options}, {"n": "32", "BLOCK": "16|32"})
    assert [(each.values, each.ways) for each in found.replayed] == [((32, 16), 1), ((32, 32), 1)]
    with pytest.raises(MemsimError, match="is no integer of n"):
        prove(f"{file}:column", {"block": "{m}"}, {"n": "32"})
    with pytest.raises(MemsimError, match="the values of n are no integers"):
        prove(f"{file}:column", {"block": "32"}, {"n": "a|b"})
