"""Files that are written whole or not at all, and what is no file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memsim.errors import MemsimError
from memsim.files import (
    TomlError,
    file_exists,
    folder_exists,
    open_replacement,
    parse_toml,
    read_bytes,
    read_text,
    write_text,
)

POSIX = pytest.mark.skipif(os.name != "posix", reason="pipes and devices")


def test_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    assert file_exists(tmp_path / "a.txt") and folder_exists(tmp_path)
    for name in ("b.txt", "a" * 5000, "a\0b", "a.txt/c"):
        assert not file_exists(tmp_path / name) and not folder_exists(tmp_path / name)


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "one\n", "it")
    write_text(path, "zwei ü\n", "it")
    assert path.read_bytes() == "zwei ü\n".encode()
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_what_fails_half_way_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "before", "it")
    with pytest.raises(ZeroDivisionError), open_replacement(path, "it") as file:
        file.write(b"half")
        assert path.read_text() == "before"
        raise ZeroDivisionError
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


@POSIX
def test_the_mode_and_the_link_stay(tmp_path: Path) -> None:
    path, link = tmp_path / "a.txt", tmp_path / "link"
    write_text(path, "before", "it")
    path.chmod(0o640)
    link.symlink_to(path)
    write_text(link, "after", "it")
    assert link.is_symlink()
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("after", 0o640)


@pytest.mark.parametrize("name", ["gone/a.txt", "x" * 300, "a\0b", "folder"])
def test_what_cannot_be_written_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(MemsimError, match="cannot write the page") as caught:
        write_text(tmp_path / name, "text", "the page")
    assert caught.value.exit_code == 2
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_a_name_that_is_no_text_is_written_as_one(tmp_path: Path) -> None:
    write_text(tmp_path / "a", os.fsdecode(b"caf\xe9.cu"), "it")
    assert (tmp_path / "a").read_bytes() in (b"caf\\udce9.cu", "café.cu".encode())


@POSIX
def test_a_full_device_is_an_error_and_stays_a_device() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    with pytest.raises(MemsimError, match="No space left"):
        write_text(Path("/dev/full"), "text", "it")
    assert Path("/dev/full").is_char_device()
    write_text(Path("/dev/null"), "text", "it")
    assert Path("/dev/null").is_char_device()


@POSIX
def test_a_pipe_is_never_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(MemsimError, match="not a regular file"):
        read_bytes(pipe)
    with pytest.raises(MemsimError, match="cannot write it"):
        write_text(pipe, "text", "it")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_text(pipe, "text", "it")
    assert os.read(reader, 10) == b"text"
    os.close(reader)


def test_toml_may_begin_with_a_byte_order_mark() -> None:
    assert parse_toml("a = 1") == parse_toml("\ufeffa = 1") == {"a": 1}
    with pytest.raises(TomlError):
        parse_toml("a\ufeff = 1")


def test_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    for name, message in (("latin", "not UTF-8"), (".", "not a regular file"), ("a\0b", "cannot read")):
        with pytest.raises(MemsimError, match=message):
            read_text(tmp_path / name, "the baseline")
    with pytest.raises(FileNotFoundError):
        read_text(tmp_path / "gone")
    (tmp_path / "good").write_bytes("é\r\n".encode())
    assert read_text(tmp_path / "good") == "é\n"
