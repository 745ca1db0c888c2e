"""The page of the playground, and ten classic accesses on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode

from msgspec import structs

from memsim.play.question import Question

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


def address(question: Question) -> str:
    """What stands after the # of a link to a state of the page."""
    return urlencode(structs.asdict(question), safe="*")  # as a browser writes it


def page(answers: Mapping[str, object] | None = None, worker: str | None = None) -> str:
    """The page of `memsim play`; with answers, by address, of one that asks no server but a worker."""
    gallery = {title: structs.asdict(question) for title, question in GALLERY.items()}
    parts = {"first": structs.asdict(Question()), "gallery": gallery, "answers": answers, "worker": worker}
    data = json.dumps(parts)
    return (HERE / "page.html").read_text("utf-8").replace("{{ data }}", data.replace("<", "\\u003c"))
