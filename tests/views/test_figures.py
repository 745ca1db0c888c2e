"""What figures draw are the records: arrays behind them, bars, arrows."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

from memsim.errors import MemsimError
from memsim.pictures.array_layouts import layouts
from memsim.pictures.bank_use import bank_use
from memsim.pictures.data_flow import flow
from memsim.pictures.worst_request import SharedRequest, take_apart
from memsim.views import canvas
from tests.views.cases import kernel, mixed


def polygons(axes: object) -> list[PolyCollection]:
    return [artist for artist in axes.collections if isinstance(artist, PolyCollection)]  # type: ignore[attr-defined]


def panels(figure: object, columns: int) -> list[list[object]]:
    """The axes of each panel of a heatmap: names, cells, ways, wavefronts; the legend left out."""
    axes = figure.axes[:-1]  # type: ignore[attr-defined]
    return [axes[i : i + 4] for i in range(0, 4 * columns, 4)]


@pytest.mark.slow
def test_the_heatmap_draws_the_use_of_the_banks() -> None:
    analysis = mixed()
    use = bank_use(analysis)
    ((_, cells, ways, wavefronts),) = panels(analysis.plot.heatmap(), 1)
    drawn_ways = polygons(cells)[0].get_array()
    assert np.array_equal(drawn_ways.reshape(-1, 32), [one.worst for one in use.values()])

    drawn, shared = [], [site for site in analysis.sites if site.space == "shared"]
    for row, one in enumerate(use.values()):
        for path, share in zip(
            polygons(cells)[2].get_paths()[32 * row : 32 * row + 32], one.busy, strict=True
        ):
            drawn.append(np.isclose(np.ptp(path.vertices[:, 0]), 0.88 * share))
    assert all(drawn) and len(drawn) == 96
    assert [bar.get_width() for bar in ways.patches] == [site.max_ways or 0 for site in shared]
    lengths = np.array([bar.get_width() for bar in wavefronts.patches]).reshape(3, -1).sum(axis=0)
    assert lengths.tolist() == [site.wavefronts / site.requests if site.requests else 0 for site in shared]
    marks = [text.get_text() for text in cells.texts]
    # the banks of the worst request: 16 of two ways, one of four
    assert marks.count("2") == 16 and marks.count("4") == 1 and marks[-1] == "not analyzed"


def test_rows_stand_in_the_order_of_the_sites() -> None:
    analysis = kernel("kernel_v4_colmajor")
    ((names, *_),) = panels(analysis.plot.heatmap(), 1)
    titles = [text.get_text() for text in names.texts[::2]]
    lines = [analysis.sites[number].line for number in bank_use(analysis)]
    assert [int(title.split()[1]) for title in titles] == lines
    assert titles[0] == "line 40 · store 4 B · s_a"


def test_two_kernels_share_every_scale() -> None:
    bad, good = kernel("kernel_v4_colmajor"), kernel("kernel_v4")
    both = panels(bad.plot.heatmap(good), 2)
    for ours, theirs in zip(*both, strict=True):
        assert ours.get_xlim() == theirs.get_xlim()
        assert ours.get_ylim() == theirs.get_ylim()
    scales = [polygons(cells)[0].norm for _, cells, _, _ in both]
    assert (scales[0].vmin, scales[0].vmax) == (scales[1].vmin, scales[1].vmax) == (1, 32)
    alone = panels(good.plot.heatmap(), 1)[0]
    assert alone[2].get_xlim() != both[1][2].get_xlim()  # its own ways reach less far


@pytest.mark.slow
def test_a_side_without_shared_memory_is_empty_and_says_so() -> None:
    figure = kernel("kernel_v4_colmajor").plot.heatmap(kernel("kernel_v1"))
    full, empty = panels(figure, 2)
    assert [text.get_text() for text in empty[0].texts] == ["This kernel does not access shared memory."]
    assert all(not axes.axison and not axes.collections and not axes.patches for axes in empty)
    assert polygons(full[1]) and full[1].axison
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
    lanes, lines, graph, _ = analysis.plot.lanes(site).axes
    drawn = np.zeros((32, 32), int)
    for path, wavefront in zip(polygons(lanes)[0].get_paths(), polygons(lanes)[0].get_array(), strict=True):
        bank, lane = path.vertices[:4].mean(axis=0).round().astype(int)
        drawn[lane, bank] = wavefront
    for lane in range(32):
        banks = [word % 32 for word in request.words(lane)]
        assert drawn[lane, banks].tolist() == [request.wavefront[lane]] * len(banks)
        assert np.count_nonzero(drawn[lane]) == len(banks)
    words = {word for lane in range(32) for word in request.words(lane)}
    assert len(polygons(lines)[0].get_array()) == len(words)
    edges = [a for a in graph.collections if not isinstance(a, PolyCollection) and hasattr(a, "get_segments")]
    expected = sum(
        len(m.seats[0].lanes) * len(m.seats[1].lanes) for m in request.collisions() if len(m.seats) == 2
    )
    assert len(edges[0].get_segments()) == (496 if name == "transpose_naive" else expected)


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
            titles = " ".join(text.get_text() for text in picture.texts)
            assert name in titles or any(name in axes.get_title(loc="left") for axes in picture.axes)
            *_, legend = [text.get_text() for axes in picture.axes for text in axes.texts]
            assert legend


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
