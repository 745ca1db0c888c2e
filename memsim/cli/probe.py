"""`memsim probe`: for which instructions the model's rules hold on a GPU."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from memsim.cli.options import file_option
from memsim.cli.output import echo_json, say
from memsim.cli.progress import progress_bar
from memsim.cli.recordings import folder_of_recordings, recording_options
from memsim.data import data_folder
from memsim.files import write_text
from memsim.validate.clock.clock_programs import exported
from memsim.validate.clock.clock_recording import ClockRecording, load_clock, newest_clock
from memsim.validate.clock.judge_clock import judge_clock
from memsim.validate.clock.run_clock import run_clock
from memsim.validate.hopper.hopper_recording import HopperLaunch, newest_hopper
from memsim.validate.hopper.judge_hopper import judge_hopper
from memsim.validate.hopper.run_hopper import run_hopper
from memsim.validate.probe.judge_rules import judge_probe
from memsim.validate.probe.probe_recording import newest_probe
from memsim.validate.probe.run_probe import run_probe
from memsim.validate.rates.judge_loops import judge_rates
from memsim.validate.rates.rates_recording import newest_rates
from memsim.validate.rates.run_loops import run_rates
from memsim.validate.rules_file import write_clock_rules, write_rules
from memsim.views.probe import clock as of_clock
from memsim.views.probe import hopper_rules as of_hopper
from memsim.views.probe import rates as of_rates
from memsim.views.probe import rules as of_rules
from memsim.views.probe.probe_report import ProbeReport

FAILED = 1


@click.command()
@click.argument("recording", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--rates", is_flag=True, help="Measure the pipe rates that `memsim bound` uses.")
@click.option(
    "--hopper", is_flag=True, help="Probe wgmma, TMA copies, shared memory of clusters and mbarriers."
)
@click.option("--clock", is_flag=True, help="Measure by cycles instead of counters: no profiler is needed.")
@file_option(
    "--export", help="Write a Python program that measures by cycles, and needs only NVIDIA's driver."
)
@recording_options
@click.pass_context
def probe(
    ctx: click.Context,
    /,
    recording: Path | None,
    rates: bool,
    hopper: bool,
    clock: bool,
    export: Path | None,
    live: bool,
    record: bool,
    gpu: str | None,
    as_json: bool,
    traces: Path | None,
) -> None:
    """Tests the model's rules on a GPU, instruction by instruction.

    One warp executes one instruction on thousands of address patterns, and every count is compared with
    the prediction. Without --live, the newest recording is compared. --live needs a GPU, CuPy and Nsight
    Compute.

    --live --record also writes rules.json next to the recording. With both in the folder of recordings,
    rules that were assumed for the chip count as measured; please contribute them.

    --rates runs loops of one instruction in all warps, and the catalogue kernels, and compares executed
    instructions and cycles with what `memsim bound` predicts.

    --hopper runs small kernels, one launch for each configuration, of the instructions that only Hopper
    has; --live repeats the launches of the recording that ships.

    --clock repeats an instruction in all warps and reads the clock, so it needs no profiler. --export
    FILE writes the same as a program of one file, which needs Python and NVIDIA's driver, not even memsim.
    RECORDING is what that program wrote; --record adds it to the folder of recordings.

    Exit code 1 if a rule does not hold.
    """
    chosen = [name for name, on in (("--rates", rates), ("--hopper", hopper), ("--clock", clock)) if on]
    if len(chosen) > 1:
        raise click.UsageError(f"{' and '.join(chosen)} are different probes; run one at a time", ctx)
    if export is not None:
        if chosen[:1] not in ([], ["--clock"]) or live or record or gpu or recording is not None:
            raise click.UsageError("--export writes the probe by clock, and measures or judges nothing", ctx)
        write_text(export, exported(), "the program")
        say(f"written: {export}; on the GPU's machine: python3 {export.name}")
        return
    if recording is not None:
        if chosen[:1] not in ([], ["--clock"]) or live or gpu:
            raise click.UsageError("RECORDING is by clock, and is judged alone", ctx)
        shown = _by_clock(load_clock(recording), traces or data_folder("traces"), record)
    else:
        folder = folder_of_recordings(ctx, live, record, gpu, traces)
        run = _rates if rates else _hopper if hopper else _clock if clock else _rules
        shown = run(folder, live, record, gpu)
    if as_json:
        echo_json(shown.to_dict())
    else:
        shown.write(sys.stdout)
    ctx.exit(0 if shown.holds else FAILED)


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
