"""The `#include` lines of a text, read so that none escapes: what a compiler opens, it may also print.

There is no preprocessing, so lines in comments that begin as directives do count.
"""

from __future__ import annotations

import re

# A backslash, or the trigraph of one, at the end of a line joins the next one to it.
_SPLICE = re.compile(r"(?:\\|\?\?/)[^\S\n]*\n")
# Only blanks and comments may stand before a directive; one that ends there may have begun anywhere. Behind
# the `#`, a comment may hide any directive.
_DIRECTIVE = re.compile(
    r"^(?:[^\n]*\*/)?[^\S\n]*(?:\#|%:|\?\?=)[^\S\n]*(?:/\*|(?:include|import|embed)[^\n]*)", re.M
)
_LITERAL = re.compile(r'[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)[^\n]*')


def literal_includes(text: str) -> list[str] | None:
    """The names of the files that a text includes; None if one of them is not written out.

    That is so of a macro's, and of a line that is written to look like another one.
    """
    text = text.replace("\r", "\n")
    joined, written = _DIRECTIVE.findall(_SPLICE.sub("", text)), {*_DIRECTIVE.findall(text)}
    found = [_LITERAL.fullmatch(line) if line in written else None for line in joined]
    return [name[1] or name[2] for name in found if name is not None] if all(found) else None
