"""Pictures of an analysis that show themselves: in a notebook as HTML, elsewhere as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO

from memsim.analysis import Analysis
from memsim.views.explain import terminal as terminal_request
from memsim.views.explain.choose import chosen
from memsim.views.explain.data import take_apart
from memsim.views.heatmap import terminal as terminal_heatmap
from memsim.views.labels import access
from memsim.views.plain import plain_line
from memsim.views.report import fragment


@dataclass(frozen=True, repr=False)
class Shown:
    """A picture: `print` writes it as text, a notebook shows its HTML."""

    text: str
    html: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html


def heatmap(analyses: Sequence[Analysis]) -> Shown:
    """How each access to shared memory uses the banks.

    Raises:
        MemsimError: none of the kernels touches shared memory.
    """
    stream = StringIO()
    terminal_heatmap.write(analyses, stream)
    return Shown(stream.getvalue().rstrip(), "".join(map(fragment, analyses)))


def explain(analysis: Analysis, line: int | str | None, site: int | None) -> Shown:
    """The worst request of the access on a line, of that number, or of all.

    Raises:
        MemsimError: no such access, or it could not be analyzed.
    """
    number, *others = chosen(analysis, None if line is None else str(line), site)
    stream = StringIO()
    terminal_request.write(take_apart(analysis, number), stream)
    for other in others:
        also = f"Also on this line: site {other}, {access(analysis.sites[other])}"
        stream.write(f"{plain_line(also)}\n")
    text = stream.getvalue().rstrip()
    return Shown(text, f"<pre>{escape(text)}</pre>")
