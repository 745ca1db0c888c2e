"""Sweeps of one launch cut by blocks, into Parquet: the same numbers."""

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

TRANSPOSES = ("sweep", "transpose_*", "--size", "64,64|96,64")


def chosen() -> list[Any]:
    return variants("transpose_*", {"size": "64,64|96,64"})


def test_a_variant_that_fails_is_told(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(
        "import memsim\ndef f(t, n=0):\n    memsim.SharedArray('s', (8,))[t.x + n].load()\n"
    )
    good, bad = sweep(variants(f"{tmp_path}/f.py:f", {"block": "4", "options": ["-Dn=4|5"]}), None)
    assert (good.counts.error, good.counts.wavefronts) == ("", 1)
    assert "is outside of s" in bad.counts.error


def test_without_pyarrow(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main([*TRANSPOSES, "-o", "r.parquet"]) == 2
    assert "pip install pyarrow" in capsys.readouterr().err


def test_a_launch_that_is_not_cut_is_told_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog()["transpose_naive"].trace((64, 64)).save(tmp_path / "t.npz")
    chosen, told = variants(f"{tmp_path}/t.npz|transpose_naive", {}), list[str]()
    saved, here = sweep(chosen[:1], None, cut=2, tell=told.append)[0], sweep(chosen[:1], None)[0]
    assert (saved.counts, told) == (here.counts, ["it has no machine code"])
    assert main(["sweep", f"{tmp_path}/t.npz", "--cut", "2"]) == 0
    assert "note: one process counts all blocks: it has no machine code" in capsys.readouterr().err


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
