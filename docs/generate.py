"""Writes the generated parts of the documentation: captures and tables between markers.

    <!-- begin generated: NAME -->
    ...
    <!-- end generated -->

`python docs/generate.py` writes them, the pictures (`docs/pictures.py`), the schema of launch.json and
those of what `--json` prints. With `--check` it only says what is stale, and exits 1. With names,
`python docs/generate.py README.md docs/ci.md`, it writes only the parts and pictures of these documents, and
with `--part kernels` only the parts of that name.
"""

from __future__ import annotations

import json
import re
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from docs import (  # noqa: E402
    bounds,
    by_instruction,
    changed_accesses,
    chips,
    cures,
    deleted_barriers,
    exec_beside_ncu,
    exec_programs,
    first_change,
    first_look,
    guard,
    index_math,
    measured,
    mutants,
    notebook,
    one_pass,
    performance,
    pictures,
    predicted_sets,
    public,
    python_kernels,
    questions,
    reference,
    sanitize_speed,
    schemas,
    time_errors,
    warp_specialised,
)
from docs.capture import capture  # noqa: E402
from docs.growth import page as growth  # noqa: E402
from docs.instruction_table import instruction_table  # noqa: E402
from docs.kernel_table import kernel_table  # noqa: E402
from docs.peers import page as peers  # noqa: E402
from studies import claims, tuning  # noqa: E402
from studies.bench import page as speed  # noqa: E402
from studies.choices import page as choices  # noqa: E402
from studies.sizes import page as sizes  # noqa: E402

PART = re.compile(r"(<!-- begin generated: (?P<name>[^\n]+?) -->\n).*?(<!-- end generated -->)", re.DOTALL)


MODULES = (
    *(
        bounds,
        by_instruction,
        changed_accesses,
        chips,
        choices,
        claims,
        cures,
        exec_beside_ncu,
        exec_programs,
        first_change,
        first_look,
        growth,
        guard,
        index_math,
        measured,
    ),
    *(mutants, peers, pictures, predicted_sets, public, python_kernels, questions, reference, sizes, tuning),
    *(deleted_barriers, one_pass, sanitize_speed, time_errors, warp_specialised),
)
TRANSPOSE = "docs/index_math/transpose.py:transpose --block 32,32 -D 'layout=(32,32):({LD},1)'"
PARTS: dict[str, Callable[[], str]] = {
    "analyze kernel_v4": lambda: capture("memsim analyze kernel_v4"),
    "bound kernel_v4_colmajor": lambda: capture("memsim bound kernel_v4_colmajor"),
    "bound transpose_naive": lambda: capture("memsim bound transpose_naive"),
    "sanitize race": lambda: capture(
        "memsim sanitize docs/sanitize/race.cu --grid 1 --block 64 --arg i32[64]", code=1
    ),
    "time transpose_naive": lambda: capture("memsim time transpose_naive"),
    "cycles of transpose_padded": lambda: capture("memsim time transpose_padded --cycles 1840:1920"),
    "probe": lambda: capture("python -m lab probe"),
    "prove transpose": lambda: capture(f"memsim prove {TRANSPOSE} --for LD=32..1024", code=1),
    "suggest transpose_naive": lambda: capture("memsim suggest transpose_naive"),
    "opcodes": instruction_table,
    "kernels": kernel_table,
    "speed of analyze": performance.process_table,
    "speed of the models": performance.model_table,
    "speed of irregular launches": performance.irregular_table,
    "stages of large kernels": performance.stage_table,
    "speed of the kernels": speed.section,
    **{name: made for module in MODULES for name, made in module.PARTS.items()},
}
#: The documents that have generated parts.
FILES = tuple(
    name
    for name in ("README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))))
    if PART.search((ROOT / name).read_text("utf-8"))
)


def filled(text: str, only: Collection[str] = ()) -> str:
    """`text` with every generated part made anew, or `only` those of these names.

    Raises:
        KeyError: a part that no function makes.
    """

    def made(match: re.Match[str]) -> str:
        return (
            match[0] if only and match["name"] not in only else match[1] + PARTS[match["name"]]() + match[3]
        )

    return PART.sub(made, text)


def stale_texts(root: Path, names: Iterable[str] = FILES, only: Collection[str] = ()) -> dict[Path, str]:
    """The documents below `root` that are not what they would be if generated now, and what they would be."""
    texts = {root / name: (root / name).read_text("utf-8") for name in names}
    new = {path: filled(text, only) for path, text in texts.items()}
    return {path: text for path, text in new.items() if text != texts[path]}


def main(arguments: list[str]) -> int:
    parser = ArgumentParser(description="Writes the generated parts of the documentation.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if one is stale")
    parser.add_argument("--part", action="append", default=[], help="only the parts of this name; repeatable")
    parser.add_argument("files", nargs="*", metavar="FILE", help="only these documents, such as README.md")
    chosen = parser.parse_args(arguments)
    if unknown := {*chosen.files} - {*FILES}:
        parser.error(f"no document with generated parts: {', '.join(sorted(unknown))}")
    if unknown := {*chosen.part} - {*PARTS}:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    some = chosen.files or chosen.part
    documents = chosen.files or FILES
    texts = stale_texts(ROOT, documents, chosen.part)
    shown = pictures.shown_by((ROOT / name).read_text("utf-8") for name in documents)
    old = [] if chosen.part else pictures.stale_pictures(ROOT, shown)
    outdated = not some and notebook.is_stale(ROOT)
    names = [path.relative_to(ROOT).as_posix() for path in (*texts, *old)] + [notebook.NOTEBOOK] * outdated
    if chosen.check:
        for name in names:
            print(f"stale: {name}; run python docs/generate.py")
        return 1 if names else 0
    for path, text in texts.items():
        path.write_text(text, "utf-8")
    if old:
        pictures.write_pictures(old, ROOT)
    if outdated:
        notebook.write(ROOT)
    if not some:  # tests/captured reads it
        schema = json.dumps(schemas.launch_schema(), indent=1)
        (ROOT / "docs" / "launch.schema.json").write_text(f"{schema}\n", "utf-8")
        schemas.write_schemas()
    for name in names:
        print(f"written: {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
