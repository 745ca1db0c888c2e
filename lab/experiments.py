"""The experiments, by name."""

from __future__ import annotations

from typing import Any

from lab.clock.judge_clock import ClockRecording, judge_clock, run_clock
from lab.experiment import Experiment
from lab.hopper.hopper_launch import SOURCES, HopperRecording, earlier_hopper
from lab.hopper.judge_hopper import judge_recordings
from lab.hopper.run_hopper import run_hopper
from lab.probe.judge_probe import judge_probe
from lab.probe.run_probe import ProbeRecording, earlier_probe, run_probe
from lab.rates.judge_rates import RateRecording, judge_rates
from lab.rates.run_rates import run_rates
from lab.rules_file import write_clock_rules, write_rules
from lab.time.judge_time import judge_time
from lab.time.run_time import TimeRecording, run_time
from memsim.data import data_folder
from memsim.views.screen import Column

#: One warp, one instruction for each pattern of addresses.
PROBE = Experiment(
    name="probe",
    what="of the probe",
    kind=ProbeRecording,
    stems=("probe",),
    run=lambda progress: [run_probe(progress)],
    judge=judge_probe,
    answer="the rules hold for {} of {} instructions",
    columns=(
        Column("instruction"),
        Column("access"),
        Column("patterns equal", keep=2),
        Column("counters equal", keep=1),
        Column(""),
    ),
    earlier=earlier_probe,
    write_rules=write_rules,
)
#: Small kernels of Hopper's own instructions, one launch for each configuration of those that were recorded.
HOPPER: Experiment[HopperRecording] = Experiment(
    name="hopper",
    what="of Hopper's probe",
    kind=HopperRecording,
    stems=tuple(f"hopper/{name}" for name in SOURCES),
    run=lambda progress: run_hopper(HOPPER.newest_of_each(data_folder("traces")), progress),
    judge=judge_recordings,
    answer="{} of {} rules for Hopper's own instructions hold",
    columns=(Column("rule"), Column("launches equal", keep=1), Column("")),
    records="rules",
    earlier=earlier_hopper,
)
#: Loops of one instruction in all warps, streams, and the catalogue, beside their bounds.
RATES = Experiment(
    name="rates",
    what="of rates",
    kind=RateRecording,
    stems=("rates/rates",),
    run=lambda progress: run_rates(progress),
    judge=judge_rates,
    answer="the bounds hold for {} of {} launches",
    columns=(
        Column("launch"),
        Column("bound by", keep=1),
        Column("bound", right=True, keep=3),
        Column("cycles", right=True, keep=3),
        Column("cycles/bound", right=True),
        Column("counters equal", right=True, keep=2),
    ),
    suffix=".json",
    records="launches",
    failed=lambda recording: recording.failed,
)
#: Cycles of repeated instructions, by a program that needs no profiler.
CLOCK = Experiment(
    name="clock",
    what="by clock",
    kind=ClockRecording,
    stems=("clock",),
    run=lambda progress: [run_clock()],
    judge=judge_clock,
    answer="by clock, the rules and rates hold for {} of {} instructions",
    columns=(
        Column("instruction"),
        Column("access or opcode"),
        Column("equal", keep=1),
        Column("predicted", right=True, keep=2),
        Column("by clock", right=True, keep=2),
        Column(""),
    ),
    suffix=".json",
    write_rules=write_clock_rules,
)
#: Latencies, queues, caches and launches, by programs that read the clock.
TIME = Experiment(
    name="time",
    what="of times",
    kind=TimeRecording,
    stems=("time",),
    run=lambda progress: run_time(progress),
    judge=judge_time,
    answer="{} of {} constants of the model of time are as measured",
    columns=(
        Column("constant"),
        Column("set", right=True, keep=2),
        Column("measured", right=True, keep=2),
        Column(""),
    ),
    suffix=".json",
    records="constants",
    failed=lambda recording: recording.failed,
)
EXPERIMENTS: dict[str, Experiment[Any]] = {one.name: one for one in (PROBE, HOPPER, RATES, CLOCK, TIME)}
