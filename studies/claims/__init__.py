"""docs/claims.md: claims of the articles on conflicts and coalescing, beside what memsim counts.

`studies/tests/test_claims.py` has a test for each claim.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from studies.claims.claim import FALSE, PART, TRUE, Article, read_article
from studies.counted import shipped

ARTICLES = {name: read_article(name) for name in ("chase", "guide", "opt", "ada", "beating")}
VERDICTS = (TRUE, PART, FALSE)


def summary() -> str:
    """How many claims of each article are true, true in part, false."""
    rows = [f"| article | claims | {' | '.join(VERDICTS)} |", "|---|---:|---:|---:|---:|"]
    for article in ARTICLES.values():
        verdicts: Counter[str] = Counter(claim.verdict for claim in article.claims)
        numbers = " | ".join(str(verdicts[verdict]) for verdict in VERDICTS)
        rows.append(f"| {article.title} | {len(article.claims)} | {numbers} |")
    return "\n".join(rows) + "\n"


def table(article: Article) -> str:
    """A row for each claim."""
    rows = ["| claim | verdict | counted | why |", "|---|---|---|---|"]
    for claim in article.claims:
        found = claim.count(shipped())
        cells = (claim.text, f"**{claim.verdict}**", found.counted, found.why)
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows) + "\n"


PARTS = {
    "claims: summary": summary,
    **{f"claims: {name}": partial(table, article) for name, article in ARTICLES.items()},
}
