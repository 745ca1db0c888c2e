"""The generated parts of README.md: the picture, and captures cut down to what the text is about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from docs import by_instruction, predicted_sets
from docs.capture import CUT, ROOT, fenced, paragraphs, printed
from docs.pictures import PICTURES
from lab.experiments import PROBE
from lab.probe.judge_probe import judge_probe
from memsim.data import data_folder
from memsim.validate.compare_instructions import EXACT, NOISE, UNMODELLED

CHIP = "nvidia-h200"


def analyze() -> str:
    """The verdict and the rows of shared memory."""
    command = "memsim analyze transpose_naive"
    answer, shared, *_ = paragraphs(printed(command))
    rows = "\n".join(shared.splitlines()[1:])
    return fenced(command, f"{answer.splitlines()[0]}\n{rows}\n")


def suggest() -> str:
    """The best proposal with its code, and what it changes."""
    command = "memsim suggest transpose_naive"
    parts = paragraphs(printed(command))
    best = next(part for part in parts if part.startswith("1. "))
    code = next(part for part in parts if " - " in part.splitlines()[0])
    return fenced(command, "\n".join([CUT, best, code, CUT]) + "\n")


def picture(name: str) -> str:
    """A picture; its path as the README needs it."""
    return f"![{PICTURES[name].alt()}](docs/pictures/{name}.png)\n"


def own_file() -> str:
    """The README's own file: its verdict."""
    command = "memsim analyze scale.cu"
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "scale.cu").write_text(_block("cuda", "scale"), "utf-8")
        answer = printed(command, folder).splitlines()[0]
    return fenced(command, f"{answer}\n")


def _block(language: str, words: str) -> str:
    """The README's block of a language with these words in it."""
    text = (ROOT / "README.md").read_text("utf-8")
    (found,) = [block for block in re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL) if words in block]
    return str(found)


def accuracy() -> str:
    """What the rules, the catalogue and other projects' kernels come to, a line for each."""
    recording = PROBE.newest(data_folder("traces"), CHIP)
    held = judge_probe(recording)
    launches, patterns, _ = next(iter(recording.probed.values())).addresses.shape
    figures = _equal(pair for one in held for pair in (*one.figures.values(), *one.counters.values()))
    kernels = Counter(kernel["outcome"] for kernel in by_instruction.foreign())
    first = Counter(kernel["first"] for kernel in by_instruction.held_out())
    launches_of_sets = [one for name in predicted_sets.SETS for one in predicted_sets.launches(name)]
    predicted = Counter(launch["apart"] for launch in launches_of_sets)
    in_a_figure = sum(launch["live"] == "wrong" != launch["apart"] for launch in launches_of_sets)
    compared = Counter(figure.verdict for _, one in by_instruction.comparisons()[0] for figure in one.figures)
    lines = [
        f"- {sum(one.holds for one in held)} of {len(held)} instructions, {launches * patterns} address "
        f"patterns each ({recording.device.gpu}): {figures} figures equal.",
        f"- The kernels that ship: {compared[EXACT]:,} of {compared.total():,} figures equal, "
        f"{compared[NOISE]:,} arbitration, {compared[UNMODELLED]:,} not modelled.",
        f"- {kernels.total():,} kernels of other projects: {kernels['equal']:,} equal in everything; "
        f"{_wrong(kernels)}.",
        f"- {first.total():,} more, not seen before: {first['equal']:,} equal in everything; "
        f"{_wrong(first)}.",
        f"- {predicted.total():,} predicted, then measured: {predicted['equal']:,} equal in everything; "
        f"{_wrong(predicted)}.",
        f"- {in_a_figure} more of these was wrong in a figure of one instruction; "
        f"all {predicted['wrong'] + in_a_figure} are mended since.",
        "- Not in the counts: caches, arbitration between warps. Time is [an estimate](docs/time.md).",
    ]
    return "".join(f"{line}\n" for line in lines)


def _wrong(kernels: Counter[str]) -> str:
    """How many kernels have a wrong count, and how many of them have one that was shown as certain."""
    certain = f"{kernels['wrong']:,} of them not reported" if kernels["wrong"] else "all reported"
    return f"{kernels['order'] + kernels['wrong']:,} wrong, {certain} uncertain"


def _equal(pairs: Iterable[tuple[int, int]]) -> str:
    held = list(pairs)
    return f"{sum(equal for equal, _ in held):,} of {sum(compared for _, compared in held):,}"


PARTS: dict[str, Callable[[], str]] = {
    "first look: picture": partial(picture, "transpose"),
    "first look: report": partial(picture, "report"),
    "first look: analyze": analyze,
    "first look: suggest": suggest,
    "first look: own file": own_file,
    "first look: accuracy": accuracy,
}
