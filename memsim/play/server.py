"""The playground's page, served to this machine alone.

It listens on 127.0.0.1, answers only what names that address as its host (another site's page that a browser
was led to has another name) and comes from its own page, keeps nothing, and executes no text that it is sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from memsim.analysis import analyze_trace
from memsim.api.running import trace_job
from memsim.boundary import boundary_of, confined_to
from memsim.captured.saved_launch import LAUNCH
from memsim.errors import MemsimError
from memsim.play.gallery import page
from memsim.play.question import Question, answer
from memsim.programs import within_time_limit
from memsim.targets.target import read_job
from memsim.trace.trace import Trace
from memsim.views.report import report_page

LOCAL = "127.0.0.1"
HERE = Path(__file__).parent
LARGEST = 64 << 20  # bytes of what is sent
PLAIN_NAME = re.compile(r"[A-Za-z0-9_+=-][\w.+=-]{0,99}", re.ASCII)
POLICY = "default-src 'self'; style-src 'unsafe-inline'; img-src data:; script-src 'self' blob:"


def server(port: int = 0) -> HTTPServer:
    """A server of the page, to be run by `serve_forever`. port: 0 for any that is free.

    Raises:
        MemsimError: the port is taken.
    """
    try:
        return HTTPServer((LOCAL, port), Playground)
    except OSError as error:
        raise MemsimError(
            f"cannot listen on port {port}: {error.strerror}", hint="choose another by --port"
        ) from None


class Playground(BaseHTTPRequestHandler):
    """Two files, and three questions: `answer`, of a state of the page; `trace`, `launch`: of saved ones."""

    def do_GET(self) -> None:
        """The page and its script."""
        if not self._is_ours():
            return
        if self.path == "/":
            self._send(HTTPStatus.OK, "text/html", page().encode())
        elif self.path == "/page.js":
            self._send(HTTPStatus.OK, "text/javascript", (HERE / "page.js").read_bytes())
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        """An answer as JSON; the report of what was saved as HTML, an error as JSON."""
        if not self._is_ours():
            return
        length = self.headers.get("Content-Length", "")
        answers: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
            "/answer": ("application/json", _answered),
            "/trace": ("text/html", _reported),
            "/launch": ("text/html", _launch_reported),
        }
        if self.path not in answers or not length.isdecimal() or int(length) > LARGEST:
            self.send_error(HTTPStatus.BAD_REQUEST)
            return
        kind, work = answers[self.path]
        try:
            self._send(HTTPStatus.OK, kind, work(self.rfile.read(int(length))))
        except (MemsimError, msgspec.ValidationError, msgspec.DecodeError) as error:
            self._send(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                "application/json",
                json.dumps({"error": str(error)}).encode(),
            )

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self.connection.getsockname()[1])

    def _is_ours(self) -> bool:
        """Whether the request is for this address and not of another site's page; else it is refused."""
        port = self.port
        hosts = {f"{LOCAL}:{port}", f"localhost:{port}"}
        origin = self.headers.get("Origin")
        if self.headers.get("Host") in hosts and (origin is None or origin.removeprefix("http://") in hosts):
            return True
        self.send_error(HTTPStatus.FORBIDDEN)
        return False

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)


def _answered(body: bytes) -> bytes:
    return msgspec.json.encode(answer(msgspec.json.decode(body, type=Question)))


def _reported(body: bytes) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.npz"
        path.write_bytes(body)
        return report_page(analyze_trace(Trace.load(path))).encode()


def _launch_reported(body: bytes) -> bytes:
    """body: the files of a folder that `memsim capture` or `--save-launch` wrote, by name, as base64."""
    files = msgspec.json.decode(body, type=dict[str, bytes])
    if LAUNCH not in files:
        raise MemsimError(f"there is no {LAUNCH} in this folder", hint="choose the folder of one launch")
    with TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for relative, content in files.items():
            parts = relative.split("/")
            if not all(map(PLAIN_NAME.fullmatch, parts)):
                raise MemsimError(f"{relative!r} is no name of a saved launch")
            path = folder.joinpath(*parts)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        with confined_to(boundary_of(folder)), within_time_limit(LAUNCH):
            job = read_job(str(folder / LAUNCH), {})
            return report_page(analyze_trace(trace_job(job), job.arch)).encode()
