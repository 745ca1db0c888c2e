"""`python -m lab`: for which instructions the model's rules hold on a GPU, live or from a recording."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from lab.experiment import Experiment
from lab.experiments import EXPERIMENTS
from memsim.cli import run
from memsim.cli.options import folder_of_recordings, recording_options
from memsim.cli.output import echo_json, progress_bar, say
from memsim.data import data_folder
from memsim.validate.device import slug

FAILED = 1
NAME = "python -m lab"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("experiment", type=click.Choice([*EXPERIMENTS]))
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
    time    Latencies, queues, caches and the start of blocks, timed: the constants of `memsim time`.
    clock   Repeats an instruction in all warps and reads the clock, so it needs no profiler.

    RECORDING is one file, such as that which the program of `memsim probe --export` wrote, for clock;
    --record adds it to the folder of recordings.

    --record of probe and clock also writes the rules that hold next to the recording. With both in the
    folder of recordings, rules that were assumed for the chip count as measured; please contribute them.

    Exit code 1 if a rule does not hold.
    """
    chosen = EXPERIMENTS[experiment]
    if recording is not None:
        if live or gpu:
            raise click.UsageError("RECORDING is judged alone", ctx)
        folder = traces or data_folder("traces")
        recordings = _measured(chosen, [chosen.load(recording)], folder if record else None)
    else:
        folder = folder_of_recordings(ctx, live, record, gpu, traces)
        if live:
            with progress_bar("measuring") as progress:
                recordings = _measured(chosen, chosen.run(progress), folder if record else None)
        else:
            recordings = chosen.newest_of_each(folder, gpu)
    shown = chosen.report(*recordings)
    if record:
        rules = chosen.write_rules(recordings[0], shown.found, folder / slug(recordings[0].gpu))
        if rules is not None:
            say(f"recorded: {rules}", err=True)
    if as_json:
        echo_json(shown.to_dict())
    else:
        shown.write(sys.stdout)
    ctx.exit(0 if shown.holds else FAILED)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code; `arguments` default to the process's own."""
    return run(lab, arguments, NAME)


def _measured(experiment: Experiment[Any], made: Iterable[Any], folder: Path | None) -> list[Any]:
    """The last recording of each stem. folder: keeps them, as soon as there is anything, if it is one."""
    last: dict[str, Any] = {}
    paths: dict[str, Path] = {}
    for recording in made:
        stem = experiment.stem_of(recording)
        last[stem] = recording
        if folder is not None:
            paths[stem] = experiment.save(recording, folder, paths.get(stem))
    for path in paths.values():
        say(f"recorded: {path}", err=True)
    return [*last.values()]
