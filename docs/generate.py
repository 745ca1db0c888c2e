"""Writes the generated parts of the documentation: captures and tables between markers.

In: the Markdown files below, and the code they show. Out: the same files with

    <!-- begin generated: NAME -->
    ...
    <!-- end generated -->

filled in, and pictures (`docs/pictures.py`). `python docs/generate.py` writes; with `--check` it only says
what is stale, and exits 1.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from docs import (  # noqa: E402
    bounds,
    by_instruction,
    claims,
    cure,
    guard,
    index_math,
    measured,
    notebook,
    performance,
    pictures,
    python_kernels,
    speed,
    tuning,
)
from docs.accuracy import accuracy_table  # noqa: E402
from docs.instruction_table import instruction_table  # noqa: E402
from docs.kernel_table import kernel_table  # noqa: E402

PART = re.compile(r"(<!-- begin generated: (?P<name>.+?) -->\n).*?(<!-- end generated -->)", re.DOTALL)


def capture_of(command: str) -> str:
    """What `memsim ...` prints into a pipe."""
    done = subprocess.run(
        [sys.executable, "-m", *command.split()], cwd=ROOT, capture_output=True, encoding="utf-8", check=True
    )
    return f"```text\n$ {command}\n{done.stdout}```\n"


PARTS: dict[str, Callable[[], str]] = {
    "analyze kernel_v4": lambda: capture_of("memsim analyze kernel_v4"),
    "bound kernel_v4_colmajor": lambda: capture_of("memsim bound kernel_v4_colmajor"),
    "bound transpose_naive": lambda: capture_of("memsim bound transpose_naive"),
    "accuracy": accuracy_table,
    "opcodes": instruction_table,
    "kernels": kernel_table,
    "speed of analyze": performance.process_table,
    "speed of the models": performance.model_table,
    "speed of the kernels": speed.section,
    **bounds.PARTS,
    **by_instruction.PARTS,
    **claims.PARTS,
    **cure.PARTS,
    **guard.PARTS,
    **index_math.PARTS,
    **pictures.PARTS,
    **measured.PARTS,
    **python_kernels.PARTS,
    **tuning.PARTS,
}
FILES = (
    "README.md",
    "docs/bounds.md",
    "docs/catalog.md",
    "docs/ci.md",
    "docs/claims.md",
    "docs/layouts.md",
    "docs/model.md",
    "docs/performance.md",
    "docs/python_kernels.md",
    "docs/reading-the-heatmap.md",
    "docs/suggest.md",
    "docs/traces.md",
    "docs/tuning.md",
    "docs/validation.md",
)


def filled(text: str) -> str:
    """`text` with every generated part made anew.

    Raises:
        KeyError: a part that no function makes.
    """
    return PART.sub(lambda match: match[1] + PARTS[match["name"]]() + match[3], text)


def stale_files(root: Path = ROOT) -> list[Path]:
    """The files below `root` that are not what they would be if generated now."""
    paths = [root / name for name in FILES]
    return [path for path in paths if path.read_text("utf-8") != filled(path.read_text("utf-8"))]


def main(arguments: list[str]) -> int:
    stale = stale_files()
    for path in stale:
        if "--check" in arguments:
            print(f"stale: {path.relative_to(ROOT)}; run python docs/generate.py")
        else:
            path.write_text(filled(path.read_text("utf-8")), "utf-8")
            print(f"written: {path.relative_to(ROOT)}")
    old = pictures.stale_pictures(ROOT)
    if old and "--check" not in arguments:
        pictures.write_pictures(old, ROOT)
    for path in old:
        what = "stale" if "--check" in arguments else "drawn"
        print(
            f"{what}: {path.relative_to(ROOT)}" + ("; run python docs/generate.py" if what == "stale" else "")
        )
    outdated = notebook.is_stale(ROOT)
    if outdated and "--check" not in arguments:
        notebook.write(ROOT)
    if outdated:
        what = "stale" if "--check" in arguments else "executed"
        print(f"{what}: {notebook.NOTEBOOK}")
    return 1 if (stale or old or outdated) and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
