"""The reference: `memsim VERB --help` of every verb, and the docstrings of the public names."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import click

import memsim
from memsim.cli import VERBS, cli

WIDTH = 98


def command_line() -> str:
    """A section for each verb, with its help as it is printed."""
    wide: dict[str, Any] = {"terminal_width": WIDTH, "max_content_width": WIDTH}
    context = click.Context(cli, info_name="memsim", **wide, **cli.context_settings)
    sections = []
    for name in VERBS:
        command = cli.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, **wide)
        lines = (line.rstrip() for line in command.get_help(inner).splitlines())
        sections.append(f"## memsim {name}\n\n```text\n" + "\n".join(lines) + "\n```\n")
    return "\n".join(sections)


def python_names() -> str:
    """A section for each public name: signature, docstring, and the same of the methods of a class."""
    names = [name for name in memsim.__all__ if not name.startswith("__")]
    return "\n".join(_section(name, getattr(memsim, name)) for name in sorted(names, key=str.lower))


def _section(name: str, thing: Any) -> str:
    text = f"## memsim.{name}\n\n{_described(name, thing)}"
    if not inspect.isclass(thing):
        return text
    # With those of the record that it is; what another class above says, too, is a protocol of memsim's own.
    shown_of = [one for one in thing.__mro__ if one is thing or "__dataclass_fields__" in vars(one)]
    others = [one for one in thing.__mro__ if one not in shown_of]
    members = {name: value for one in reversed(shown_of) for name, value in vars(one).items()}
    for member, value in sorted(members.items()):
        if member.startswith("_") or any(member in vars(one) for one in others):
            continue
        held = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if inspect.isfunction(held) and held.__doc__:
            shown = None if isinstance(value, property) else held
            text += f"\n### {name}.{member}\n\n{_described(member, shown, held.__doc__)}"
    return text


def _described(name: str, thing: Any, doc: str | None = None) -> str:
    """The signature, where there is one, and the docstring as it stands in the code."""
    signature = ""
    if thing is not None:
        try:
            signature = f"{name}{inspect.signature(thing)}\n\n"
        except ValueError:
            signature = ""
    text = inspect.cleandoc(doc or thing.__doc__ or "")
    return f"```text\n{signature}{text}\n```\n"


PARTS: dict[str, Callable[[], str]] = {
    "reference: command line": command_line,
    "reference: Python": python_names,
}
