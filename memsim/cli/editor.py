"""A language server: what a line of an open CUDA file costs, above the line and as a warning, and its cure.

Files are looked at when they are opened and saved, as they are on disk: the targets of the project in the
file, or else the launches that the file makes of its own kernels, as far as it says everything.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from memsim.api.kernel_file import KernelFile
from memsim.cli.ask import ask, ask_to_write
from memsim.cli.options import open_project
from memsim.document import JsonObject
from memsim.errors import MemsimError
from memsim.targets.offers import offers
from memsim.version import __version__

if TYPE_CHECKING:
    from lsprotocol import types
    from pygls.lsp.server import LanguageServer

SOURCE = "memsim"
WIDEST = 1000  # columns; an editor ends the range where the line ends


@dataclass(frozen=True, slots=True)
class LineCost:
    """What is wasted on a line. line: from 0. conflicts: whether by bank conflicts, else by sectors."""

    line: int
    text: str
    conflicts: bool


@dataclass(frozen=True, slots=True)
class AskedLaunch:
    """A target of `memsim analyze`, with its options."""

    target: str
    options: str = ""


def questions(path: Path) -> list[AskedLaunch]:
    """What is analyzed of a file: the project's targets in it, else its launches that leave nothing open."""
    try:
        jobs = open_project(None).targets
    except MemsimError:
        jobs = ()
    own = [
        AskedLaunch(job.name)
        for job in jobs
        if isinstance(job.kernel, KernelFile)
        and (job.kernel.folder / job.kernel.file).resolve() == path.resolve()
    ]
    if own:
        return own
    known = (offer for offer in offers(path.read_text("utf-8", errors="replace")) if not offer.asked)
    return [AskedLaunch(str(path), shlex.join(offer.command)) for offer in known if offer.launch is not None]


def costs(path: Path) -> Iterator[LineCost]:
    """Each access in a file that wastes wavefronts or sectors."""
    for question in questions(path):
        found = ask("analyze", question.target, options=question.options)
        for site in found.get("document", {}).get("sites", ()):
            text = _said(site)
            if text and Path(site["file"]).name == path.name and site["line"]:
                kernel = found["document"]["kernel"]
                yield LineCost(site["line"] - 1, f"{kernel}: {text}", bool(site["conflicts"]))


def _said(site: JsonObject) -> str:
    """`32-way bank conflict, 1,015,808 of 1,048,576 wavefronts`; "" of an access without waste."""
    if site["conflicts"]:
        ways, wavefronts = site["max_ways"], site["wavefronts"]
        return f"{ways}-way bank conflict, {site['conflicts']:,} of {wavefronts:,} wavefronts"
    sectors, ideal, requests = site["sectors"], site["ideal_sectors"], site["requests"]
    if sectors and requests and sectors > ideal:
        return f"{sectors / requests:.1f} sectors per request instead of {ideal / requests:.1f}"
    return ""


def cured_text(path: Path) -> str | None:
    """The file's text after the best change of `memsim suggest`, compiled and replayed; None without one."""
    for question in questions(path):
        with TemporaryDirectory() as folder:
            copy = Path(folder, path.name)
            before = path.read_text("utf-8", errors="replace")
            copy.write_text(before, "utf-8")
            options = [*shlex.split(question.options), "-I", str(path.parent), "--apply"]
            if (
                question.target == str(path)
                and ask_to_write("suggest", str(copy), *options)["exit_code"] == 0
            ):
                after = copy.read_text("utf-8")
                if after != before:
                    return after
    return None


def editor_server() -> LanguageServer:
    """The server; `start_io` runs it.

    Raises:
        MemsimError: the package `pygls` is not installed.
    """
    try:
        from lsprotocol import types
        from pygls.lsp.server import LanguageServer
    except ImportError:
        raise MemsimError(
            "memsim serve --lsp needs the package pygls", hint="pip install 'pygls>=2'"
        ) from None
    server = LanguageServer("memsim", __version__)
    seen: dict[str, list[LineCost]] = {}

    def look(uri: str) -> None:
        document = server.workspace.get_text_document(uri)
        path = Path(document.path)
        seen[uri] = list(costs(path)) if path.is_file() else []
        warnings = [_diagnostic(cost) for cost in seen[uri]]
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, warnings))
        client = server.client_capabilities.workspace
        if client and client.code_lens and client.code_lens.refresh_support:
            server.workspace_code_lens_refresh(None)  # the editor asks again for what stands above the lines

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        look(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        look(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    def lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        found = seen.get(params.text_document.uri, [])
        return [types.CodeLens(_line(cost.line), types.Command(cost.text, "")) for cost in found]

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION)
    def actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        lines = range(params.range.start.line, params.range.end.line + 1)
        here = [cost for cost in seen.get(uri, []) if cost.line in lines and cost.conflicts]
        document = server.workspace.get_text_document(uri)
        after = cured_text(Path(document.path)) if here else None
        if after is None:
            return []
        whole = types.Range(types.Position(0, 0), types.Position(len(document.lines), 0))
        edit = types.WorkspaceEdit({uri: [types.TextEdit(whole, after)]})
        title = "memsim: change the layout, compiled and replayed"
        return [types.CodeAction(title, types.CodeActionKind.QuickFix, edit=edit)]

    return server


def _diagnostic(cost: LineCost) -> types.Diagnostic:
    from lsprotocol import types

    level = types.DiagnosticSeverity.Warning if cost.conflicts else types.DiagnosticSeverity.Information
    return types.Diagnostic(_line(cost.line), cost.text, level, source=SOURCE)


def _line(line: int) -> types.Range:
    from lsprotocol import types

    return types.Range(types.Position(line, 0), types.Position(line, WIDEST))
