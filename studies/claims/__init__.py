"""docs/claims.md: claims of the articles on conflicts and coalescing, beside what memsim counts.

`studies/tests/test_claims.py` has a test for each claim.
"""

from __future__ import annotations

from collections import Counter
from functools import cache, partial
from types import ModuleType

from studies.claims import ada, beating, chase, guide, opt
from studies.claims.claim import FALSE, PART, TRUE, Claim, Finding
from studies.counted import shipped

ARTICLES: dict[str, ModuleType] = {"chase": chase, "guide": guide, "opt": opt, "ada": ada, "beating": beating}
VERDICTS = (TRUE, PART, FALSE)


def claims_of(article: ModuleType) -> list[Claim]:
    """The claims of an article, in its order."""
    return [value for value in vars(article).values() if isinstance(value, Claim)]


@cache
def finding_of(claim: Claim) -> Finding:
    """What the shipped kernels say of a claim."""
    return claim.count(shipped())


def summary() -> str:
    """How many claims of each article are true, true in part, false."""
    rows = [f"| article | claims | {' | '.join(VERDICTS)} |", "|---|---:|---:|---:|---:|"]
    for article in ARTICLES.values():
        verdicts = Counter(claim.verdict for claim in claims_of(article))
        numbers = " | ".join(str(verdicts[verdict]) for verdict in VERDICTS)
        rows.append(f"| {article.TITLE} | {verdicts.total()} | {numbers} |")
    return "\n".join(rows) + "\n"


def table(article: ModuleType) -> str:
    """A row for each claim."""
    rows = ["| claim | verdict | counted | why |", "|---|---|---|---|"]
    for claim in claims_of(article):
        found = finding_of(claim)
        cells = (claim.text, f"**{claim.verdict}**", found.counted, found.why)
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows) + "\n"


PARTS = {
    "claims: summary": summary,
    **{f"claims: {name}": partial(table, article) for name, article in ARTICLES.items()},
}
