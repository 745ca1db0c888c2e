"""What a verb does not use is not imported: every run pays for what is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: What a check from the cache has no use for: what makes traces, tables, suggestions, processes.
UNUSED = {
    *("rich", "multiprocessing", "concurrent.futures", "tree_sitter"),
    *("memsim.isa.op", "memsim.trace.record"),
    *("memsim.suggest", "memsim.views.explain", "memsim.sass", "memsim.sketch"),
}
#: What draws, reads the traces of other tools, executes code, or writes a format that nobody asked for.
HEAVY = {
    *("matplotlib", "pandas", "tree_sitter", "networkx", "xml.etree.ElementTree"),
    *(
        "memsim.trace.foreign.formats",
        "memsim.simt.engine",
        "tests.ptx_front.parser",
    ),
    *(
        "memsim.views.report",
        "memsim.views.check.check_formats",
        "memsim.captured.triton",
    ),
}


def imported(folder: Path, *arguments: str) -> set[str]:
    """The modules that a run of memsim has imported when it ends."""
    code = (
        "import sys, atexit, os\n"
        "atexit.register(lambda: open('modules', 'w').write('\\n'.join(sys.modules)))\n"
        f"sys.argv = ['memsim', *{arguments!r}]\n"
        "from memsim.cli import main\nmain()"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MEMSIM_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return set((folder / "modules").read_text().split())


@pytest.mark.some(1)
@pytest.mark.parametrize("verb", ["analyze", "check", "baseline", "explain", "sweep", "suggest", "validate"])
def test_help_needs_none_of_it(verb: str, tmp_path: Path) -> None:
    found = imported(tmp_path, verb, "--help")
    assert "memsim.cli" in found and not found & HEAVY


@pytest.mark.slow
def test_a_check_from_the_cache_executes_nothing(tmp_path: Path) -> None:
    (tmp_path / "memsim.toml").write_text('budgets = ["conflicts == 0"]\n[[targets]]\nkernel = "kernel_v4"\n')
    assert imported(tmp_path, "check") & HEAVY  # at first it does
    (tmp_path / "memsim.toml").write_text('budgets = ["ways <= 1"]\n[[targets]]\nkernel = "kernel_v4"\n')
    found = imported(tmp_path, "check")
    assert "memsim.guard.judge" in found
    assert not found & (HEAVY | UNUSED)
    assert "memsim.views.check.check_formats" in imported(tmp_path, "check", "--format", "junit")


@pytest.mark.slow
def test_a_list_needs_no_numpy_and_a_report_for_a_file_no_rich(tmp_path: Path) -> None:
    assert not {"numpy", "rich"} & imported(tmp_path, "list")
    small = "analyze", "transpose_naive", "--size", "64,64"
    assert "memsim.simt.engine" in imported(tmp_path, *small)
    kept = imported(tmp_path, *small, "--sort", "line")  # another answer, of the trace that is kept
    assert "memsim.analysis" in kept and not {"rich", "memsim.compile.shown_sources"} & kept
    assert not kept & HEAVY
