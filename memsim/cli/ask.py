"""A verb asked by a program that stays: its JSON document in this process, and nothing on its own streams."""

from __future__ import annotations

import json
import shlex
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from threading import Lock

from memsim.document import JsonObject
from memsim.errors import MemsimError

#: Options that write files, or read what is no kernel: tools have none of them.
REFUSED = tuple("--save --apply -o --output --patch --branch --config -j --jobs --plot --trace".split())
#: A verb prints to the one standard output: one verb at a time.
_one = Lock()


def ask(verb: str, *named: str, options: str = "") -> JsonObject:
    """What a verb answers: `exit_code`, its JSON (`document`), remarks or an `error`."""
    try:
        words = [*named, *shlex.split(options)]
    except ValueError as error:
        return _refused(f"options: {error}")
    for word in words:
        if word.startswith(REFUSED):
            return _refused(f"{word} is not an option of a tool: tools write no files")
    return ask_to_write(verb, *words, "--json")


def ask_to_write(verb: str, *arguments: str) -> JsonObject:
    """The same of arguments that may write files; only for what memsim itself asks."""
    from memsim.cli import cli, run

    out, err = StringIO(), StringIO()
    with _one, redirect_stdout(out), redirect_stderr(err):
        exit_code = run(cli, [verb, *arguments], "memsim")
    found: JsonObject = {"exit_code": exit_code}
    if "--json" in arguments and out.getvalue():
        found["document"] = json.loads(out.getvalue())
    if err.getvalue():
        found["error" if exit_code > 1 else "remarks"] = err.getvalue()
    return found


def _refused(why: str) -> JsonObject:
    error = MemsimError(why)
    return {"exit_code": error.exit_code, "error": str(error)}
