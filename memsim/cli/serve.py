"""`memsim serve`: the verbs as tools of the Model Context Protocol, over standard input and output; for an
editor, `editor.py`.

An assistant that changes a kernel asks in one resident process, which has imported everything and keeps its
cache: what a launch costs, whether a change pays, where the races are. Each tool is a verb of the command
line with its JSON document as the answer; nothing is worked out here. Nobody listens on the network.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from memsim.cli.ask import ask
from memsim.cli.options import UNTRUSTED
from memsim.document import JsonObject
from memsim.errors import MemsimError
from memsim.targets.analyze_targets import shared_out
from memsim.targets.target import file_of
from memsim.version import __version__
from memsim.workers import processors

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

INSTRUCTIONS = """\
memsim counts, without a GPU, what each source line of a CUDA kernel costs in shared memory (wavefronts, bank conflicts)
and global memory (sectors), exactly as Nsight Compute's counters do, or says what is not certain.
A target is a .cu file, a kernel of `memsim list`, a cubin, a saved launch (launch.json) or a target of the project's
memsim.toml. Options are those of the command line, such as: --grid 64 --block 32,8 --arg 'f32[1024]' --arg 1024.
Without options the launch is read from the file; if something is missing, the error says what."""  # noqa: E501

#: Texts from which on each processor gets a process for them: one that starts imports everything anew.
WORTH_PROCESSES = 8


def analyze(target: str, options: str = "") -> JsonObject:
    """What every access of a launch costs, by source line: verdict, rows, totals by ncu's names."""
    return ask("analyze", target, options=options)


def explain(target: str, options: str = "") -> JsonObject:
    """One request lane by lane: which lanes meet in which bank, or which sectors they touch, and why."""
    return ask("explain", target, options=options)


def sweep(target: str, options: str) -> JsonObject:
    """Many variants at once, ranked: any value in the options can be a list, such as -D PAD=0..8."""
    return ask("sweep", target, options=options)


def time(target: str, options: str = "") -> JsonObject:
    """About how many cycles a launch takes, and what its warps wait for: an estimate, for sm_90."""
    return ask("time", target, options=options)


def suggest(target: str, options: str = "") -> JsonObject:
    """Layouts, threads and accesses that cost less, each compiled and replayed; nothing is written."""
    return ask("suggest", target, options=options)


def sanitize(target: str, options: str = "") -> JsonObject:
    """Races, accesses out of bounds, unwritten memory, deadlocks of a launch. Exit code 1: there are some."""
    return ask("sanitize", target, options=options)


def compare(before: str, after: str, options: str = "") -> JsonObject:
    """Two kernels, files, revisions (REV, REV:FILE) or saved analyses, line by line; `.`: as it is now."""
    return ask("compare", before, after, options=options)


def compare_texts(file: str, texts: Mapping[str, str], options: str = "") -> dict[str, JsonObject]:
    """A source file beside other texts of it, by name, none of which is written into the project."""
    jobs = processors() if len(texts) >= WORTH_PROCESSES else 1
    return dict(zip(texts, shared_out(partial(_compared, file, options), list(texts.values()), jobs)))


def _compared(file: str, options: str, text: str) -> JsonObject:
    with _unsaved(file, text, options) as answer:
        return answer("compare", file)


def judge(file: str, text: str, options: str = "", cures: bool = True) -> dict[str, JsonObject]:
    """A changed text of a source file, unsaved: costs and time beside the file's, errors, the first cure.

    cures: false leaves out the cure, which is compiled and replayed. The tool `suggest` tries all there are.
    """
    with _unsaved(file, text, options) as answer:
        compared = answer("compare", file)
        others = {"sanitize": (), "suggest": ("--first",)} if cures else {"sanitize": ()}
        if "document" not in compared:  # such as a text that does not compile: the others would not either
            return dict.fromkeys(("compare", *others), compared)
        return {"compare": compared, **{verb: answer(verb, *how) for verb, how in others.items()}}


@contextmanager
def _unsaved(file: str, text: str, options: str) -> Iterator[Callable[..., JsonObject]]:
    """Answers of verbs about a text as if it were saved in the file; it lies outside of the project."""
    source, kernel = Path(file_of(file)), file[len(file_of(file)) :]
    with TemporaryDirectory() as folder:
        changed = Path(folder) / source.name
        changed.write_text(text, "utf-8")
        beside = shlex.join(["-I", str(source.parent.absolute())])

        def answer(verb: str, *how: str) -> JsonObject:
            found = json.dumps(ask(verb, *how, f"{changed}{kernel}", options=f"{options} {beside}"))
            named: JsonObject = json.loads(found.replace(_escaped(changed), _escaped(source)))
            return named

        yield answer


def _escaped(path: Path) -> str:
    return json.dumps(str(path))[1:-1]


def check(patterns: Sequence[str] = ()) -> JsonObject:
    """The project's kernels against their budgets and the baseline. Exit code 1: some cost more."""
    return ask("check", *patterns)


TOOLS = (analyze, explain, time, suggest, sanitize, sweep, compare, compare_texts, judge, check)


def server() -> MCPServer[object]:
    """The server with its tools.

    Raises:
        MemsimError: the package `mcp` is not installed.
    """
    try:
        from mcp.server.mcpserver import MCPServer
    except ImportError:
        raise MemsimError("memsim serve needs the package mcp", hint="pip install 'mcp>=2'") from None
    made: MCPServer[object] = MCPServer("memsim", version=__version__, instructions=INSTRUCTIONS)
    for tool in TOOLS:
        made.tool()(tool)
    return made


@click.command()
@click.option("--lsp", is_flag=True, help="Serve an editor: warnings, code lenses, the cure as a quick fix.")
@UNTRUSTED
def serve(lsp: bool) -> None:
    """Offers the verbs to an assistant (MCP), or to an editor (LSP), over standard input and output.

    Tools: analyze, explain, time, suggest, sanitize, sweep, compare, compare_texts, judge, check. Each
    answers with the verb's JSON. No file is written but memsim's cache, and nobody listens on the network.

    \b
    Example, in the settings of an assistant:
      {"command": "memsim", "args": ["serve", "--untrusted"]}
    """
    if lsp:
        from memsim.cli.editor import editor_server

        editor_server().start_io()
        sys.stdout = StringIO()  # the editor has closed its end: nothing more can be said
    else:
        server().run()
