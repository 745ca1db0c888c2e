"""Writes the generated parts of the documentation: captures and tables between markers.

    <!-- begin generated: NAME -->
    ...
    <!-- end generated -->

`python docs/generate.py` writes them, and the pictures (`docs/pictures.py`) and the schema of launch.json.
With `--check` it only says what is stale, and exits 1. `python docs/generate.py README.md docs/ci.md`
writes only the parts of these documents.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from docs import (  # noqa: E402
    bounds,
    by_instruction,
    chips,
    cure,
    first_look,
    guard,
    index_math,
    measured,
    notebook,
    performance,
    pictures,
    public,
    python_kernels,
    questions,
    reference,
    rooms,
    warp_specialised,
)
from docs.capture import capture  # noqa: E402
from docs.growth import page as growth  # noqa: E402
from docs.instruction_table import instruction_table  # noqa: E402
from docs.kernel_table import kernel_table  # noqa: E402
from docs.peers import page as peers  # noqa: E402
from memsim.captured import launch_document  # noqa: E402
from studies import claims, tuning  # noqa: E402
from studies.bench import page as speed  # noqa: E402
from studies.sizes import page as sizes  # noqa: E402

PART = re.compile(r"(<!-- begin generated: (?P<name>[^\n]+?) -->\n).*?(<!-- end generated -->)", re.DOTALL)


PARTS: dict[str, Callable[[], str]] = {
    "analyze kernel_v4": lambda: capture("memsim analyze kernel_v4"),
    "bound kernel_v4_colmajor": lambda: capture("memsim bound kernel_v4_colmajor"),
    "bound transpose_naive": lambda: capture("memsim bound transpose_naive"),
    "probe": lambda: capture("memsim probe"),
    "opcodes": instruction_table,
    "kernels": kernel_table,
    "lines of the rooms": rooms.table,
    "speed of analyze": performance.process_table,
    "speed of the models": performance.model_table,
    "speed of irregular launches": performance.irregular_table,
    "speed of the kernels": speed.section,
    **bounds.PARTS,
    **by_instruction.PARTS,
    **chips.PARTS,
    **claims.PARTS,
    **cure.PARTS,
    **first_look.PARTS,
    **growth.PARTS,
    **guard.PARTS,
    **index_math.PARTS,
    **peers.PARTS,
    **pictures.PARTS,
    **public.PARTS,
    **measured.PARTS,
    **python_kernels.PARTS,
    **questions.PARTS,
    **reference.PARTS,
    **sizes.PARTS,
    **tuning.PARTS,
    **warp_specialised.PARTS,
}
FILES = (
    "README.md",
    "docs/accuracy.md",
    "docs/architecture.md",
    "docs/bounds.md",
    "docs/catalog.md",
    "docs/chips.md",
    "docs/ci.md",
    "docs/claims.md",
    "docs/layouts.md",
    "docs/model.md",
    "docs/own_kernels.md",
    "docs/command-line.md",
    "docs/performance.md",
    "docs/python-api.md",
    "docs/python_kernels.md",
    "docs/questions.md",
    "docs/reading-the-heatmap.md",
    "docs/reading-the-report.md",
    "docs/suggest.md",
    "docs/traces.md",
    "docs/tutorial.md",
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
    chosen = [ROOT / name for name in arguments if not name.startswith("-")]
    for path in chosen:
        path.write_text(filled(path.read_text("utf-8")), "utf-8")
        print(f"written: {path.relative_to(ROOT)}")
    return 0 if chosen else everything(arguments)


def everything(arguments: list[str]) -> int:
    """Writes, or with `--check` compares, every document, picture and notebook."""
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
    if "--check" not in arguments:  # tests/captured reads it
        schema = json.dumps(launch_document.schema(), indent=1)
        (ROOT / "docs" / "launch.schema.json").write_text(f"{schema}\n", "utf-8")
    outdated = notebook.is_stale(ROOT)
    if outdated and "--check" not in arguments:
        notebook.write(ROOT)
    if outdated:
        what = "stale" if "--check" in arguments else "executed"
        print(f"{what}: {notebook.NOTEBOOK}")
    return 1 if (stale or old or outdated) and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
