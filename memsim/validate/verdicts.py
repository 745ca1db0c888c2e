"""Verdicts on single values, predicted and measured.

There is no tolerance: a value is equal, or a surplus is proven to be arbitration, or it is a difference. One
that is predicted by limits lies within them, or is a difference.

Arbitration. If warps compete, shared accesses take more wavefronts. That does not depend on addresses,
differs in each run, and has its own counter, `l1tex__data_bank_conflicts_type_arbitration.sum`. A surplus
counts as arbitration only if

1. the source counters, which exclude arbitration, show the predicted values for every access, and
2. in the same pass over the kernel, wavefronts and conflicts exceed their predictions by the same number, and
   the arbitration counter is at least that number: in that pass too, or, for atomics, in any other, because
   ncu does not collect it together with their counters.

Products. While `wgmma` reads shared memory, loads and stores of other warps take more wavefronts, which are
no conflicts: of 12 launches of a kernel that does one, the other or both, only those that do both showed
them. So in a kernel with products wavefronts may exceed their prediction by more than conflicts do: then the
conflicts are arbitration, and for the wavefronts there is no rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from memsim.analysis import Range
from memsim.validate.profiles import ARBITRATION, ONE_PASS, CodeProfile

#: Wavefronts of the products' operands.
PRODUCTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum"
EXACT = "exact"
NOISE = "arbitration"
WITHIN = "within its limits"
UNMODELLED = "not modelled"
DIFFERENT = "difference"
VERDICTS = (EXACT, NOISE, WITHIN, UNMODELLED, DIFFERENT)


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """One value, predicted and measured.

    predicted: None if there is no rule, or only limits: then it is at least `least` and at most `most`, None
    if nothing limits it. arbitration: the part of the measured value proven to be arbitration. unreliable:
    the profiler may show something else, so that a value that differs says nothing.
    """

    metric: str
    predicted: int | None
    measured: int | float | None
    arbitration: int = 0
    unreliable: bool = False
    least: int | None = None
    most: int | None = None

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        if self.predicted is None and self.measured is not None and self.least is not None:
            below = self.most is None or self.measured <= self.most
            return WITHIN if self.least <= self.measured and below else DIFFERENT
        if self.predicted is None or self.measured is None:
            return UNMODELLED
        own = self.measured - self.arbitration
        if own == self.predicted:
            return NOISE if self.arbitration else EXACT
        return UNMODELLED if self.unreliable else DIFFERENT


def counter_figures(
    profiles: Sequence[CodeProfile],
    predicted: Mapping[str, int | None],
    explained: bool,
    undecided: Mapping[str, Range] | None = None,
) -> Iterator[MetricComparison]:
    """The hardware's counters.

    predicted: by ncu's names. explained: the source counters show the predicted values for every access.
    undecided: what is known of counters that are not predicted.
    """
    one_pass = {metric: metrics for metrics in ONE_PASS.values() for metric in metrics}
    for metric, expected in predicted.items():
        measured = _counter(profiles, metric)
        surplus = 0
        if expected is not None and metric in one_pass:
            together = _counted_together(profiles, set(one_pass[metric]))
            measured = together[metric] if together else measured
            surpluses = _arbitration(profiles, together, predicted) if together and explained else {}
            surplus = surpluses.get(metric, 0)
            if surpluses and metric not in surpluses:
                expected = None
        limits = (undecided or {}).get(metric)
        if expected is None and limits is not None and limits.is_limited:
            yield MetricComparison(metric, None, measured, least=limits.least, most=limits.most)
        else:
            yield MetricComparison(metric, expected, measured, surplus)


def _counter(profiles: Iterable[CodeProfile], metric: str) -> int | float | None:
    """A counter's value; None if it was not collected. If several runs have it, the first one's."""
    return next((one.counters[metric].value for one in profiles if metric in one.counters), None)


def _counted_together(profiles: Iterable[CodeProfile], metrics: Set[str]) -> dict[str, int | float] | None:
    """These counters if they were collected in the same pass over the kernel, else None."""
    for profile in profiles:
        if profile.passes == 1 and metrics <= set(profile.counters):
            return {metric: profile.counters[metric].value for metric in metrics}
    return None


def _arbitration(
    profiles: Sequence[CodeProfile],
    together: Mapping[str, int | float],
    predicted: Mapping[str, int | None],
) -> dict[str, int]:
    """The surpluses that are proven to be arbitration by counters of one pass, by metric; empty if none are.

    Without that of the wavefronts if it is larger than that of the conflicts, and there are products.
    """
    elsewhere = (one.counters[ARBITRATION].value for one in profiles if ARBITRATION in one.counters)
    arbitration = together.get(ARBITRATION, max(elsewhere, default=0))
    expected = {metric: predicted.get(metric) for metric in together if metric != ARBITRATION}
    surpluses = {
        metric: int(together[metric] - count) for metric, count in expected.items() if count is not None
    }
    least = min(surpluses.values(), default=-1)
    if None in expected.values() or not 0 <= least <= arbitration:
        return {}
    proven = {metric: surplus for metric, surplus in surpluses.items() if surplus == least}
    more = surpluses.keys() - proven.keys()
    explained = all("wavefronts" in metric and predicted.get(PRODUCTS) for metric in more)
    return proven if explained else {}
