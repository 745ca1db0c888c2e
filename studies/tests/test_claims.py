"""docs/claims.md: a test for each row, and planted faults that make rows wrong."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from memsim.data import data_folder
from memsim.kernels import catalog
from studies.claims import ARTICLES
from studies.claims.claim import FALSE, PART, TRUE, Claim, Finding
from studies.counted import Kernels, shipped
from tests.few import few

CLAIMS = {claim.name: claim for article in ARTICLES.values() for claim in article.claims}
# Words of the claims that are looked for first, and their rows.
NAMED = {
    "ty & 1": "the_published_xor",
    "in fact a 2-way": "b_four_ways_or_two",
    "132, and not 128, avoids": "ld_132",
    "0-16-1-17": "bank_order",
    "only 4 wavefronts": "only_4_wavefronts",
    "only removes the conflicts of the stores": "only_store_conflicts",
    "removes load and store conflicts": "z_order_removes_all",
    "minimize bank conflicts while computing": "minimizes_conflicts",
    "perfectly coalesced": "b_is_coalesced",
    "more than 4 consecutive threads": "broadcast_limit",
    "x with x is good": "x_with_x",
}


def disagreements(claim: Claim, kernels: Kernels) -> list[str]:
    """What is wrong with a claim's row, by what `kernels` cost."""
    found = claim.count(kernels)
    verdict = [] if found.verdict == claim.verdict else [f"{found.verdict}: {found.claimed}"]
    return verdict + found.wrong_facts


@pytest.mark.some(1)
@pytest.mark.parametrize("name", CLAIMS)
def test_the_claim(name: str) -> None:
    """The verdict follows from the counts, and what the reason rests on is so."""
    found = CLAIMS[name].count(shipped())
    assert found.wrong_facts == []
    assert found.verdict == CLAIMS[name].verdict, found.claimed


def test_no_claim_is_there_twice() -> None:
    claims = [claim for article in ARTICLES.values() for claim in article.claims]
    assert len({claim.text for claim in claims}) == len(CLAIMS) == len(claims)


@pytest.mark.parametrize("words", NAMED)
def test_the_best_known_claims_are_there(words: str) -> None:
    assert words in CLAIMS[NAMED[words]].text


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ({"a": True, "b": True}, TRUE),
        ({"a": True, "b": False}, PART),
        ({"a": False, "b": False}, FALSE),
    ],
)
def test_a_verdict_is_what_its_parts_come_to(parts: dict[str, bool], verdict: str) -> None:
    found = Finding("", parts, "", {"so": True, "not so": False})
    assert (found.verdict, found.wrong_facts) == (verdict, ["not so"])


PLANTED = {
    "padding removed": (
        "kernel_v4_padded",
        {"LDA = BM + 4;": "LDA = BM;"},
        "v4_padding",
    ),
    "padding of one float, which the stores do not take": (
        "opt_7_no_bank_conflict",
        {"BM + 4": "BM + 8"},
        "bank_order",
    ),
    "XOR taken out": (
        "kernel_v4",
        {"a_col = a_m ^ 16 * (a_k / 4);": "a_col = a_m;"},
        "v4_permuted",
    ),
    "the published XOR put right": (
        "permuted_write",
        {"s_a[permuted_tx][ty]": "s_a[tx][ty ^ tx]"},
        "the_published_xor",
    ),
    "mapping swapped": (
        "opt_2_naive",
        {
            "row = blockIdx.y * BLOCK + threadIdx.y;": "row = blockIdx.y * BLOCK + threadIdx.x;",
            "col = blockIdx.x * BLOCK + threadIdx.x;": "col = blockIdx.x * BLOCK + threadIdx.y;",
        },
        "x_with_x",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", few(PLANTED, list(PLANTED)[:2]))
def test_a_changed_kernel_makes_its_row_wrong(name: str, tmp_path: Path) -> None:
    kernel, edits, claim = PLANTED[name]
    shutil.copytree(data_folder("kernels"), tmp_path / "kernels")
    spec = catalog()[kernel]
    spec = replace(spec, source=tmp_path / "kernels" / spec.source.name)
    text = spec.source.read_text("utf-8")
    for old, new in edits.items():
        assert old in text
        text = text.replace(old, new)
    spec.source.write_text(text, "utf-8")
    try:
        wrong = disagreements(CLAIMS[claim], Kernels({**catalog(), kernel: spec}))
    except LookupError:  # the line that the claim is about is no more
        wrong = ["gone"]
    assert wrong
    assert disagreements(CLAIMS[claim], Kernels(catalog())) == []


def test_a_wrong_verdict_is_found() -> None:
    claim = CLAIMS["the_published_xor"]
    kernels = Kernels(catalog())
    assert disagreements(claim, kernels) == []
    for verdict in (TRUE, PART):
        assert disagreements(msgspec.structs.replace(claim, verdict=verdict), kernels)


@pytest.mark.slow
def test_a_claim_in_rows_is_judged_by_budgets() -> None:
    claim = CLAIMS["v3_reads_less_often"]
    kernels = Kernels(catalog())
    found = claim.count(kernels)
    assert found.claimed == {"v3.requests < v2.requests": True, "v3.wavefronts < v2.wavefronts": True}
    turned = msgspec.structs.replace(claim, claimed=["v3.requests < v2.requests", "v3.wavefronts <= ideal"])
    assert disagreements(turned, kernels) == [f"{PART}: {turned.count(kernels).claimed}"]
    gone = msgspec.structs.replace(claim, rows={**claim.rows, "v3": "kernel=kernel_v3, width=2"})
    with pytest.raises(LookupError, match="width=2"):
        gone.count(kernels)
