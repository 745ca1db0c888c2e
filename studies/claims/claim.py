"""A claim: what an article says, and the function that counts what is true of it.

The verdict stands beside the claim, and the counts must come to the same one: each part of the claim is
true or false by its counts, and the verdict is `TRUE` if all parts are, `FALSE` if none is, else `PART`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from studies.counted import Kernels

TRUE, PART, FALSE = "true", "true in part", "false"


@dataclass(frozen=True)
class Finding:
    """What the counts say of a claim.

    counted: the figures, in words. claimed: each part of the claim, and whether it is so.
    facts: what `why` rests on besides, and whether it is so; all of it must be.
    """

    counted: str
    claimed: dict[str, bool]
    why: str
    facts: dict[str, bool]

    @property
    def verdict(self) -> str:
        """What the parts come to."""
        if all(self.claimed.values()):
            return TRUE
        return PART if any(self.claimed.values()) else FALSE

    @property
    def wrong_facts(self) -> list[str]:
        """What `why` rests on, and is not so."""
        return [fact for fact, is_so in self.facts.items() if not is_so]


@dataclass(frozen=True)
class Claim:
    """A claim of an article. name: of its row and of its test. quote: the article's words, translated if need be."""

    name: str
    text: str
    quote: str
    verdict: str
    count: Callable[[Kernels], Finding]


def claim(verdict: str, text: str, quote: str) -> Callable[[Callable[[Kernels], Finding]], Claim]:
    """Makes a claim of the function that counts for it; the function's name becomes the claim's."""
    return lambda count: Claim(count.__name__, text, quote, verdict, count)


def finding(
    counted: str, *, claimed: dict[str, bool], why: str, facts: dict[str, bool] | None = None
) -> Finding:
    """A `Finding`, with no `facts` if there are none."""
    return Finding(counted, claimed, why, facts or {})
