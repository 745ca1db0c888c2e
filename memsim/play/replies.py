"""What the playground asks, and the replies: the same from its server and from Python in the browser.

It keeps nothing, and executes no text that it is sent but by memsim's own emulator.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np

from memsim.analysis import analyze_trace
from memsim.api.running import trace_job
from memsim.captured.saved_launch import LAUNCH
from memsim.errors import MemsimError
from memsim.play.question import Question, answer
from memsim.targets.target import read_job
from memsim.trace.trace import Trace
from memsim.views.report import report_page

#: Why what is executed in a browser is not certain.
NARROW = "numpy has places of 32 bits in a browser, where few launches were compared with others"
PLAIN_NAME = re.compile(r"[^.\s\0-\x1f/\\:][^\0-\x1f/\\:]{0,99}")


def reply(
    asked: str, body: bytes, guarded: Callable[[Path], AbstractContextManager[object]] = nullcontext
) -> tuple[bool, bytes]:
    """Whether it could be answered; the answer as JSON or the report's page, or what is wrong as JSON.

    asked: one of `REPLIES`. guarded: what limits the work, given the folder of what was sent; in a browser
    nothing has to.
    """
    try:
        with TemporaryDirectory() as name:
            folder = Path(name).resolve()
            with guarded(folder):
                return True, REPLIES[asked](body, folder)
    except OSError as error:
        return False, json.dumps({"error": f"the files cannot be written: {error.strerror}"}).encode()
    except (MemsimError, msgspec.ValidationError, msgspec.DecodeError) as error:
        return False, json.dumps({"error": str(error)}).encode()


def _answer(body: bytes, folder: Path) -> bytes:
    return msgspec.json.encode(answer(msgspec.json.decode(body, type=Question)))


def _report_of_trace(body: bytes, folder: Path) -> bytes:
    path = folder / "trace.npz"
    path.write_bytes(body)
    return report_page(analyze_trace(Trace.load(path))).encode()


def _report_of_launch(body: bytes, folder: Path) -> bytes:
    """body: the files of a folder that `memsim capture` or `--save-launch` wrote, by name, as base64."""
    files = msgspec.json.decode(body, type=dict[str, bytes])
    if LAUNCH not in files:
        raise MemsimError(f"there is no {LAUNCH} in this folder", hint="choose the folder of one launch")
    for relative, content in files.items():
        parts = relative.split("/")
        if not all(map(PLAIN_NAME.fullmatch, parts)):
            raise MemsimError(f"{relative!r} is no name of a saved launch")
        path = folder.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    job = read_job(str(folder / LAUNCH), {})
    if np.dtype(np.intp).itemsize < 8:
        job = replace(job, uncertain=(*job.uncertain, NARROW))
    return report_page(analyze_trace(trace_job(job), job.arch)).encode()


REPLIES: Mapping[str, Callable[[bytes, Path], bytes]] = {
    "answer": _answer,
    "trace": _report_of_trace,
    "launch": _report_of_launch,
}
