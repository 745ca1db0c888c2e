"""Ten classic accesses, and a page of them that needs no server: they are answered before, and their cures.

Other states are answered by Python in the browser where the site has it; where not, the page says the
command, and its links carry the same state as those of `memsim play`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlencode

import msgspec
from msgspec import structs

from memsim.play.question import Answer, Question, answer

HERE = Path(__file__).parent
GALLERY: Mapping[str, Question] = {
    "transpose": Question(),
    "padded": Question(layout="(32,32):(33,1)"),
    "XOR": Question(layout="Sw<5,0,5> o (32,32):(32,1)"),
    "every second word": Question(layout="(2048):(1)", store="", load="rank * 2"),
    "broadcast": Question(store="", load="y, 7"),
    "a row of float4": Question(layout="(64,128):(128,1)", block="32x8", store="", load="y, x * 4", vector=4),
    "float4, two rows of lanes": Question(
        layout="(16,64):(64,1)", block="256", store="", load="rank / 16, rank % 16 * 4", vector=4
    ),
    "a column of halves": Question(
        layout="(64,64):(64,1)", element="f16", block="64x8", store="", load="x, y * 8", vector=8
    ),
    "reduction, stride 2": Question(layout="(1024):(1)", block="256", store="", load="rank * 2 % 512"),
    "columns of a matrix": Question(memory="global", layout="(1024,1024):(1024,1)", store="", load="x, y"),
}


def page() -> str:
    """The page of `memsim play`."""
    return _with_data(None, None)


def static_page(worker: str | None = None) -> str:
    """A page of the gallery, in one file, which asks nobody but a worker of its own.

    worker: where `worker.js` lies, beside the files that it loads; None where they are not on the site.
    """
    answers = {address(question): msgspec.to_builtins(found) for question, found in answers_of_gallery()}
    script = (HERE / "page.js").read_text("utf-8")
    return _with_data(answers, worker).replace(
        '<script src="page.js"></script>', f"<script>\n{script}</script>"
    )


def answers_of_gallery() -> Iterator[tuple[Question, Answer]]:
    """Each question of the gallery, and what its cures lead to, with their answers."""
    for question in GALLERY.values():
        found = answer(question)
        yield question, found
        for cure in found.cures:
            cured = structs.replace(question, layout=cure.layout)
            yield cured, answer(cured)


def address(question: Question) -> str:
    """What stands after the # of a link to a state of the page."""
    return urlencode(structs.asdict(question), safe="*")  # as a browser writes it


def _with_data(answers: Mapping[str, object] | None, worker: str | None) -> str:
    gallery = {title: structs.asdict(question) for title, question in GALLERY.items()}
    parts = {"first": structs.asdict(Question()), "gallery": gallery, "answers": answers, "worker": worker}
    data = json.dumps(parts)
    return (HERE / "page.html").read_text("utf-8").replace("{{ data }}", data.replace("<", "\\u003c"))
