"""docs/claims.md: claims of the articles on conflicts and coalescing, beside what memsim counts.

`studies/tests/test_claims.py` has a test for each claim.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from memsim.views.plain import table
from studies.claims.claim import FALSE, PART, TRUE, Article, read_article
from studies.counted import shipped

ARTICLES = {name: read_article(name) for name in ("chase", "guide", "opt", "ada", "beating")}
VERDICTS = (TRUE, PART, FALSE)


def summary() -> str:
    """How many claims of each article are true, true in part, false."""
    rows = []
    for article in ARTICLES.values():
        verdicts: Counter[str] = Counter(claim.verdict for claim in article.claims)
        numbers = [len(article.claims), *(verdicts[verdict] for verdict in VERDICTS)]
        rows.append([article.title, *map(str, numbers)])
    return table(["article", "claims", *VERDICTS], rows, "lrrrr") + "\n"


def judged(article: Article) -> str:
    """A row for each claim."""
    rows = []
    for claim in article.claims:
        found = claim.count(shipped())
        cells = (claim.text, f"**{claim.verdict}**", found.counted, found.why)
        rows.append([cell.replace("|", "\\|") for cell in cells])
    return table(["claim", "verdict", "counted", "why"], rows, "llll") + "\n"


PARTS = {
    "claims: summary": summary,
    **{f"claims: {name}": partial(judged, article) for name, article in ARTICLES.items()},
}
