"""A saved launch has its listing: what was recorded where there is a disassembler is counted where there is
none, and a listing that is not its cubin's is refused.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from memsim.boundary import boundary_of, confined_to
from memsim.captured.launched import Launched
from memsim.captured.saved_launch import MOST_PER_BYTE, read_launch, write_launch
from memsim.errors import MemsimError
from memsim.kernels import catalog
from tests.cli.conftest import Run, memsim

__all__ = ["memsim"]

Hide = Callable[[], None]
#: A launch of a Triton kernel, recorded before launches had their listing; its PTX attributes lines.
ADD = Path(__file__).parents[2] / "docs" / "captured" / "add" / "launch.json"


@pytest.fixture
def launch(tmp_path: Path) -> Path:
    """`ADD`, saved again."""
    return write_launch(read_launch(ADD), tmp_path / "run")


@pytest.fixture
def hide(monkeypatch: pytest.MonkeyPatch) -> Hide:
    """From then on no disassembler is installed."""
    return lambda: monkeypatch.setattr("memsim.sass.disassemble.find_tool", lambda name: None)


def change(path: Path, **changes: Any) -> None:
    """Change the document; a key with None is removed."""
    document = {**json.loads(path.read_text("utf-8")), **changes}
    path.write_text(json.dumps({key: value for key, value in document.items() if value is not None}))


def listing(path: Path) -> str:
    return gzip.decompress((path.parent / "kernel.sass.gz").read_bytes()).decode()


def put(path: Path, content: bytes) -> None:
    """This content as the listing's file, with the digest that fits."""
    digest = sha256((path.parent / "kernel.cubin").read_bytes() + content).hexdigest()
    (path.parent / "kernel.sass.gz").write_bytes(content)
    change(path, listing={"file": "kernel.sass.gz", "sha256": digest})


def test_it_is_counted_without_a_disassembler(launch: Path, memsim: Run, hide: Hide) -> None:
    command = f"analyze {launch.as_posix()} --json --no-cache"
    there = memsim(command).document()
    hide()
    assert memsim(command).document() == there
    assert [site["line"] for site in there["sites"]] == [9, 9, 10]


def test_without_its_listing_the_error_says_what_to_do(memsim: Run, hide: Hide) -> None:
    command = f"analyze {ADD.as_posix()}"
    memsim(command).fine()
    hide()
    said = f"{ADD.as_posix()}: it was saved without the listing of its cubin"
    memsim(command).refused(said, "hint: pip install nvidia-cuda-nvdisasm", "--save-launch")


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("changed", ["kernel.cubin", "kernel.sass.gz"])
def test_another_cubins_listing_is_refused(launch: Path, hide: Hide, changed: str, hidden: bool) -> None:
    """Also where a disassembler would do without it."""
    other = write_launch(Launched.of(catalog()["transpose_xor"].job((64, 64))), launch.parent.parent / "b")
    if hidden:
        hide()
    read_launch(launch)
    (launch.parent / changed).write_bytes((other.parent / changed).read_bytes())
    with pytest.raises(MemsimError, match="is not the listing of its cubin") as caught:
        read_launch(launch)
    assert caught.value.file == str(launch) and "save the launch again" in str(caught.value.hint)


def test_a_disassembler_has_the_word(launch: Path, hide: Hide) -> None:
    """A forged listing, with a digest that fits, counts nothing where the cubin can be disassembled."""
    right = read_launch(launch).analyze().to_dict()
    put(launch, gzip.compress(listing(launch).replace("LDG.E ", "LDG.E.U8 ").encode()))
    assert read_launch(launch).analyze().to_dict() == right
    hide()
    assert read_launch(launch).analyze().to_dict() != right


def test_where_nothing_is_trusted_a_listing_is_not(launch: Path, hide: Hide) -> None:
    hide()
    assert read_launch(launch).analyze().sites
    with confined_to(boundary_of(launch.parent)), pytest.raises(MemsimError, match="not trusted") as caught:
        read_launch(launch)
    assert caught.value.hint == "pip install nvidia-cuda-nvdisasm"


def test_a_listing_without_instructions_is_refused(launch: Path, hide: Hide) -> None:
    hide()
    lines = listing(launch).splitlines(keepends=True)
    put(launch, gzip.compress("".join(line for line in lines if ";" not in line).encode()))
    with pytest.raises(MemsimError, match="has no instructions"):
        read_launch(launch).analyze()


@pytest.mark.parametrize(
    ("name", "last"), [("R999", "R254"), ("UR80", "UR79"), ("UP7", "UP6"), ("B16", "B15")]
)
def test_a_listing_names_only_registers_that_there_are(
    launch: Path, hide: Hide, name: str, last: str
) -> None:
    hide()
    right = listing(launch)
    before = next(text for text in right.split() if text.startswith("R") and text[1:-1].isdigit())
    for named, refused in ((last, False), (name, True)):
        put(launch, gzip.compress(right.replace(f" {before}", f" {named},", 1).encode()))
        if not refused:
            read_launch(launch)
            continue
        with pytest.raises(MemsimError, match=f"{name} is not a register: {last} is the last one"):
            read_launch(launch).analyze()


def test_a_trace_that_was_kept_is_of_its_own_listing(launch: Path, hide: Hide) -> None:
    """A listing is part of the key by which traces are kept."""
    hide()
    right = read_launch(launch).kernel.key
    assert read_launch(launch).kernel.key == right
    put(launch, gzip.compress(listing(launch).replace("LDG.E ", "LDG.E.U8 ").encode()))
    assert read_launch(launch).kernel.key != right


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "kernel.sass.gz is truncated"),
        (b"no gzip", "cannot read kernel.sass.gz: .* incorrect header"),
        (gzip.compress(b"\xff", mtime=0), "cannot read kernel.sass.gz: 'utf-8' codec"),
        (gzip.compress(b".text", mtime=0)[:-9], "kernel.sass.gz is truncated"),
        (gzip.compress(b"other text", mtime=0), "the listing does not contain"),
    ],
)
def test_a_listing_that_cannot_be_read_is_said(
    launch: Path, hide: Hide, content: bytes, message: str
) -> None:
    put(launch, content)
    read_launch(launch).analyze()
    hide()
    with pytest.raises(MemsimError, match=message):
        read_launch(launch).analyze()


@pytest.mark.parametrize(("excess", "fits"), [(0, True), (1, False)])
def test_a_listing_that_unpacks_to_far_too_much_is_not_unpacked(
    launch: Path, hide: Hide, excess: int, fits: bool
) -> None:
    text = listing(launch)
    most = MOST_PER_BYTE * (launch.parent / "kernel.cubin").stat().st_size
    put(launch, gzip.compress(text.ljust(most + excess, "/").encode()))
    hide()
    if fits:
        assert read_launch(launch).analyze().sites
        return
    with pytest.raises(MemsimError, match="too long for its cubin"):
        read_launch(launch)


def test_only_a_cubin_has_a_listing(launch: Path) -> None:
    (launch.parent / "k.cu").write_text('extern "C" __global__ void k() {}\n')
    change(launch, code="k.cu")
    with pytest.raises(MemsimError, match=r"k\.cu is not a cubin, so it has no listing"):
        read_launch(launch)


def test_a_listing_elsewhere_is_refused(launch: Path) -> None:
    content = (launch.parent / "kernel.sass.gz").read_bytes()
    (launch.parent.parent / "above.gz").write_bytes(content)
    record = json.loads(launch.read_text("utf-8"))["listing"]
    change(launch, listing={**record, "file": "../above.gz"})
    with pytest.raises(MemsimError, match=r"\.\./above\.gz is not a file in its folder"):
        read_launch(launch)
