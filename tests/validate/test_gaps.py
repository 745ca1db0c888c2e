"""Known differences: explained, unexplained, and gone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memsim.errors import MemsimError
from memsim.validate.gaps import FILE, Gap, judge, read_gaps
from memsim.validate.replay import replay
from tests.validate.conftest import TRACES, recorded

STORE = "kernels/edge.cuh:{} global store"
STORES = tuple(STORE.format(line) for line in (25, 26, 27, 28))
GAP = Gap(("kernel_v4",), ("331,269,147",), STORES, "predicated", "because")


def test_every_difference_is_explained_or_it_fails() -> None:
    comparison = replay(recorded("kernel_v4", ragged=True))
    judged = judge(comparison, [GAP])
    assert judged.passed and judged.known == dict.fromkeys(STORES, "because")
    assert judge(comparison, []).unexplained == dict.fromkeys(STORES, "predicated")
    assert not judge(comparison, []).passed
    assert judge(comparison, [replace(GAP, kernels=("kernel_v5",))]).unexplained
    assert list(judge(comparison, [replace(GAP, where=STORES[1:])]).unexplained) == [STORES[0]]


def test_another_change_than_the_known_one_fails_twice() -> None:
    judged = judge(replay(recorded("kernel_v4", ragged=True)), [replace(GAP, change="merged")])
    assert set(judged.unexplained) == set(judged.gone) == set(STORES)


def test_a_difference_that_is_gone_fails() -> None:
    comparison = replay(recorded("kernel_v4", ragged=True))
    stale = replace(GAP, where=(*STORES, STORE.format(99)))
    assert judge(comparison, [stale]).gone == {STORE.format(99): "predicated"}
    assert not judge(comparison, [stale]).passed
    assert judge(comparison, [replace(stale, sizes=("8,8,8",))]).passed  # it was seen at another size


def test_a_gap_at_one_size_is_not_missed_at_another() -> None:
    comparison = replay(recorded("kernel_v4"))
    assert judge(comparison, [GAP]).passed
    assert judge(comparison, [replace(GAP, sizes=())]).gone


def test_the_file_that_ships_is_read() -> None:
    gaps = read_gaps(TRACES / FILE)
    assert len(gaps) > 5 and all(gap.reason and gap.where for gap in gaps)


ENTRY = '[[gap]]\nkernels = ["a"]\nwhere = ["b"]\nchange = "merged"\nreason = "c"\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[gap]\n", "not TOML"),
        ("[other]\n", r"only \[\[gap\]\] tables"),
        (ENTRY.replace('reason = "c"\n', ""), "gap 1 has change, kernels, where"),
        (ENTRY + 'gpu = "x"\n', "gap 1 has"),
        (ENTRY.replace('["a"]', '"a"'), "kernels must be a list of texts"),
        (ENTRY.replace('"c"', '" "'), "reason must be a text"),
    ],
)
def test_a_file_that_is_wrong(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "gaps.toml"
    path.write_text(ENTRY)
    assert read_gaps(path) == [Gap(("a",), (), ("b",), "merged", "c")]
    path.write_text(text)
    with pytest.raises(MemsimError, match=says):
        read_gaps(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(MemsimError, match="cannot read the known gaps"):
        read_gaps(tmp_path / "nothing.toml")
