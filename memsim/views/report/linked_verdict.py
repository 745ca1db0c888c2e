"""The report's first line: each phrase that has an explanation leads to it, at the page's end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from memsim.analysis import Analysis
from memsim.analysis.first_line import Phrase, phrases_in

if TYPE_CHECKING:
    from markupsafe import Markup

MARK = re.compile(r"`(?P<code>[^`]+)`|\*(?P<name>[^*]+)\*|\[(?P<said>[^]]+)\]\((?P<page>[^)]+)\)")


def phrases_of(analysis: Analysis) -> Iterator[tuple[slice, Phrase]]:
    """The phrases of an analysis's first line, with where they stand."""
    return phrases_in(analysis.verdict, analysis.trace.kernel)


def linked_verdict(analysis: Analysis) -> Markup:
    """The verdict as a sentence, without the kernel's name."""
    from markupsafe import Markup

    text = analysis.verdict
    done = len(analysis.trace.kernel) + 2 if text.startswith(f"{analysis.trace.kernel}: ") else 0
    text = text[:done] + text[done : done + 1].upper() + text[done + 1 :]
    parts = [Markup()]
    for place, phrase in phrases_of(analysis):
        link = Markup('<a href="#{}">{}</a>').format(phrase.anchor, text[place])
        parts += [Markup.escape(text[done : place.start]), link]
        done = place.stop
    return Markup().join([*parts, Markup.escape(text[done:])])


def meaning(phrase: Phrase) -> Markup:
    """Its explanation; pages are links where the documentation has an address."""
    from markupsafe import Markup

    parts, done = [Markup()], 0
    for mark in MARK.finditer(phrase.means):
        parts.append(Markup.escape(phrase.means[done : mark.start()]))
        if mark["code"]:
            parts.append(Markup("<code>{}</code>").format(mark["code"]))
        elif mark["name"]:
            parts.append(Markup("<em>{}</em>").format(mark["name"]))
        elif phrase.is_published:
            said = mark["said"].replace("`", "")
            parts.append(Markup('<a href="{}">{}</a>').format(urljoin(phrase.address, mark["page"]), said))
        else:
            parts.append(Markup.escape(f"{mark['said'].replace('`', '')} (docs/{mark['page']})"))
        done = mark.end()
    return Markup().join([*parts, Markup.escape(phrase.means[done:])])
