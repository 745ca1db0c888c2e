"""Sweeps on a cluster, of one launch cut by blocks, into Parquet: the same numbers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from memsim.cli import main
from memsim.errors import MemsimError
from memsim.kernels import catalog
from memsim.sweep.analyze_variants import sweep
from memsim.sweep.variants import variants
from tests.cluster import scheduler as scheduler

TRANSPOSES = ("sweep", "transpose_*", "--size", "64,64|96,64")


def chosen() -> list[Any]:
    return variants("transpose_*", {"size": "64,64|96,64"})


@pytest.mark.slow
def test_a_cluster_gives_the_same_numbers(scheduler: str) -> None:
    here = sweep(chosen(), None, jobs=1)
    assert sweep(chosen(), None, scheduler=scheduler) == here
    assert sweep(chosen(), None, scheduler=scheduler, cut=3) == here
    assert len(here) == 6
    assert all(result.counts.wavefronts for result in here)


@pytest.mark.slow
def test_what_a_cluster_found_is_gone_on_with(scheduler: str, tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    found = sweep(chosen(), path, scheduler=scheduler)
    # Nobody is asked again: the scheduler need not be there.
    assert sweep(chosen(), path, scheduler="tcp://127.0.0.1:1") == found


def test_a_variant_that_fails_there_is_told(scheduler: str, tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(
        "import memsim\ndef f(t, n=0):\n    memsim.SharedArray('s', (8,))[t.x + n].load()\n"
    )
    good, bad = sweep(
        variants(f"{tmp_path}/f.py:f", {"block": "4", "options": ["-Dn=4|5"]}), None, scheduler=scheduler
    )
    assert (good.counts.error, good.counts.wavefronts) == ("", 1)
    assert "is outside of s" in bad.counts.error


def test_a_scheduler_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("memsim.workers.PATIENCE", 0.2)
    assert main([*TRANSPOSES, "--scheduler", "tcp://127.0.0.1:1"]) == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in capsys.readouterr().err


def test_without_distributed_and_pyarrow(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main([*TRANSPOSES, "--scheduler", "tcp://127.0.0.1:1"]) == 2
    assert "pip install distributed" in capsys.readouterr().err
    assert main([*TRANSPOSES, "-o", "r.parquet"]) == 2
    assert "pip install pyarrow" in capsys.readouterr().err


def test_a_launch_that_is_not_cut_is_told_and_counted(
    scheduler: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog()["transpose_naive"].trace((64, 64)).save(tmp_path / "t.npz")
    chosen, told = variants(f"{tmp_path}/t.npz|transpose_naive", {}), list[str]()
    saved, here = sweep(chosen[:1], None, cut=2, tell=told.append)[0], sweep(chosen[:1], None)[0]
    assert (saved.counts, told) == (here.counts, ["it has no machine code"])
    assert main(["sweep", f"{tmp_path}/t.npz", "--cut", "2"]) == 0
    assert "note: one process counts all blocks: it has no machine code" in capsys.readouterr().err


def test_no_scheduler_is_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("memsim.workers.PATIENCE", 0.2)
    path = tmp_path / "r.csv"
    with pytest.raises(MemsimError, match="no Dask scheduler answers"):
        sweep(chosen(), path, cut=2, scheduler="tcp://127.0.0.1:1")
    assert len(path.read_text().splitlines()) == 1  # its header


@pytest.mark.slow
def test_one_launch_is_cut_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    one = ("sweep", "transpose_naive", "--size", "64,64", "--jobs", "1")
    assert main([*one, "--cut", "4"]) == 0  # by processes one after the other
    assert capsys.readouterr().out.startswith("1 variant; fewest wavefronts: 4,224, 4,096 shared bytes\n")
    assert main([*one]) == 2
    assert "nothing varies" in capsys.readouterr().err


@pytest.mark.slow
def test_parquet_is_gone_on_with(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path, few = tmp_path / "r.parquet", chosen()[:2]
    first = sweep(few, path, jobs=1)
    table = parquet.read_table(path)
    assert table.column_names[:3] == ["target", "size", "wavefronts"]
    assert table.column("wavefronts").to_pylist() == [result.counts.wavefronts for result in first]
    assert table.schema.field("wavefronts").type == "int64"
    assert table.column("sectors").null_count == 0
    stamp = path.stat().st_mtime_ns
    whole = sweep(chosen(), path, jobs=1)
    assert whole[:2] == first
    assert parquet.read_table(path).num_rows == 6
    assert path.stat().st_mtime_ns != stamp
    assert sweep(chosen(), tmp_path / "r.csv", jobs=1) == whole


def test_what_parquet_had_when_it_was_interrupted_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "r.parquet"

    def stop(done: float) -> None:
        if done > 0.4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(chosen(), path, 1, stop)
    assert parquet.read_table(path).num_rows == 3
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(MemsimError, match="cannot read the results"):
        sweep(chosen(), path, jobs=1)
