"""What figures draw are the records: arrays behind them, bars, arrows."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from memsim.errors import MemsimError
from memsim.pictures.array_layouts import layouts
from memsim.pictures.bank_use import bank_use
from memsim.pictures.data_flow import flow
from memsim.pictures.worst_request import SharedRequest, take_apart
from memsim.views import canvas
from tests.views.cases import kernel, mixed


@pytest.mark.slow
def test_the_heatmap_draws_the_use_of_the_banks() -> None:
    analysis = mixed()
    use = bank_use(analysis)
    (cells,) = analysis.plot.heatmap().axes
    known = [row for row in cells.images[0].get_array().tolist() if any(row)]
    assert known == [one.worst.tolist() for one in use.values()]
    shared = [site for site in analysis.sites if site.space == "shared"]
    said = [label.get_text() for axes in cells.child_axes for label in axes.get_yticklabels()]
    assert len(said) == len(shared)
    for site, text in zip(shared, said, strict=True):
        answer, spent = text.splitlines()
        assert bool(site.conflicts) == (answer == f"{site.max_ways}-way conflict")
        if site.requests and site.wavefronts is not None:
            assert f"{site.wavefronts / site.requests:.3g}" in spent
    marks = [text.get_text() for text in cells.texts]
    # the banks of the worst request: 16 of two ways, one of four
    assert marks.count("2") == 16 and marks.count("4") == 1 and marks[-1] == "not analyzed"


def test_rows_stand_in_the_order_of_the_sites() -> None:
    analysis = kernel("kernel_v4_colmajor")
    (cells,) = analysis.plot.heatmap().axes
    titles = [label.get_text().splitlines()[0] for label in cells.get_yticklabels()]
    lines = [analysis.sites[number].line for number in bank_use(analysis)]
    assert [int(title.split()[1]) for title in titles] == lines
    assert titles[0] == "line 40 · store 4 B · s_a"


def test_two_kernels_share_the_scale() -> None:
    bad, good = kernel("kernel_v4_colmajor"), kernel("kernel_v4")
    scales = [axes.images[0].norm for axes in bad.plot.heatmap(good).axes]
    assert [(scale.vmin, scale.vmax) for scale in scales] == [(1, 32), (1, 32)]


@pytest.mark.slow
def test_a_side_without_shared_memory_is_empty_and_says_so() -> None:
    full, empty = kernel("kernel_v4_colmajor").plot.heatmap(kernel("kernel_v1")).axes
    assert [text.get_text() for text in empty.texts] == ["This kernel does not access shared memory."]
    assert not empty.axison and not empty.images
    assert full.images and full.axison
    with pytest.raises(MemsimError, match="kernel_v1 and opt_2_naive do not access shared memory"):
        kernel("kernel_v1").plot.heatmap(kernel("opt_2_naive"))


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("name", "site"), [("kernel_v4_colmajor", 2), ("kernel_v4", 9), ("transpose_naive", 2)]
)
def test_the_lanes_figure_draws_the_request(name: str, site: int) -> None:
    analysis = kernel(name)
    request = take_apart(analysis, site)
    assert isinstance(request, SharedRequest)
    lanes, lines = analysis.plot.lanes(site).axes
    drawn = lanes.images[0].get_array()
    for lane in range(32):
        banks = [word % 32 for word in request.words(lane)]
        assert drawn[lane, banks].tolist() == [request.wavefront[lane]] * len(banks)
        assert np.count_nonzero(drawn[lane]) == len(banks)
    words = {word for lane in range(32) for word in request.words(lane)}
    assert np.count_nonzero(lines.images[0].get_array()) == len(lines.texts) == len(words)
    bold = {text.get_position() for text in lanes.texts if text.get_weight() == "bold"}
    colliding = {
        (bank, lane)
        for meeting in request.collisions()
        for bank in meeting.banks
        for seat in meeting.seats
        for lane in seat.lanes
    }
    assert bold == colliding


def test_the_sectors_figure_draws_the_bytes() -> None:
    analysis = mixed()
    scattered, near = (take_apart(analysis, site) for site in (4, 3))
    for request, site in ((scattered, 4), (near, 3)):
        picture = analysis.plot.lanes(site).axes[0].images[0].get_array()
        assert np.array_equal(picture == 2, request.used)
        assert np.array_equal(picture > 0, np.repeat(request.touched, 32, axis=1))
    assert {len(scattered.lines), len(near.lines)} == {1, 32}


@pytest.mark.slow
def test_the_layout_has_banks_and_owners() -> None:
    for name in ("transpose_padded", "kernel_v4"):
        analysis = kernel(name)
        array = layouts(analysis)[0]
        shown = analysis.layout(array.name)
        words = re.findall(r'class="b(\d+)"/><text [^>]*>([^<]*)<', shown.html)
        assert [int(bank) for bank, _ in words] == array.bank[array.bank >= 0].tolist()
        writers = array.writer[array.bank >= 0].tolist()
        assert [owner for _, owner in words] == [f"{w // 32}:{w % 32}" if w >= 0 else "" for w in writers]
        rows = [[int(bank) for bank in line.split()] for line in shown.text.splitlines()[1:]]
        assert rows == [row[row >= 0].tolist() for row in array.bank]


def test_the_flow_has_a_rung_for_each_site() -> None:
    analysis = mixed()
    shown = analysis.flow()
    sites = [key for *_, key in flow(analysis).edges(keys=True)]
    assert shown.html.count('class="rung ') == len(shown.text.splitlines()) == len(sites)
    for said in ("640 B, 5 requests, 50 % of ideal", "128 B, 1 request, 12 % of ideal", "not analyzed"):
        assert said in shown.text and said in shown.html


@pytest.mark.slow
def test_every_picture_names_the_kernel_and_says_what_colours_mean() -> None:
    for name in ("kernel_v4_colmajor", "kernel_v1"):
        plot = kernel(name).plot
        pictures = [plot.lanes()]
        if name != "kernel_v1":
            pictures += [plot.heatmap()]
        for picture in pictures:
            said = [picture.get_suptitle(), picture.get_supxlabel()]
            said += [axes.get_title(loc="left") for axes in picture.axes]
            assert name in " ".join(said) and said[1]


@pytest.mark.slow
def test_names_that_are_not_there_are_refused() -> None:
    plot = kernel("kernel_v4").plot
    assert kernel("kernel_v4").layout().text == kernel("kernel_v4").layout("s_a").text
    with pytest.raises(MemsimError, match="accesses no shared array s_c") as error:
        kernel("kernel_v4").layout("s_c")
    assert error.value.hint == "there are s_a, s_b"
    with pytest.raises(MemsimError, match="no access site 99"):
        plot.lanes(99)
    with pytest.raises(MemsimError, match="does not access shared memory"):
        kernel("kernel_v1").plot.heatmap()
    with pytest.raises(MemsimError, match="accesses no shared array"):
        kernel("kernel_v1").layout()
    assert kernel("kernel_v1").plot.lanes().axes  # its worst site is in global memory


@pytest.mark.some(1)
@pytest.mark.parametrize("suffix", canvas.SUFFIXES)
def test_the_same_figure_is_the_same_file(tmp_path: Path, suffix: str) -> None:
    files = [tmp_path / f"{name}{suffix}" for name in ("one", "two")]
    for file in files:
        canvas.save(kernel("transpose_xor").plot.heatmap(), file)
    one, two = (file.read_bytes() for file in files)
    assert one == two and len(one) > 5000
    with pytest.raises(MemsimError, match="cannot write the picture"):
        canvas.save(kernel("transpose_xor").plot.heatmap(), tmp_path / "no" / f"x{suffix}")


def test_a_notebook_shows_a_figure_by_itself() -> None:
    assert kernel("transpose_xor").plot.heatmap()._repr_png_().startswith(b"\x89PNG")


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    analysis = kernel("kernel_v4")
    assert analysis.plot.lanes().axes
    canvas._figure_class.cache_clear()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for draw in (analysis.plot.heatmap, analysis.plot.lanes):
        with pytest.raises(MemsimError, match="pictures need matplotlib") as error:
            draw()
        assert error.value.hint == "pip install matplotlib"
    canvas._figure_class.cache_clear()
