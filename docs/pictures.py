"""The pictures of README.md and of pages in docs/, as PNG files in `docs/pictures/`.

A picture is drawn again when its numbers change; `docs/pictures/drawn.json` keeps their digests. Pixels that
another release of matplotlib draws differently are not a reason.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cache, cached_property, partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

import memsim
from docs.growth import page as growth
from memsim import Analysis
from memsim.pictures.array_layouts import layouts
from memsim.pictures.worst_request import GlobalRequest, SharedRequest, take_apart
from memsim.views.array_pictures import ladder
from memsim.views.explain.sentences import sentences
from memsim.views.heatmap.heat_rows import heat_rows
from memsim.views.report import report_page
from studies.bench import page as speed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOCS = Path(__file__).parent
FOLDER = Path("docs/pictures")
DRAWN = "drawn.json"
IN_TEXT = re.compile(r"\((?:docs/)?pictures/(\w+)\.png\)")
DPI = 72
COLOURS = 96


@cache
def patterns() -> Analysis:
    """One line for each way to use the banks."""
    kernel = memsim.load(DOCS / "patterns" / "patterns.cu", name="patterns.cu")["patterns"]
    return memsim.analyze(kernel, grid=1, block=(32, 32), args=[memsim.ArrayArg((1024,))])


@cache
def kernel(name: str) -> Analysis:
    """A kernel of the catalogue at its default size."""
    return memsim.catalog()[name].analyze()


@dataclass(frozen=True)
class Picture:
    """A picture: how it is drawn (bytes: of a PNG file), the numbers in it, and what is said to those who
    cannot see it.
    """

    draw: Callable[[], Figure | bytes]
    numbers: Callable[[], Any]
    alt: Callable[[], str]

    @cached_property
    def digest(self) -> str:
        """Of the numbers; equal numbers, equal digest."""
        return hashlib.sha256(json.dumps(self.numbers(), default=_plain).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """numpy arrays and ranges as lists; shares to nine digits, so that the order of a sum is no change."""
    if isinstance(value, np.ndarray):
        return np.round(value, 9).tolist() if value.dtype.kind == "f" else value.tolist()
    return list(value)


def heatmap(*analyses: Callable[[], Analysis]) -> Picture:
    """The bank heatmap of one or two kernels."""
    return Picture(
        draw=lambda: analyses[0]().plot.heatmap(*(each() for each in analyses[1:])),
        numbers=lambda: [
            [[row.title, row.answer, row.parts, *_use(row)] for row in heat_rows(each())] for each in analyses
        ],
        alt=lambda: "Bank heatmap. " + " ".join(_rows(each()) for each in analyses),
    )


def _use(row: Any) -> Iterable[Any]:
    return () if row.use is None else (row.use.words, row.use.busy, row.use.ways, row.use.worst)


def _rows(analysis: Analysis) -> str:
    rows = (f"line {row.site.line} {row.answer}" for row in heat_rows(analysis))
    return f"{analysis.trace.kernel}: {', '.join(rows)}."


def request(analysis: Callable[[], Analysis], line: int, op: str) -> Picture:
    """One request taken apart: the one of a line."""

    def site() -> int:
        return next(i for i, s in enumerate(analysis().sites) if (s.line, s.op) == (line, op))

    def numbers() -> Any:
        apart: SharedRequest | GlobalRequest = take_apart(analysis(), site())
        served = [apart.wavefront, apart.group] if isinstance(apart, SharedRequest) else [apart.used]
        return [sentences(apart), apart.addresses, apart.active, *served]

    return Picture(
        draw=lambda: analysis().plot.lanes(site()),
        numbers=numbers,
        alt=lambda: sentences(take_apart(analysis(), site()))[0],
    )


def layout(analysis: Callable[[], Analysis], name: str) -> Picture:
    """The layout of a shared array."""

    def array() -> Any:
        return next(each for each in layouts(analysis()) if each.name == name)

    return Picture(
        draw=lambda: shot(analysis().layout(name).html, 1040, 700),
        numbers=lambda: [array().bank, array().writer],
        alt=lambda: (
            f"Layout of {name}: {array().bank.shape[0]} rows of {array().bank.shape[1]} words, by bank"
        ),
    )


def flow(analysis: Callable[[], Analysis]) -> Picture:
    """What moves where."""
    return Picture(
        draw=lambda: shot(analysis().flow().html, 1200, 560),
        numbers=lambda: asdict(ladder(analysis())),
        alt=lambda: (
            f"What {analysis().trace.kernel} moves between global arrays, registers and shared arrays"
        ),
    )


BROWSER = "chromium --headless --no-sandbox --disable-gpu --hide-scrollbars".split()


def shot(html: str, width: int = 1100, height: int = 850) -> bytes:
    """The top of a page, as a browser shows it."""
    with TemporaryDirectory() as folder:
        page, picture = Path(folder, "page.html"), Path(folder, "page.png")
        page.write_text(html, "utf-8")
        options = [f"--user-data-dir={folder}/profile", f"--window-size={width},{height}"]
        command = [*BROWSER, *options, f"--screenshot={picture}", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True)
        return picture.read_bytes()


def report(name: str) -> Picture:
    """The top of a kernel's report."""
    return Picture(
        draw=lambda: shot(report_page(kernel(name).timed)),
        numbers=lambda: [kernel(name).verdict, kernel(name).to_dict()["sites"]],
        alt=lambda: f"Report of {kernel(name).verdict}",
    )


SPEED = {
    speed.name(recording): Picture(
        draw=partial(speed.draw, recording),
        numbers=partial(speed.numbers, recording),
        alt=partial(speed.alt, recording),
    )
    for recording in speed.recordings()
}
GROWTH = {name: Picture(*drawing) for name, drawing in growth.DRAWINGS.items()}
PICTURES = {
    "transpose": heatmap(lambda: kernel("transpose_naive"), lambda: kernel("transpose_padded")),
    "report": report("transpose_naive"),
    "patterns": heatmap(patterns),
    "two_way": request(patterns, 15, "load"),
    "broadcast": request(patterns, 17, "load"),
    "padding": layout(patterns, "padded"),
    "wide": request(patterns, 20, "load"),
    "z_order": request(patterns, 22, "load"),
    "colmajor_and_v4": heatmap(lambda: kernel("kernel_v4_colmajor"), lambda: kernel("kernel_v4")),
    "scattered": request(lambda: kernel("kernel_v1"), 19, "load"),
    "flow": flow(lambda: kernel("kernel_v4_colmajor")),
    **SPEED,
    **GROWTH,
}


def markdown(name: str) -> str:
    """The picture as Markdown."""
    return f"![{PICTURES[name].alt()}](pictures/{name}.png)\n"


OF_PARTS = {*SPEED, *GROWTH, "transpose", "report"}  # those stand in parts of their own
SHOWN = [name for name in PICTURES if name not in OF_PARTS]
PARTS = {f"picture {name}": (lambda name=name: markdown(name)) for name in SHOWN}


def shown_by(texts: Iterable[str]) -> list[str]:
    """The names of the pictures that stand in these documents."""
    shown = {name for text in texts for name in IN_TEXT.findall(text)}
    return [name for name in PICTURES if name in shown]


def drawn_of(root: Path) -> dict[str, str]:
    """The digests of what the pictures below `root` were drawn of."""
    try:
        digests: dict[str, str] = json.loads((root / FOLDER / DRAWN).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    return digests


def stale_pictures(root: Path, names: Iterable[str] = tuple(PICTURES)) -> list[Path]:
    """Those of these pictures below `root` that are missing, or were drawn of other numbers."""
    drawn = drawn_of(root)
    paths = {name: root / FOLDER / f"{name}.png" for name in names}
    return [
        path for name, path in paths.items() if not path.is_file() or drawn.get(name) != PICTURES[name].digest
    ]


def write_pictures(paths: list[Path], root: Path) -> None:
    """Draws these pictures, in few colours so that they are small, and writes down of what numbers."""
    from PIL import Image

    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        drawn = PICTURES[path.stem].draw()
        file = BytesIO(drawn if isinstance(drawn, bytes) else b"")
        if not isinstance(drawn, bytes):
            drawn.savefig(file, dpi=DPI)
        Image.open(file).convert("RGB").quantize(COLOURS).save(path, optimize=True)
    drawn_now = drawn_of(root) | {path.stem: PICTURES[path.stem].digest for path in paths}
    digests = {name: drawn_now[name] for name in PICTURES if name in drawn_now}
    (root / FOLDER / DRAWN).write_text(json.dumps(digests, indent=1) + "\n", "utf-8")
