"""A first `memsim.toml`: the launches that were saved below a folder as targets, and how others are said."""

from __future__ import annotations

import json
from pathlib import Path

from memsim.captured.saved_launch import LAUNCH, is_launch

HEAD = """\
# What `memsim check` guards, against the counts in memsim-baseline.toml.
# memsim baseline   writes that file
# memsim check      fails if an access costs more than before, and names kernels that no target guards
#
# A target is a program, each launch of which is counted, or a kernel; `memsim list FILE` shows how a
# file's kernels are launched.
#
#   [[targets]]
#   command = "./app --size 1024"
#
#   [[targets]]
#   file = "src/scale.cu"
#   kernel = "scale"
#   grid = [8]
#   block = [128]
#   args = ["f32[1024]", "2.0"]

budgets = ["baseline"]
"""


def first_project(folder: Path) -> tuple[str, int]:
    """(text, number of targets): one for each launch that was saved below a folder."""
    saved = [path.relative_to(folder) for path in sorted(folder.rglob(LAUNCH)) if is_launch(path)]
    tables = (
        f"[[targets]]\nname = {json.dumps(file.parent.as_posix())}\nfile = {json.dumps(file.as_posix())}\n"
        for file in saved
    )
    return "\n".join([HEAD, *tables]), len(saved)
