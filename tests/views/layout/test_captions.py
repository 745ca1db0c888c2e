"""What is shown of a shared array: its name and its whole size, and what is left out, where something is."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.pictures.array_layouts import WordLayout
from memsim.views.array_pictures import MOST_COLUMNS, MOST_ROWS, caption, shown_part


def array(rows: int, columns: int, declared: bool = True) -> WordLayout:
    word = np.arange(rows * columns).reshape(rows, columns)
    return WordLayout("s", 0, declared, word, word % 32, word)


@pytest.mark.parametrize(
    ("rows", "columns", "words", "size", "left_out"),
    [
        (8, 128, 9999, "8 rows of 128 words", ""),
        (64, 144, 64 * 144, "64 rows of 144 words", ""),
        (65, 144, 64 * 144, "65 rows of 144 words", " (shown: the first 64 rows)"),
        (2, 512, 2048, "2 rows of 512 words", " (shown: the first 144 words of each)"),
        (128, 256, 2048, "128 rows of 256 words", " (shown: the first 14 rows, the first 144 words of each)"),
        (32, 64, 2048, "32 rows of 64 words", ""),
        (33, 64, 2048, "33 rows of 64 words", " (shown: the first 32 rows)"),
        (1, 1024, 9999, "1 row of 1,024 words", " (shown: the first 144 words of it)"),
        (2, 4, 1, "2 rows of 4 words", " (shown: the first row)"),
    ],
)
def test_the_caption_is_of_the_whole_and_says_what_is_left_out(
    rows: int, columns: int, words: int, size: str, left_out: str
) -> None:
    whole = array(rows, columns)
    part = shown_part(whole, words)
    assert caption(whole, part) == f"s: {size}{left_out}"
    assert part.word.shape == part.bank.shape == part.writer.shape
    kept_rows, kept = part.word.shape
    assert kept_rows <= MOST_ROWS and kept <= MOST_COLUMNS
    assert part.word.tolist() == whole.word[:kept_rows, :kept].tolist()
    assert part.word.size <= max(words, kept)


def test_an_array_that_is_not_declared_is_in_lines_of_banks() -> None:
    whole = array(128, 32, declared=False)
    text = caption(whole, shown_part(whole))
    assert text == "s: 128 rows of 32 words, one in each of the 32 banks (shown: the first 64 rows)"
