"""`memsim validate`: predictions beside hardware counters, live or from recordings."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from memsim.cli.progress import progress_bar
from memsim.cli.recordings import folder_of_recordings, recording_options
from memsim.data import data_folder
from memsim.errors import MemsimError
from memsim.kernels import Spec, catalog, compiled
from memsim.report import validation
from memsim.validate import gaps
from memsim.validate.compare import Comparison
from memsim.validate.gaps import Judgement
from memsim.validate.live import measure
from memsim.validate.recording import Recording
from memsim.validate.replay import replay
from memsim.validate.shelf import new_path, newest_of_each, newest_recording
from memsim.validate.sizes import RAGGED, size_of

FAILED, MISSING = 1, 2


@click.command()
@click.argument("kernel", required=False)
@click.option("--all", "everything", is_flag=True, help="Every kernel of the catalogue.")
@click.option("--size", metavar="M,N,K", help=f"Problem size, or '{RAGGED}' for one that fits no tile.")
@recording_options
@click.pass_context
def validate(
    ctx: click.Context,
    /,
    kernel: str | None,
    everything: bool,
    live: bool,
    record: bool,
    size: str | None,
    gpu: str | None,
    as_json: bool,
    traces: Path | None,
) -> None:
    """Sets what memsim predicts for KERNEL beside what a GPU counts.

    Without --live it compares with the newest recording, on any machine. With --live it runs the same
    PTX on the same data under Nsight Compute, and checks the result too; that needs a GPU, CuPy and ncu.

    Exits with 1 if something differs that is not explained in known_gaps.toml.

    \b
    Examples:
      memsim validate kernel_v4
      memsim validate kernel_v4 --live --size 512,512,256
      memsim validate --all --live --record
    """
    if everything == (kernel is not None):
        raise click.UsageError("name one kernel, or give --all", ctx)
    folder = folder_of_recordings(ctx, live, record, gpu, traces)
    if live:
        recordings = _measured(kernel, size, folder if record else None)
    elif kernel is not None:
        recordings = [newest_recording(folder, *_launch(kernel, size), gpu)]
    else:
        recordings = _recorded(folder, size, gpu)

    known = gaps.read_gaps(data_folder("traces") / gaps.FILE)
    pairs: list[tuple[Comparison, Judgement]] = []
    stale = 0
    for recording in recordings:
        try:
            comparison = replay(recording)
        except MemsimError as error:
            if not everything:
                raise
            click.echo(f"error: {error}", err=True)
            stale += 1
        else:
            pairs.append((comparison, gaps.judge(comparison, known)))
    _show(pairs, as_json, everything)
    if stale:
        ctx.exit(MISSING)
    ctx.exit(0 if all(judgement.passed for _, judgement in pairs) else FAILED)


def _launch(kernel: str, size: str | None) -> tuple[Spec, tuple[int, ...]]:
    """The kernel, or the one that a dispatcher picks, and its size."""
    entry = catalog()[kernel]
    extents = size_of(entry.pick(None if size == RAGGED else size), size)
    return entry.pick(extents), extents


def _measured(kernel: str | None, size: str | None, folder: Path | None) -> list[Recording]:
    """Measures now; keeps recordings in `folder`, if there is one.

    Raises:
        MemsimError: a part is missing; or with exit code 1, a kernel computed something wrong.
    """
    launches = [_launch(name, size) for name in ([kernel] if kernel else compiled())]
    with progress_bar("measuring") as report:
        recordings = measure(launches, report)
    wrong = [recording.kernel for recording in recordings if not recording.result.right]
    if wrong:
        raise MemsimError(
            f"computed on this GPU, the result is wrong: {', '.join(wrong)}",
            hint="nothing was recorded; a kernel that is wrong has no counters worth keeping",
            exit_code=FAILED,
        )
    for (spec, _), recording in zip(launches, recordings, strict=True):
        if folder is not None:
            path = new_path(folder, recording, list(spec.family.sizes.values()))
            recording.save(path)
            click.echo(f"recorded: {path}", err=True)
    return recordings


def _recorded(folder: Path, size: str | None, gpu: str | None) -> list[Recording]:
    """The newest recording of everything.

    Raises:
        MemsimError: there is none.
    """
    found = [
        recording
        for recording in newest_of_each(folder, gpu)
        if size is None or recording.size == _launch(recording.kernel, size)[1]
    ]
    if not found:
        raise MemsimError(
            f"there is no recording in {folder}" + (f" for {gpu}" if gpu else ""),
            hint="memsim validate --all --live --record makes them, on a machine with a GPU",
        )
    return found


def _show(pairs: list[tuple[Comparison, Judgement]], as_json: bool, everything: bool) -> None:
    """One comparison in full; of everything, a line for each and the sum."""
    if as_json:
        records: list[Any] = [validation.to_dict(*pair) for pair in pairs]
        click.echo(json.dumps(records if everything else records[0], indent=2))
    elif not everything:
        validation.write(*pairs[0], sys.stdout)
    else:
        for pair in pairs:
            click.echo(validation.headline(*pair))
        click.echo(validation.summary(pairs))
