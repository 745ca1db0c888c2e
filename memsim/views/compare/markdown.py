"""Two analyses side by side in Markdown: what differs."""

from __future__ import annotations

from memsim.guard.comparison import Comparisons
from memsim.views.compare.compared_rows import TOTALS, changed_rows, launches_of, total_rows
from memsim.views.plain import code, escaped, table

SHORT_HEADINGS = ("change", "where", "code", "access", "array", "counts")  # a row for each access
CODE = SHORT_HEADINGS.index("code")


def render(comparisons: Comparisons) -> str:
    """The text, without a newline at the end. Accesses and totals that are equal are left out."""
    parts = [f"### {escaped(comparisons.verdict)}"]
    for pair in comparisons.pairs:
        if not pair.differs:
            continue
        if len(comparisons.pairs) > 1:
            parts.append(f"#### {escaped(pair.verdict)}")
        parts += [escaped(launch) for launch in launches_of(pair)]
        rows = changed_rows(pair)
        if rows:
            cells = [
                [code(text) if i == CODE else escaped(text) for i, text in enumerate(row)] for row in rows
            ]
            parts.append(table(SHORT_HEADINGS, cells, "llllll"))
        differing = [total.metric for total in pair.totals if total.before != total.now]
        totals = [row for row in total_rows(pair) if row[0] in differing]
        if totals:
            parts.append(table(TOTALS, [map(escaped, row) for row in totals], "lrrr"))
    return "\n\n".join(parts)
