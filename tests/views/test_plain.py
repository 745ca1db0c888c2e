"""No text of others moves a cursor, turns the direction of writing, or commands a log."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from memsim.cli import main
from memsim.views.plain import plain, plain_console

HOSTILE = "\x1b[2J\x1b]0;owned\x07 \u202eesrever\u2066 \x9b31m \r\x00\u2028::error::x"


@given(st.text())
def test_nothing_takes_effect(text: str) -> None:
    shown = plain(text)
    assert len(shown) == len(text)
    assert not set(shown) & set(HOSTILE[:1] + "\x07\u202e\u2066\x9b\r\x00\u2028")
    assert plain(shown) == shown


def test_what_is_harmless_stays() -> None:
    text = "\ts_a[k] = é + 漢字;\n  ::std::move(x) ##[x]\n"
    assert plain(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::x", ": :error::x"),
        ("a\n \t::stop-commands::x", "a\n \t: :stop-commands::x"),
        ("a ##[error]x", "a ## [error]x"),
        ("a ::error::x", "a ::error::x"),
    ],
)
def test_a_log_of_github_is_given_no_command(text: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert plain(text) == shown
    monkeypatch.delenv("GITHUB_ACTIONS")
    assert plain(text) == text


def test_colours_stay_and_text_is_plain() -> None:
    stream = StringIO()
    console = plain_console(stream, force_terminal=True, color_system="truecolor")
    table = Table(HOSTILE)
    table.add_row(Text(HOSTILE, style="bold red"))
    console.print(table)
    console.print(Text(HOSTILE, style="bold red"))
    printed = stream.getvalue()
    assert "\x1b[1;31m" in printed
    for part in ("\x1b[2J", "\x1b]", "\x07", "\u202e", "\u2066", "\x9b", "\u2028"):
        assert part not in printed
    assert "␛[2J" in printed


KERNEL = """\
extern "C" __global__ void k(float *o) {
    o[threadIdx.x] = 1; // \x1b[2J \u202e owned
    %s
}
"""


@pytest.mark.slow
def test_source_and_names_reach_the_terminal_plain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "k\x1b[31m.cu"
    path.write_text(KERNEL % "", encoding="utf-8")
    launch = ("--grid", "1", "--block", "32", "--arg", "f32[32]")
    for verb in ("analyze", "explain"):
        assert main([verb, str(path), *launch]) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert "\u202e" not in out
    path.write_text(KERNEL % "::error::\x1b[2J;", encoding="utf-8")
    assert main(["analyze", str(path), *launch]) == 2
    assert "\x1b" not in capsys.readouterr().err
    assert main(["analyze", "\x1b[2J\x1b", "--\x1b"]) == 2
    assert "\x1b" not in capsys.readouterr().err
