"""Two analyses side by side in Markdown: what differs."""

from __future__ import annotations

from collections.abc import Sequence

from memsim.guard.comparison import Comparisons
from memsim.views.compare.compared_rows import TOTALS, changed_rows, launches_of, total_rows
from memsim.views.markdown_text import code, escaped

SHORT_HEADINGS = ("change", "where", "code", "access", "array", "counts")  # a row for each access


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
            parts.append(_table(SHORT_HEADINGS, len(SHORT_HEADINGS), rows, code_column=2))
        differing = [total.metric for total in pair.totals if total.before != total.now]
        totals = [row for row in total_rows(pair) if row[0] in differing]
        if totals:
            parts.append(_table(TOTALS, 1, totals))
    return "\n\n".join(parts)


def _table(
    headings: Sequence[str], texts: int, rows: Sequence[Sequence[str]], code_column: int | None = None
) -> str:
    rule = ["---" if number < texts else "---:" for number in range(len(headings))]
    cells = [
        [code(cell) if number == code_column else escaped(cell) for number, cell in enumerate(row)]
        for row in rows
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in (headings, rule, *cells))
