"""`memsim check`: whether the kernels of a project keep within their budgets."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from memsim.cli.options import file_option, format_option, open_cache, project_options

#: Those of `memsim.views.check.check_formats`.
FORMATS = ("github", "sarif", "junit", "json", "markdown")


@click.command()
@click.argument("target", nargs=-1)
@format_option(*FORMATS)
@file_option("--output", "-o", help="Write the chosen format to FILE; the terminal gets text.")
@click.option(
    "--against",
    metavar="REVISION",
    help="Take settings, budgets, acceptances and baseline from this git revision, such as main.",
)
@project_options
@click.pass_context
def check(
    ctx: click.Context,
    /,
    target: tuple[str, ...],
    form: str,
    output: Path | None,
    against: str | None,
    config: Path | None,
    jobs: int | None,
    no_cache: bool,
) -> None:
    """Checks the kernels of a project against their budgets.

    Targets and budgets are defined in memsim.toml or in [tool.memsim] of pyproject.toml. TARGET is a
    name or a pattern such as 'guide_*'; the default is all targets. A target without a budget is
    compared with the baseline (see memsim baseline).

    Exit code: 0 if every budget holds, 1 if one is exceeded, 2 if something could not be checked: bad
    input, a kernel that does not compile, a budget that matches no access.
    """
    if output is not None and form == "text":
        raise click.UsageError("--output needs --format", ctx)
    cache = open_cache(no_cache)
    if cache is None or form != "text" or against is not None:
        from memsim.cli.check_anew import check_anew

        ctx.exit(check_anew(target, config, cache, jobs, form, output, against)[0].exit_code)
    ctx.exit(_as_text(target, config, cache, jobs))


def _as_text(patterns: tuple[str, ...], config: Path | None, cache: Path, jobs: int | None) -> int:
    """The exit code; a check that passed and of which nothing has changed says so once more."""
    from memsim.reads import watching
    from memsim.store import Store
    from memsim.targets import kept_answers
    from memsim.views.plain import write_passed

    store = Store(cache)
    asked = kept_answers.question(store, "check", config, *patterns)
    verdict = kept_answers.answer_to(store, asked)
    if verdict is not None:
        write_passed(verdict, sys.stdout)
        return 0
    from memsim.cli.check_anew import check_anew

    with watching() as reads:
        outcome, is_all_read = check_anew(patterns, config, cache, jobs)
    if outcome.is_clean and not outcome.notes and is_all_read:
        kept_answers.keep(store, asked, outcome.report, reads)
    return outcome.exit_code
