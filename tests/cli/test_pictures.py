"""`memsim heatmap`, `explain` and `report`, from the words typed to what is printed and written."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from memsim.analysis import analyze_trace
from memsim.arch import SM_90
from memsim.cli import drawings as report_verb
from memsim.kernels import catalog
from memsim.trace.trace import Trace
from memsim.validate.code_recording import CodeLaunchRecord, CodeOrigin, CodeRecording, ResultCheck
from memsim.validate.device import Device
from memsim.validate.profiles import CodeProfile, Counted
from memsim.views.report import report_page
from memsim.views.report.page import heatmap_page
from tests.cli.conftest import Run

SMALL = "--size 128,128,16"
SIZE = (128, 128, 16)
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
STARTS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF", ".html": b"<!doctype html>"}


# --- heatmap ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_heatmap_in_the_terminal(memsim: Run) -> None:
    lines = memsim("heatmap kernel_v4_colmajor", SMALL).fine()
    assert lines[0].startswith("kernel_v4_colmajor: worst is the store")
    assert sum("2!" in line for line in lines) == 4
    assert sum("2!" in line for line in memsim("heatmap kernel_v4", SMALL).fine()) == 0


@pytest.mark.some(1)
@pytest.mark.parametrize("suffix", STARTS)
def test_a_heatmap_as_a_file(memsim: Run, tmp_path: Path, suffix: str) -> None:
    one, two = tmp_path / f"one{suffix}", tmp_path / f"two{suffix}"
    assert memsim("heatmap kernel_v4", SMALL, "-o", one).fine() == []
    memsim("heatmap kernel_v4", SMALL, "--compare kernel_v4_colmajor --output", two).fine()
    assert one.read_bytes().startswith(STARTS[suffix]) and two.read_bytes().startswith(STARTS[suffix])
    assert len(two.read_bytes()) > len(one.read_bytes())
    if suffix == ".html":
        names = ("kernel_v4", "kernel_v4_colmajor")
        assert two.read_text("utf-8") == heatmap_page([catalog()[name].analyze(size=SIZE) for name in names])


@pytest.mark.slow
def test_compare_takes_what_analyze_takes(memsim: Run, tmp_path: Path) -> None:
    saved = tmp_path / "v4.npz"
    memsim("analyze kernel_v4_colmajor", SMALL, "--save-trace", saved).fine()
    lines = memsim("heatmap kernel_v4", SMALL, "--compare", saved).fine()
    assert sum(line.startswith(("kernel_v4:", "kernel_v4_colmajor:")) for line in lines) == 2
    assert memsim("heatmap", saved, "--compare kernel_v5").fine()[0].startswith("kernel_v4_colmajor:")
    memsim("heatmap kernel_v4", SMALL, "--compare kernel_v44").refused("did you mean kernel_v4")


@pytest.mark.slow
def test_one_side_may_have_no_shared_memory(memsim: Run) -> None:
    for pair in (("kernel_v1", "--compare", "kernel_v4"), ("kernel_v4", "--compare", "kernel_v1")):
        lines = memsim("heatmap", *pair, SMALL).fine()
        assert lines.count("This kernel does not access shared memory.") == 1
        assert sum(line.startswith("site ") for line in lines) == 1
    both = memsim("heatmap kernel_v1 --compare opt_2_naive", SMALL)
    both.refused("kernel_v1 and opt_2_naive do not access shared memory")


def test_size_and_arch_of_a_heatmap_count(memsim: Run) -> None:
    small = memsim("heatmap kernel_v4_colmajor", SMALL).fine()
    large = memsim("heatmap kernel_v4_colmajor --size 256,256,16").fine()
    assert small[0] != large[0]
    some = memsim("heatmap kernel_v4_colmajor --size 256,256,16 --blocks 2").fine()
    assert some[0].endswith("; 2 of 4 blocks replayed")
    memsim("heatmap kernel_v4", SMALL, "--arch sm_50").refused("known: sm_75")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("kernel_v1 --size 64,64,8", "does not access shared memory"),
        (f"kernel_v4 {SMALL} -o x.gif", "known: .png, .svg, .pdf, .html"),
        (f"kernel_v4 {SMALL} -o x", "without a suffix"),
        (f"kernel_v4 {SMALL} -o no/x.png", "cannot write"),
        (f"kernel_v4 {SMALL} -o no/x.html", "cannot write"),
        ("kernel_v4 --grid 8", "--grid does not apply to a catalogue kernel"),
    ],
)
def test_a_heatmap_that_cannot_be(
    memsim: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    memsim("heatmap", words).refused(message)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_without_matplotlib_only_pictures_are_missing(
    memsim: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memsim.views import canvas

    canvas._figure_class.cache_clear()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    memsim("heatmap kernel_v4", SMALL, "-o", tmp_path / "x.png").refused("pip install matplotlib")
    memsim("explain kernel_v4", SMALL, "-o", tmp_path / "x.svg").refused("pip install matplotlib")
    memsim("heatmap kernel_v4", SMALL).fine()
    memsim("heatmap kernel_v4", SMALL, "-o", tmp_path / "x.html").fine()
    memsim("explain kernel_v4", SMALL).fine()
    memsim("report kernel_v4", SMALL, "-o", tmp_path / "r.html").fine()
    canvas._figure_class.cache_clear()


# --- explain ---------------------------------------------------------------------------------


def test_explain_takes_the_worst_access_by_itself(memsim: Run) -> None:
    lines = memsim("explain kernel_v4_colmajor", SMALL).fine()
    assert lines[0] == "2-way bank conflict: 2 wavefronts for this request instead of 1."
    assert lines[1].startswith("site 2: kernels/kernel_v4_colmajor.cu:40: shared store 4 B s_a")
    assert "  group 1, bank 0: s_a[0][0] (lane 0) | s_a[4][0] (lane 1)" in lines


@pytest.mark.slow
def test_explain_s_lanes_fit_the_terminal(memsim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads and groups are left out where there is no room for them; the wavefronts are not."""
    for width, left_out in ((80, True), (100, False)):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = memsim("explain kernel_v4_colmajor", SMALL).fine()
        first = next(number for number, line in enumerate(lines) if line.startswith("lane "))
        assert max(map(len, lines[first : first + 33])) <= width
        assert ("thread" not in lines[first]) is left_out
        assert lines[first].endswith("wavefront") and lines[first + 1].endswith("1!")


@pytest.mark.slow
def test_explain_by_line_and_by_site(memsim: Run) -> None:
    by_line = memsim("explain kernel_v4_colmajor", SMALL, "--line 42").fine()
    assert by_line == memsim("explain kernel_v4_colmajor", SMALL, "--site 4").fine()
    assert by_line == memsim("explain kernel_v4_colmajor", SMALL, "--line kernel_v4_colmajor.cu:42").fine()
    assert by_line != memsim("explain kernel_v4_colmajor", SMALL, "--line 41").fine()
    assert any("s_a[2][0]" in line for line in by_line)


def test_explain_answers_the_false_alarm(memsim: Run) -> None:
    text = "\n".join(memsim("explain kernel_v4", SMALL, "--line 55").fine())
    assert text.startswith("No bank conflict: 4 wavefronts")
    assert "would wrongly call this a 4-way conflict" in text


def test_explain_tells_of_other_accesses_on_the_line(memsim: Run) -> None:
    lines = memsim("explain transpose_naive --size 64,64 --line 17").fine()
    assert lines[-1] == "Also on this line: --site 0, global load 4 B"
    assert not any("Also" in line for line in memsim("explain transpose_naive --size 64,64 --site 0").fine())


def test_explain_as_a_page(memsim: Run, tmp_path: Path) -> None:
    path = tmp_path / "request.html"
    memsim("explain kernel_v1 --size 64,64,8 -o", path).fine()
    page = path.read_text("utf-8")
    assert page.startswith("<!doctype html>") and "Not coalesced: 32 sectors" in page


def test_explain_of_global_memory(memsim: Run) -> None:
    lines = memsim("explain kernel_v1 --size 64,64,8").fine()
    assert lines[0].startswith("Not coalesced: 32 sectors")
    assert any("Consecutive lanes are" in line for line in lines)


@pytest.mark.some(1)
@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_explain_as_a_file(memsim: Run, tmp_path: Path, suffix: str) -> None:
    shared, global_ = tmp_path / f"shared{suffix}", tmp_path / f"global{suffix}"
    assert memsim("explain kernel_v4_colmajor", SMALL, "--line 42 -o", shared).fine() == []
    assert memsim("explain kernel_v4_colmajor", SMALL, "--site 0 -o", global_).fine() == []
    assert shared.read_bytes().startswith(STARTS[suffix]) and global_.read_bytes().startswith(STARTS[suffix])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--line 1", "kernel_v4.cu:43"),
        ("--line x", "write 42, or FILE:42"),
        ("--site 12", "sites are numbered 0 to 11"),
        ("--site -1", "--site"),
        ("--line 43 --site 2", "give only one"),
        ("-o x.gif", "known: .png, .svg, .pdf, .html"),
    ],
)
def test_explain_of_what_is_not_there(memsim: Run, words: str, message: str) -> None:
    memsim("explain kernel_v4", SMALL, words).refused(message)


# --- report ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_report_is_written(memsim: Run, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert memsim("report kernel_v4", SMALL, "-o", page).fine() == []
    text = page.read_text("utf-8")
    assert text.startswith("<!doctype html>")
    (island,) = re.findall(r'<script type="application/json" id="analysis">(.*?)</script>', text, re.DOTALL)
    analysis = catalog()["kernel_v4"].analyze(size=SIZE)
    assert json.loads(island) == json.loads(json.dumps(analysis.to_dict()))


@pytest.mark.slow
def test_a_report_of_a_file_or_a_saved_trace(memsim: Run, scale: Path, tmp_path: Path) -> None:
    saved, page = tmp_path / "v4.npz", tmp_path / "report.html"
    launch = "--grid 4 --block 64 --arg 'f32[200]' --arg 2.0 --arg 200 -DN=64 -DSTRIDE=2"
    memsim("report", scale, launch, "-o", page).fine()
    assert "only catalogue kernels have recordings" in page.read_text("utf-8")
    memsim("analyze kernel_v4", SMALL, "--save-trace", saved).fine()
    memsim("report", saved, "-o", page).fine()
    counted = analyze_trace(Trace.load(saved), SM_90)  # how long it takes, a trace does not say
    assert counted.totals == catalog()["kernel_v4"].analyze(size=SIZE).totals
    assert page.read_text("utf-8") == report_page(counted, "only catalogue kernels have recordings")


@pytest.mark.slow
def test_a_report_may_have_before_and_after(memsim: Run, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    memsim("report kernel_v4_colmajor", SMALL, "--compare kernel_v4 -o", page).fine()
    text = page.read_text("utf-8")
    assert "kernel_v4_colmajor → kernel_v4: 4 improved, 2 changed, of 12 accesses" in text
    assert "4 improved" not in report_page(catalog()["kernel_v4_colmajor"].analyze(size=SIZE))
    memsim("report kernel_v4", SMALL, "--compare nowhere -o", page).refused("nowhere")
    assert page.read_text("utf-8") == text


@pytest.mark.slow
def test_a_report_without_a_name_takes_one_that_is_free(
    memsim: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("transpose_naive.html", "transpose_naive-2.html"):
        assert memsim("report transpose_naive --size 64,64").fine()[-1] == f"written: {name}"
    first, second = (path.read_text("utf-8") for path in sorted(tmp_path.iterdir()))
    assert first == second and "32-way bank conflict" in first


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("heatmap transpose_naive --size 64,64 -o", ["transpose_naive-heatmap.html"]),
        ("explain transpose_naive --size 64,64 --site 1 --output", ["transpose_naive-request-1.html"]),
        ("report transpose_naive --size 64,64 -o", ["transpose_naive.html"]),
        (
            "sweep transpose_* --size 64,64 -j 1 -o --plot",
            ["transpose_-sweep.csv", "transpose_-sweep.svg"],
        ),
    ],
)
def test_a_file_without_a_name_gets_one_that_is_told(
    memsim: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, names: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert memsim(words).fine()[-len(names) :] == [f"written: {name}" for name in names]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert all(path.stat().st_size > 100 for path in tmp_path.iterdir())


@pytest.mark.slow
def test_a_report_needs_a_page_to_write(memsim: Run, tmp_path: Path) -> None:
    memsim("report kernel_v4", SMALL, "-o", tmp_path / "r.pdf").refused("name it r.html")
    memsim("report kernel_v4", SMALL, "-o", tmp_path / "no" / "r.html").refused("cannot write the page")
    assert list(tmp_path.iterdir()) == []


def recording(requests: int) -> CodeRecording:
    """A recording of kernel_v4 at the small size, with one counter."""
    job = catalog()["kernel_v4"].job(SIZE)
    shape, origin = job.launch, job.loaded.origin
    return CodeRecording(
        "kernel_v4",
        dict(job.size),
        "2026-01-02T03:04:05Z",
        "2025.3",
        Device("Some GPU", "9.0", "580.1", "13.0", "13.6"),
        CodeOrigin(origin.compiler, origin.arch, origin.digest),
        CodeLaunchRecord(job.loaded.name, shape.grid, shape.block, shape.shared_bytes, ()),
        ResultCheck("by hand", True, 0.0),
        (CodeProfile(job.loaded.name, shape.grid, shape.block, 1, {REQUESTS: Counted(requests, "request")}),),
    )


@pytest.mark.slow
def test_a_recording_stands_beside_the_prediction(
    memsim: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "r.html"
    monkeypatch.setattr(report_verb, "data_folder", tmp_path.joinpath)

    def text_of(*words: str) -> str:
        memsim("report kernel_v4", *words, "-o", page).fine()
        return re.sub(r"\s+", " ", page.read_text("utf-8"))

    assert "to compare with: there is no recording of kernel_v4 at 128,128,16" in text_of(SMALL)
    assert "to compare with: recordings cover all blocks" in text_of("--size", "256,128,16", "--blocks", "1")

    predicted = catalog()["kernel_v4"].analyze(size=SIZE).totals[REQUESTS]
    assert predicted is not None
    for counted, verdict in ((predicted, "exact"), (predicted + 1, "difference")):
        path = tmp_path / "traces" / "some-gpu" / "code" / f"kernel_v4.run{counted}.json"
        recording(counted).save(path)
        text = text_of(SMALL)
        assert "Recorded: Some GPU, Nsight Compute 2025.3, 2026-01-02T03:04:05Z." in text
        assert f'<td data-field="recorded">{counted:,}</td><td data-field="verdict">{verdict}</td>' in text
        path.unlink()
