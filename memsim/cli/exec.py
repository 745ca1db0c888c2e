"""`memsim exec`: a CUDA program as it is, on memsim instead of a GPU."""

from __future__ import annotations

import sys

import click

from memsim.arch import ARCHS, SM_90, get_arch
from memsim.cli.output import say_all
from memsim.driver import launch_table
from memsim.driver.execute_launches import Launches
from memsim.driver.run_program import run_program


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--analyze", is_flag=True, help="Count what the first launch of each kind costs.")
@click.option(
    "--arch",
    type=click.Choice(tuple(ARCHS)),
    default=SM_90.name,
    help=f"The chip that the program sees. Default: {SM_90.name}.",
)
@click.option(
    "--max-steps", type=click.IntRange(min=1), help="Instructions after which a kernel counts as endless."
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_(analyze: bool, arch: str, max_steps: int | None, command: tuple[str, ...]) -> int:
    """Runs an unchanged CUDA program without a GPU: its kernels are executed by memsim.

    The program prints what it prints, and its exit code is that of memsim exec. Then a table, on standard
    error, has a row for each kernel and shape that it launched. C++ programs need CUDA's shared runtime:
    build them with NVCC_APPEND_FLAGS="-cudart shared" (CMake: -DCMAKE_CUDA_RUNTIME_LIBRARY=Shared). Linux,
    and once a C compiler.

    \b
    Examples:
      memsim exec -- ./vectorAdd
      memsim exec --analyze -- ./transpose 1024
    """
    launches = Launches(
        get_arch(arch),
        lambda text: say_all(f"memsim: {text}", err=True),
        analyze=analyze,
        max_steps=max_steps,
    )
    try:
        return run_program(command, launches)
    finally:
        sys.stdout.flush()
        launch_table.write(launches.kinds.values(), sys.stderr, analyzed=analyze)
