"""`memsim exec`: a CUDA program as it is, on memsim instead of a GPU."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from memsim.arch import ARCHS, SM_90, get_arch
from memsim.boundary import confinement
from memsim.cli.options import JSON, jobs_option, output_option
from memsim.cli.output import echo_document, free_path, path_to_write, say_all
from memsim.document import json_text
from memsim.driver import launch_table
from memsim.driver.execute_launches import Launches
from memsim.driver.run_program import run_program
from memsim.errors import MemsimError
from memsim.files import write_text


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--analyze", is_flag=True, help="Count what the first launch of each kind costs.")
@click.option("--time", is_flag=True, help="Estimate how long the launches of each kind take on the chip.")
@click.option("--sanitize", is_flag=True, help="Look for errors in the first launch of each kind.")
@click.option(
    "--record",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the first launch of each kind as FOLDER/.../launch.json, which every verb takes.",
)
@click.option(
    "--arch",
    type=click.Choice(tuple(ARCHS)),
    default=SM_90.name,
    help=f"The chip that the program sees. Default: {SM_90.name}.",
)
@click.option(
    "--max-steps", type=click.IntRange(min=1), help="Instructions after which a kernel counts as endless."
)
@jobs_option("one per CPU core", of="threads that execute the blocks of a launch")
@output_option(
    *("--output", "-o"), help="Write the table to FILE, too, as JSON; without FILE named after the program."
)
@JSON
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_(
    analyze: bool,
    time: bool,
    sanitize: bool,
    record: Path | None,
    arch: str,
    max_steps: int | None,
    jobs: int | None,
    output: Path | None,
    as_json: bool,
    command: tuple[str, ...],
) -> int:
    """Runs an unchanged CUDA program without a GPU: its kernels are executed by memsim.

    The program prints what it prints, and its exit code is that of memsim exec. Then a table, on standard
    error, has a row for each kernel and shape that it launched; with --json it is a document, on standard
    output, and what the program prints is on standard error. C++ programs need CUDA's shared runtime:
    build them with NVCC_APPEND_FLAGS="-cudart shared" (CMake: -DCMAKE_CUDA_RUNTIME_LIBRARY=Shared).
    Linux, and once a C compiler.

    \b
    Examples:
      memsim exec -- ./vectorAdd
      memsim exec --analyze -- ./transpose 1024
      memsim exec --time --json -- python train.py
      memsim exec --sanitize -- ./transpose 1024
      memsim exec --record launches -- python numba_script.py
    """
    if confinement() is not None:
        raise MemsimError("--untrusted runs no program", file=command[0])
    launches = Launches(
        get_arch(arch),
        _tell,
        analyze=analyze,
        sanitize=sanitize,
        time=time,
        record=record,
        max_steps=max_steps,
        jobs=jobs,
    )
    try:
        exit_code = run_program(command, launches, output=sys.stderr.buffer if as_json else None)
    except KeyboardInterrupt:
        _write(launches, output, command[0], as_json=as_json)
        raise
    _write(launches, output, command[0], as_json=as_json)
    if static := launches.why_nothing(exit_code):
        _tell(static)
    return exit_code


def _write(launches: Launches, output: Path | None, program: str, *, as_json: bool) -> None:
    document = json_text(launch_table.to_dict(launches)) if as_json or output is not None else ""
    if as_json:
        echo_document(document)
    else:
        launch_table.write(launches, sys.stderr)
    if output is not None:
        default = free_path(f"{Path(program).stem}-launches", ".json")
        with path_to_write(output, default, err=True) as path:
            write_text(path, document, "the table")


def _tell(text: str) -> None:
    say_all(f"memsim: {text}", err=True)
