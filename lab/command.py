"""`python -m lab`: for which instructions the model's rules hold on a GPU, live or from a recording."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from lab.clock.clock_recording import ClockRecording, load_clock, newest_clock
from lab.clock.judge_clock import judge_clock
from lab.clock.run_clock import run_clock
from lab.hopper.hopper_recording import HopperLaunch, newest_hopper
from lab.hopper.judge_hopper import judge_hopper
from lab.hopper.run_hopper import run_hopper
from lab.probe.judge_rules import judge_probe
from lab.probe.probe_recording import newest_probe
from lab.probe.run_probe import run_probe
from lab.rates.judge_loops import judge_rates
from lab.rates.rates_recording import newest_rates
from lab.rates.run_loops import run_rates
from lab.rules_file import write_clock_rules, write_rules
from lab.views import clock as of_clock
from lab.views import hopper_rules as of_hopper
from lab.views import rates as of_rates
from lab.views import rules as of_rules
from lab.views.probe_report import ProbeReport
from memsim.cli import run
from memsim.cli.output import echo_json, say
from memsim.cli.progress import progress_bar
from memsim.cli.recordings import folder_of_recordings, recording_options
from memsim.data import data_folder

FAILED = 1
NAME = "python -m lab"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("experiment", type=click.Choice(["probe", "hopper", "rates", "clock"]))
@click.argument("recording", required=False, type=click.Path(path_type=Path, dir_okay=False))
@recording_options
@click.pass_context
def lab(
    ctx: click.Context,
    /,
    experiment: str,
    recording: Path | None,
    live: bool,
    record: bool,
    gpu: str | None,
    as_json: bool,
    traces: Path | None,
) -> None:
    """Tests the model's rules on a GPU, instruction by instruction.

    Without --live, the newest recording is compared. --live needs a GPU, CuPy and Nsight Compute.

    \b
    probe   One warp executes one instruction on thousands of address patterns, and every count is
            compared with the prediction.
    hopper  Small kernels, one launch for each configuration, of the instructions that only Hopper has;
            --live repeats the launches of the recordings in the repository.
    rates   Loops of one instruction in all warps, and the catalogue kernels: executed instructions and
            cycles are compared with what `memsim bound` predicts.
    clock   Repeats an instruction in all warps and reads the clock, so it needs no profiler.
            RECORDING is what the program of `memsim probe --export` wrote; --record adds it to the
            folder of recordings.

    --record of probe and clock also writes the rules that hold next to the recording. With both in the
    folder of recordings, rules that were assumed for the chip count as measured; please contribute them.

    Exit code 1 if a rule does not hold.
    """
    if recording is not None:
        if experiment != "clock" or live or gpu:
            raise click.UsageError("RECORDING is by clock, and is judged alone", ctx)
        shown = _by_clock(load_clock(recording), traces or data_folder("traces"), record)
    else:
        folder = folder_of_recordings(ctx, live, record, gpu, traces)
        shown_by = {"probe": _rules, "hopper": _hopper, "rates": _rates, "clock": _clock}[experiment]
        shown = shown_by(folder, live, record, gpu)
    if as_json:
        echo_json(shown.to_dict())
    else:
        shown.write(sys.stdout)
    ctx.exit(0 if shown.holds else FAILED)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code; `arguments` default to the process's own."""
    return run(lab, arguments, NAME)


def _rules(folder: Path, live: bool, record: bool, gpu: str | None) -> ProbeReport:
    """What held of the rules for instructions."""
    if not live:
        recording = newest_probe(folder, gpu)
        return of_rules.report(recording, judge_probe(recording))
    with progress_bar("probing") as progress:
        recording = run_probe(progress)
    found = judge_probe(recording)
    if record:
        path = recording.save(folder)
        say(f"recorded: {path}", err=True)
        say(f"recorded: {write_rules(recording, found, path.parent)}", err=True)
    return of_rules.report(recording, found)


def _hopper(folder: Path, live: bool, record: bool, gpu: str | None) -> ProbeReport:
    """The same for Hopper's own instructions, of which there are several recordings."""
    if live:
        with progress_bar("probing Hopper") as progress:
            recordings = run_hopper(newest_hopper(data_folder("traces")), progress)
        for one in recordings if record else ():
            say(f"recorded: {one.save(folder)}", err=True)
    else:
        recordings = newest_hopper(folder, gpu)
    parts: dict[str, tuple[HopperLaunch, ...]] = {}
    for name, launches in (part for one in recordings for part in one.parts.items()):
        parts[name] = (*parts.get(name, ()), *launches)
    return of_hopper.report(recordings, judge_hopper(parts))


def _rates(folder: Path, live: bool, record: bool, gpu: str | None) -> ProbeReport:
    """The same for the rates of the pipes."""
    if live:
        path = None
        with progress_bar("probing rates") as progress:
            for recording in run_rates(progress):
                path = recording.save(folder, path) if record else None
        if path is not None:
            say(f"recorded: {path}", err=True)
    else:
        recording = newest_rates(folder, gpu)
    return of_rates.report(recording, judge_rates(recording))


def _clock(folder: Path, live: bool, record: bool, gpu: str | None) -> ProbeReport:
    """The same by clock."""
    recording = run_clock() if live else newest_clock(folder, gpu)
    return _by_clock(recording, folder, record)


def _by_clock(recording: ClockRecording, folder: Path, record: bool) -> ProbeReport:
    found = judge_clock(recording)
    if record:
        path = recording.save(folder)
        say(f"recorded: {path}", err=True)
        say(f"recorded: {write_clock_rules(recording, found, path.parent)}", err=True)
    return of_clock.report(recording, found)
