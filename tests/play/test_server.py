"""The playground's server answers its own page on this machine, and nobody else."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from threading import Thread

import pytest

import memsim
from memsim.cli import main
from memsim.errors import MemsimError
from memsim.play.replies import reply
from memsim.play.server import server
from memsim.programs import run_program


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with server() as listening:
        runner = Thread(target=listening.serve_forever, daemon=True)
        runner.start()
        yield int(listening.server_address[1])
        listening.shutdown()
        runner.join()


def ask(port: int, path: str, body: bytes | None = None, **headers: str) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET" if body is None else "POST", path, body, headers)
    reply = connection.getresponse()
    return reply, reply.read()


def test_the_page_fetches_from_nowhere_else(port: int) -> None:
    page, script = ask(port, "/"), ask(port, "/page.js")
    assert page[0].status == script[0].status == 200
    assert b"http://" not in page[1] + script[1] and b"https://" not in page[1] + script[1]
    assert "default-src 'self'" in (page[0].getheader("Content-Security-Policy") or "")
    assert ask(port, "/server.py")[0].status == ask(port, "/../../pyproject.toml")[0].status == 404


def test_an_answer_and_an_error(port: int) -> None:
    good, found = ask(port, "/answer", json.dumps({"load": "y, x"}).encode())
    assert good.status == 200 and json.loads(found)["wavefronts"] == 64
    for body in (b'{"load": "y, x +"}', b'{"load": 1}', b'{"lode": "y, x"}', b"[", b"\xff"):
        bad, said = ask(port, "/answer", body)
        assert bad.status == 422 and json.loads(said)["error"]


def test_a_saved_trace_becomes_a_report(port: int, tmp_path: Path) -> None:
    memsim.catalog()["transpose_naive"].trace((64, 64)).save(tmp_path / "t.npz")
    good, page = ask(port, "/trace", (tmp_path / "t.npz").read_bytes())
    assert good.status == 200 and b"transpose_naive: worst is the load" in page
    bad, said = ask(port, "/trace", b"no trace")
    assert bad.status == 422 and json.loads(said)["error"]


@pytest.mark.parametrize("headers", [{"Host": "elsewhere.example"}, {"Origin": "https://elsewhere.example"}])
def test_other_sites_are_refused(port: int, headers: dict[str, str]) -> None:
    assert ask(port, "/answer", b"{}", **headers)[0].status == 403
    assert ask(port, "/answer", b"{}", Origin=f"http://127.0.0.1:{port}")[0].status == 200


def test_what_is_too_long_or_has_no_length_is_refused(port: int) -> None:
    assert ask(port, "/trace", b"", **{"Content-Length": str(1 << 40)})[0].status == 400
    assert ask(port, "/elsewhere", b"{}")[0].status == 400


def test_a_port_that_is_taken(port: int) -> None:
    with pytest.raises(memsim.MemsimError, match=f"cannot listen on port {port}"):
        server(port)


def saved(folder: Path) -> dict[str, str]:
    """The files of a saved launch, as the page sends them."""
    assert main(["analyze", "transpose_naive", "--size", "64,64", "--save-launch", str(folder)]) == 0
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): b64encode(path.read_bytes()).decode() for path in files}


@pytest.mark.slow
def test_a_saved_launch_becomes_a_report(port: int, tmp_path: Path) -> None:
    files = saved(tmp_path / "run")
    good, page = ask(port, "/launch", json.dumps(files).encode())
    assert good.status == 200 and b"transpose_naive: worst is the load" in page


@pytest.mark.slow
def test_what_is_no_saved_launch_is_refused(port: int, tmp_path: Path) -> None:
    files = saved(tmp_path / "run")
    outside = tmp_path / "outside.txt"
    for wrong in (
        {name: text for name, text in files.items() if name != "launch.json"},
        {**files, "../outside.txt": "eA=="},
        {**files, str(outside): "eA=="},
        {**files, "launch.json": b64encode(b"{}").decode()},
        {**files, "launch.json": "no base64!"},
    ):
        bad, said = ask(port, "/launch", json.dumps(wrong).encode())
        assert bad.status == 422 and json.loads(said)["error"]
    assert not outside.exists()


def test_a_browser_says_what_to_do_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "emscripten")
    with pytest.raises(MemsimError, match="NVRTC does not run in a browser") as caught:
        run_program(["/no/such/program"], "NVRTC")
    assert "--save-launch" in str(caught.value.hint)
    monkeypatch.undo()
    with pytest.raises(MemsimError, match="cannot run /no/such/program"):
        run_program(["/no/such/program"], "NVRTC")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my kernel.cu", "this is not a launch"),
        ("größe.cu", "this is not a launch"),
        ("sources/kernel.cubin", "this is not a launch"),
        ("launch.json/a", "cannot be written"),
        ("/".join(["a" * 100] * 60), "cannot be written"),
        ("../a", "is no name of a saved launch"),
        ("a/../../b", "is no name of a saved launch"),
        ("/a", "is no name of a saved launch"),
        ("a\\b", "is no name of a saved launch"),
        ("C:a", "is no name of a saved launch"),
        ("a\0b", "is no name of a saved launch"),
        (".git", "is no name of a saved launch"),
    ],
)
def test_names_of_files_of_a_saved_launch(name: str, message: str) -> None:
    files = {"launch.json": b64encode(b"[]").decode(), name: ""}
    good, said = reply("launch", json.dumps(files).encode())
    assert not good
    assert message in json.loads(said)["error"]
