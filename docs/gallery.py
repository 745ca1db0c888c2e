"""The playground's page as the site has it, without a server: its examples and their cures are answered.

Other states are answered by Python in the browser where the site has it; where not, the page says the
command, and its links carry the same state as those of `memsim play`.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from memsim.play.question import Answer, Question, answer
from memsim.play.server import GALLERY, HERE, address, page


def static_page(worker: str | None = None) -> str:
    """A page of the gallery, in one file, which asks nobody but a worker of its own.

    worker: where `worker.js` lies, beside the files that it loads; None where they are not on the site.
    """
    answers = {address(question): msgspec.to_builtins(found) for question, found in _answers()}
    script = (HERE / "page.js").read_text("utf-8")
    return page(answers, worker).replace('<script src="page.js"></script>', f"<script>\n{script}</script>")


def _answers() -> Iterator[tuple[Question, Answer]]:
    """Each question of the gallery, and what its cures lead to, with their answers."""
    for question in GALLERY.values():
        found = answer(question)
        yield question, found
        for cure in found.cures:
            cured = msgspec.structs.replace(question, layout=cure.layout)
            yield cured, answer(cured)
