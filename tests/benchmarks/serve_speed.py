"""How long `memsim serve` takes to judge a new text of a kernel, and to compare many, with an empty cache:
seconds of processor time, and of the clock.

python -m tests.benchmarks.serve_speed
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from memsim.cli import serve
from tests.cli.test_serve import NAIVE, OPTIONS

TEXTS = 100


def measured(what: str, work: Callable[[], object]) -> None:
    """Prints how long some work takes."""
    before, began = sum(os.times()[:4]), time.perf_counter()
    work()
    print(
        f"{what}: processor {sum(os.times()[:4]) - before:.2f} s, clock {time.perf_counter() - began:.2f} s"
    )


def new(text: str, number: int) -> str:
    """Another text, whose machine code was not seen before."""
    return text.replace("= tile[x][y]", f"= tile[x][y] * {number}.5f")


def main() -> None:
    """Judges a text with conflicts and one without, and compares texts."""
    with TemporaryDirectory() as folder:
        os.environ["MEMSIM_CACHE_DIR"] = folder
        os.chdir(folder)
        Path("turn.cu").write_text(NAIVE)
        padded, wrong = NAIVE.replace("[32][32]", "[32][33]"), NAIVE.replace("= tile[x][y]", "= oops")
        serve.judge("turn.cu", new(NAIVE, 0), OPTIONS)  # the file itself is analyzed, and all is imported
        measured("judge, 32-way conflict", lambda: serve.judge("turn.cu", new(NAIVE, 1), OPTIONS))
        measured("judge without cures", lambda: serve.judge("turn.cu", new(NAIVE, 3), OPTIONS, cures=False))
        measured("judge, no conflict", lambda: serve.judge("turn.cu", new(padded, 2), OPTIONS))
        measured("judge, does not compile", lambda: serve.judge("turn.cu", wrong, OPTIONS))
        texts = {str(number): new(padded, number) for number in range(10, 10 + TEXTS)}
        measured(f"compare_texts, {TEXTS} texts", lambda: serve.compare_texts("turn.cu", texts, OPTIONS))


if __name__ == "__main__":
    main()
