"""`--untrusted`: what a pull request may do to the machine that looks at it. docs/security.md says what."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from memsim.boundary import allow, boundary_of, confine, confinement, project_of

VARIABLE = "MEMSIM_UNTRUSTED"


def _begin(ctx: click.Context, option: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        trust_nothing()


def trust_nothing() -> None:
    """From now on only files of the project around the working folder are read, and nothing of it is run."""
    if confinement() is None:
        here = Path.cwd()
        confine(boundary_of(project_of(here) or here))


def asked_by_environment() -> bool:
    """Whether every verb is to trust nothing; what an option asks for, this does not switch off."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


def allow_named(ctx: click.Context, option: click.Parameter, named: Any) -> Any:
    """Trusts what the command line itself names outside of the working folder: TARGETs, `-I`, `--config`.

    A name inside is the project's: a link there may lead anywhere.
    """
    if confinement() is not None and named is not None:
        for name in [named] if isinstance(named, (str, Path)) else named:
            path = Path(os.path.normpath(Path.cwd() / name))
            folder = path if path.is_dir() else path.parent
            if path.exists() and not path.is_relative_to(Path.cwd()):
                allow(project_of(folder) or folder)
    return named


UNTRUSTED = click.option(
    "--untrusted",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_begin,
    help="Trust no file of the project: read no others, run nothing that they name, limit compilers.",
)
