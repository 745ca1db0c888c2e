"""What the phrases of a first line mean: the headings of docs/first-line.md that stand in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from urllib.parse import urljoin

from memsim.data import data_folder, documentation
from memsim.document import DocumentPart

PAGE = "first-line.md"
NUMBER = "N"  # in a heading: any number


class Phrase(DocumentPart, frozen=True, kw_only=True):
    """A phrase of a first line. means: in Markdown, with links from the page. address: of its explanation."""

    phrase: str
    means: str
    address: str

    @property
    def anchor(self) -> str:
        """Its name on the page."""
        return self.address.partition("#")[2]

    @property
    def is_published(self) -> bool:
        """Whether the address leads there from everywhere."""
        return "://" in self.address


def phrases_in(verdict: str, kernel: str) -> Iterator[tuple[slice, Phrase]]:
    """Each phrase of a kernel's first line that has an explanation, with where it stands, in their order."""
    begin = len(f"{kernel}: ") if verdict.startswith(f"{kernel}: ") else 0
    found = []
    for phrase in _phrases():
        text = re.escape(phrase.phrase).replace(NUMBER, r"[\d,]+")
        for match in re.compile(rf"(?<![\w.]){text}(?![\w.])").finditer(verdict, begin):
            found.append((match.start(), match.end(), phrase))
    for start, end, phrase in sorted(found, key=lambda one: one[:2]):
        yield slice(start, end), phrase


def page_address(page: str) -> str:
    """Where a page of docs/ is read: its address where the project is published, else its path in it."""
    published = documentation()
    return urljoin(published, page) if published else f"docs/{page}"


@cache
def _phrases() -> tuple[Phrase, ...]:
    text = (data_folder("docs") / PAGE).read_text("utf-8")
    found = []
    for part in text.split("\n## ")[1:]:
        phrase, _, means = part.partition("\n")
        anchor = re.sub(r"[^\w\s-]", "", phrase).replace(" ", "-").lower()
        address = f"{page_address(PAGE)}#{anchor}"
        found.append(Phrase(phrase=phrase, means=" ".join(means.split()), address=address))
    return tuple(found)
