"""Tests the rules for Hopper's own instructions against their microbenchmarks.

For each launch the counters that a rule predicts are compared without tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lab.experiment import verdict_cell
from lab.hopper import block_rules, cluster_rules, lane_rules
from lab.hopper.hopper_launch import Counters, Expected, HopperLaunch, HopperRecording, Parts

#: Differences of a rule that are told one by one.
TOLD = 10


@dataclass(frozen=True, slots=True)
class HopperHeld:
    """One rule: the number of launches that are as predicted.

    different: (kernel, metric, predicted, measured) of the others.
    """

    name: str
    equal: int
    compared: int
    different: tuple[tuple[str, str, int, int], ...]

    @property
    def holds(self) -> bool:
        """Whether all that was compared is equal."""
        return self.equal == self.compared

    @property
    def cells(self) -> tuple[str, ...]:
        """Its row of the table."""
        return self.name, f"{self.equal:,} of {self.compared:,}", verdict_cell(self.holds)

    def differences(self) -> Iterator[str]:
        """The counters that differ, as far as they are told."""
        for kernel, metric, predicted, measured in self.different[:TOLD]:
            yield f"{self.name}: {kernel}: {metric}: {measured:,} and not {predicted:,}"
        if len(self.different) > TOLD:
            yield f"{self.name}: and {len(self.different) - TOLD:,} more"


def judge_hopper(parts: Parts) -> list[HopperHeld]:
    """The results, rule by rule; rules of which no launch has a counter are omitted."""
    found = [_held(name, expected) for name, expected in _expected(parts)]
    return [held for held in found if held.compared]


def judge_recordings(*recordings: HopperRecording) -> list[HopperHeld]:
    """The results of recordings of several sources, some of which have parts in common."""
    parts: dict[str, tuple[HopperLaunch, ...]] = {}
    for name, launches in (part for one in recordings for part in one.parts.items()):
        parts[name] = (*parts.get(name, ()), *launches)
    return judge_hopper(parts)


def compared_metrics(parts: Parts) -> dict[str, tuple[str, ...]]:
    """The metrics that any rule predicts for a launch of a part."""
    home = {id(launch): part for part, launches in parts.items() for launch in launches}
    found: dict[str, dict[str, None]] = {part: {} for part in parts}
    for _, launches in _expected(parts):
        for launch, expected in launches:
            found[home[id(launch)]].update(dict.fromkeys(expected))
    return {part: tuple(metrics) for part, metrics in found.items()}


def _expected(parts: Parts) -> Iterator[tuple[str, list[tuple[HopperLaunch, Counters]]]]:
    """What each rule predicts."""
    rules: tuple[tuple[str, Callable[[Parts], Expected]], ...] = (
        ("operands of wgmma", block_rules.products),
        ("boxes of tensors", block_rules.boxes),
        ("bulk copies", block_rules.bulk),
        ("copies to several blocks", cluster_rules.multicasts),
        ("shared memory of other blocks", lambda of: block_rules.cluster(of, 1)),
        ("atomics on shared memory of other blocks", cluster_rules.atomics),
        ("asynchronous stores", cluster_rules.async_stores),
        ("copies between blocks", cluster_rules.inside),
        ("shared memory of several blocks", lane_rules.several),
        ("a block's own memory by an address of the cluster", lambda of: block_rules.cluster(of, 0)),
        ("mbarriers: no load, store or atomic", block_rules.barriers),
        ("mbarriers wherever they lie", cluster_rules.objects),
        ("local memory", block_rules.local),
        ("atomics on local memory", lane_rules.of_local_memory),
        ("atomics on global memory", lane_rules.of_global_memory),
        ("instructions without an access", lane_rules.others),
        ("constants at an index", block_rules.constants),
    )
    for name, launches in rules:
        yield name, list(launches(parts))


def _held(name: str, found: list[tuple[HopperLaunch, Counters]]) -> HopperHeld:
    different = []
    equal = 0
    found = [(launch, expected) for launch, expected in found if expected.keys() & launch.counters.keys()]
    for launch, expected in found:
        wrong = [
            (launch.kernel, metric, value, launch.counters[metric])
            for metric, value in expected.items()
            if metric in launch.counters and launch.counters[metric] != value
        ]
        equal += not wrong
        different += wrong
    return HopperHeld(name, equal, len(found), tuple(different))
