"""A claim: what an article says, and what the counts say of it.

`ARTICLE.toml` has the claims of an article: its words (`quote`, translated if need be), the claim in ours
(`text`), and the `verdict`. Each part of a claim, `claimed`, is true or false by the counts, and the verdict is
"true" if all parts are, "false" if none is, else "true in part". What `why` rests on besides, `facts`, has to be
true. Both are budgets of `memsim check` over `rows`: where `rows.a` is 'kernel=kernel_v1, load', `a.sectors`
stands for `sites(kernel=kernel_v1, load).sectors`. A row may also be one of the `requests`, such as
"shared load 16: 4 * lane": space, operation, bytes a lane, and the word of each lane. In the texts `counted`
and `why` rows are filled in by `str.format` as `Cost`.

What budgets cannot say is counted by the function of the claim's name in `ARTICLE.py`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Literal

import msgspec

from memsim.analysis import Analysis
from memsim.guard.budget import parse_budget
from memsim.guard.evaluate import GuardedKernel, check
from memsim.guard.select import Selector, parse_selector
from memsim.plain_addresses import global_access, shared_access
from studies.counted import LANES, Kernels

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TRUE, PART, FALSE = "true", "true in part", "false"
_FIGURE = re.compile(r"\b([a-z]\w*)\.(\w+)")


@dataclass(frozen=True)
class Finding:
    """What the counts say of a claim.

    counted: the figures, in words. claimed: each part of the claim, and whether it is so.
    facts: what `why` rests on besides, and whether it is so; all of it must be.
    """

    counted: str
    claimed: dict[str, bool]
    why: str
    facts: dict[str, bool] = field(default_factory=dict)

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


class Claim(msgspec.Struct, forbid_unknown_fields=True):
    """A claim of an article. name: of its test, and of its function if it has no figures."""

    name: str
    text: str
    quote: str
    verdict: Literal["true", "true in part", "false"]
    rows: dict[str, str] = {}
    requests: dict[str, str] = {}
    counted: str = ""
    claimed: list[str] = []
    why: str = ""
    facts: list[str] = []
    function: Callable[[Kernels], Finding] | None = None

    def count(self, kernels: Kernels) -> Finding:
        """What `kernels` say of it.

        Raises:
            LookupError: a line that it is about is no more, or could not be counted.
        """
        if self.function is not None:
            return self.function(kernels)
        single = {name: _request(text) for name, text in self.requests.items()}
        filters = {**self.rows, **{name: f"kernel={name}" for name in single}}
        selectors = {name: parse_selector(f"sites({text})") for name, text in filters.items()}
        kernels = kernels.beside(single)
        costs = {name: kernels.selected(selector) for name, selector in selectors.items()}
        claimed, facts = (
            {text: _holds(text, selectors, kernels) for text in texts} for texts in (self.claimed, self.facts)
        )
        return Finding(self.counted.format(**costs), claimed, self.why.format(**costs), facts)


def _request(text: str) -> Analysis:
    """The analysis of one request."""
    kind, _, words = text.partition(":")
    space, op, width = kind.split()
    access = {"shared": shared_access, "global": global_access}[space]
    return access(4 * eval(words, {"lane": LANES}), int(width), op).analysis


def _holds(text: str, rows: dict[str, Selector], kernels: Kernels) -> bool:
    """Whether a budget over rows holds."""
    budget = parse_budget(_FIGURE.sub(lambda figure: f"{rows[figure[1]].text}.{figure[2]}", text))
    asked = [budget.selector, *([budget.compared] if budget.compared else [])]
    names = dict.fromkeys(name for selector in asked for name in selector.values("kernel"))
    subject, *others = (GuardedKernel(name, kernels.analysis(name)) for name in names)
    return not check(budget, subject, (), [subject, *others]).findings


class Article(msgspec.Struct, forbid_unknown_fields=True):
    """An article and its claims, in its order."""

    title: str
    claims: list[Claim]


def read_article(name: str) -> Article:
    """The article of that name in this folder."""
    text = Path(__file__).with_name(f"{name}.toml").read_text("utf-8")
    article = msgspec.convert(tomllib.loads(text), Article)
    functions = vars(import_module(f"studies.claims.{name}"))
    for claim in article.claims:
        claim.function = None if claim.claimed else functions[claim.name]
    return article
