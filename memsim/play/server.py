"""The playground's page, with ten classic accesses on it, served to this machine alone.

It listens on 127.0.0.1, answers only what names that address as its host (another site's page that a browser
was led to has another name) and comes from its own page, keeps nothing, and executes no text that it is sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import urlencode

from msgspec import structs

from memsim.boundary import boundary_of, confined_to
from memsim.errors import MemsimError
from memsim.play.question import Question
from memsim.play.replies import REPLIES, reply
from memsim.programs import within_time_limit

LOCAL = "127.0.0.1"
HERE = Path(__file__).parent
LARGEST = 64 << 20  # bytes of what is sent
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
        asked = self.path.removeprefix("/")
        if asked not in REPLIES or not length.isdecimal() or int(length) > LARGEST:
            self.send_error(HTTPStatus.BAD_REQUEST)
            return
        good, content = reply(asked, self.rfile.read(int(length)), _guarded)
        kind = "text/html" if good and asked != "answer" else "application/json"
        self._send(HTTPStatus.OK if good else HTTPStatus.UNPROCESSABLE_ENTITY, kind, content)

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


@contextmanager
def _guarded(folder: Path) -> Iterator[None]:
    """Inside, no file outside of the folder is trusted, and it ends in time."""
    with confined_to(boundary_of(folder)), within_time_limit("the answer"):
        yield


GALLERY: Mapping[str, Question] = {
    "transpose": Question(),
    "padded": Question(layout="(32,32):(33,1)"),
    "XOR": Question(layout="Sw<5,0,5> o (32,32):(32,1)"),
    "every second word": Question(layout="(2048):(1)", store="", load="rank * 2"),
    "broadcast": Question(store="", load="y, 7"),
    "a row of float4": Question(layout="(64,128):(128,1)", block="32x8", store="", load="y, x * 4", vector=4),
    "float4, two rows of lanes": Question(
        layout="(16,64):(64,1)", block="256", store="", load="rank / 16, rank % 16 * 4", vector=4
    ),
    "a column of halves": Question(
        layout="(64,64):(64,1)", element="f16", block="64x8", store="", load="x, y * 8", vector=8
    ),
    "reduction, stride 2": Question(layout="(1024):(1)", block="256", store="", load="rank * 2 % 512"),
    "columns of a matrix": Question(memory="global", layout="(1024,1024):(1024,1)", store="", load="x, y"),
}


def address(question: Question) -> str:
    """What stands after the # of a link to a state of the page."""
    return urlencode(structs.asdict(question), safe="*")  # as a browser writes it


def page(answers: Mapping[str, object] | None = None, worker: str | None = None) -> str:
    """The page of `memsim play`; with answers, by address, of one that asks no server but a worker."""
    gallery = {title: structs.asdict(question) for title, question in GALLERY.items()}
    parts = {"first": structs.asdict(Question()), "gallery": gallery, "answers": answers, "worker": worker}
    data = json.dumps(parts)
    return (HERE / "page.html").read_text("utf-8").replace("{{ data }}", data.replace("<", "\\u003c"))
