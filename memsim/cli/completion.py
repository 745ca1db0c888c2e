"""`memsim completion`: what makes a shell complete memsim's verbs and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from memsim.cli.output import echo_document

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, /, shell: str) -> None:
    """Prints a script that completes commands and options in SHELL.

    \b
    For bash, in ~/.bashrc:   eval "$(memsim completion bash)"
    For zsh, in ~/.zshrc:     eval "$(memsim completion zsh)"
    For fish:                 memsim completion fish > ~/.config/fish/completions/memsim.fish
    """
    made = get_completion_class(shell)
    assert made is not None  # one of SHELLS
    echo_document(made(ctx.find_root().command, {}, "memsim", "_MEMSIM_COMPLETE").source())
