"""What fits into 80 columns: prose and help broken at words, commands that still can be copied, tables."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from memsim.cli import VERBS
from memsim.views.plain import CONSTANT_WIDTH, wrap_line
from tests.cli.conftest import Run

MANY = """\
template <int BM> __global__ void t(const float *in, float *out, int rows, int columns, float a_factor) {
    int i = blockIdx.x * BM + threadIdx.x;
    if (i < rows) out[i] = in[i * columns] * a_factor;
}
void run(float *a, float *b, int M, int N) {
    const int B = 128;
    t<B><<<dim3((N + B - 1) / B, M), B>>>(a, b, N, M, 2.0f);
}
"""
NAIVE = "transpose_naive --size 64,64"
TEXTS = [
    "--help",
    "doctor",
    "list",
    "analyze many.cu",
    "analyze many.cu --let N=3",
    f"analyze {NAIVE} --sass",
    "analyze nothing",
    f"bound {NAIVE}",
    f"explain {NAIVE}",
    "explain kernel_v1 --size 64,64,64 --site 0",
    f"heatmap {NAIVE}",
    f"suggest {NAIVE}",
    f"sanitize {NAIVE}",
    f"compare {NAIVE} transpose_padded",
    "sweep 'transpose_*' --size 64,64 -j 1",
]


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("many.cu").write_text(MANY)


@pytest.mark.some(4)
@pytest.mark.parametrize("words", [*(f"{verb} --help" for verb in VERBS), *TEXTS])
def test_80_columns_are_enough(memsim: Run, words: str) -> None:
    done = memsim(words)
    lines = [*done.out.splitlines(), *done.err.splitlines()]
    assert len(lines) > 1 and done.code in (0, 2)
    wide = [line for line in lines if len(line) > 80]
    assert [line for line in wide if "/" not in line.split()[-1]] == []  # a path is never broken


def test_a_long_command_can_be_copied(memsim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    folded = memsim("analyze many.cu").out
    monkeypatch.delenv("COLUMNS")
    (command,) = [line for line in memsim("analyze many.cu").out.splitlines() if "memsim analyze" in line]
    assert command not in folded and " \\\n" in folded
    begin = folded.index("memsim analyze")
    said = folded[begin : folded.index("\n  with values", begin)].replace("\\\n", "")  # as a shell does
    assert shlex.split(said) == shlex.split(command) and len(command) > 80


def test_a_sentence_is_broken_at_words_and_a_row_is_not() -> None:
    sentence, row = "word " * 40, f"a  b  c  d   {'x' * 100}"
    assert all(len(line) <= 80 for line in wrap_line(sentence, 80).split("\n"))
    assert wrap_line(sentence, 80).split() == sentence.split()
    assert wrap_line(row, 80) == row and wrap_line(sentence, None) == sentence
    assert wrap_line(f"  {sentence}", 80).split("\n")[1].startswith("  word")
    assert wrap_line(f"name    {sentence}", 80).split("\n")[1].startswith("        word")


def test_plain_text_has_one_width_and_no_colours(memsim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    found = set()
    for width in ("40", "80", "300"):
        monkeypatch.setenv("COLUMNS", width)
        found.add(memsim(f"heatmap {NAIVE} --plain").out)
    (text,) = found
    assert "\x1b" not in text and 80 < max(map(len, text.splitlines())) <= CONSTANT_WIDTH
    assert "\x1b" in memsim(f"heatmap {NAIVE}").out  # the next one in this process is as asked
