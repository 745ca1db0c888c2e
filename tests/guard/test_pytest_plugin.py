"""The pytest plugin, in a pytest of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import networkx  # noqa: F401  # imported once here, and not again by each pytest within this one
import pytest

# pytester forgets what is first imported in a session of its own
import memsim.pytest_plugin.fixture
import memsim.sass.decode
import memsim.simt.prepared_launch
import memsim.trace.storage  # noqa: F401
from memsim.cli import main
from tests.guard.conftest import TARGET, TILE

pytest_plugins = ("pytester",)
LAUNCH = 'grid=1, block=(32, 32), args=["f32[1024]", "f32[1024]", 32]'
# Without the other plugins: they take most of the time.
ALONE = [f"-pno:{name}" for name in ("cacheprovider", "hypothesispytest", "xdist", "benchmark")]


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, traces_kept: Path) -> None:
    monkeypatch.setenv("MEMSIM_CACHE_DIR", str(traces_kept))


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess("--strict-markers", *ALONE, *arguments)


def test_a_marker_that_names_a_kernel(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.memsim("ways <= 1", kernel="transpose_padded", size=(64, 64))
        def test_good():
            pass

        @pytest.mark.memsim("ways <= 1", kernel="transpose_naive", size="64,64")
        def test_bad():
            raise AssertionError("the test itself must not run")
    """)
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=1)
    text = result.stdout.str()
    result.stdout.fnmatch_lines(
        [
            "*test_bad*",
            "FAILED: 1 of 1 check failed, in transpose_naive",
            "transpose_naive: budget broken: ways <= 1",
            "*where*code*array*count*was*is*limit*",
            "*kernels/transpose_naive.cu:22*C[[](col + ty)*tile*ways*-*32*<= 1*",
            "*lanes 0-31 of warp 0, block (0,0,0) meet in bank 0: 32 different words",
        ]
    )
    assert "Traceback" not in text
    assert "pytest_plugin" not in text
    assert "must not run" not in text


@pytest.mark.slow
def test_a_marker_that_names_a_file(pytester: pytest.Pytester) -> None:
    (pytester.path / "src").mkdir()
    (pytester.path / "src" / "tile.cu").write_text(TILE)
    (pytester.path / "tests").mkdir()
    (pytester.path / "tests" / "test_tile.py").write_text(f"""
import numpy as np
import pytest

@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.memsim("ways <= 1", "sectors <= ideal", file="../src/tile.cu", {LAUNCH}, options=["-DPAD=1"])
def test_good(n):
    pass

@pytest.mark.memsim("ways <= 1", file="../src/tile.cu", {LAUNCH}, options=["-DPAD=0"])
def test_bad():
    pass

@pytest.mark.memsim("ways <= 1", file="../src/tile.cu", grid=(1,), block=(32, 32), options=["-DPAD=1"],
                    args=[np.zeros((32, 32), np.float32), "f32[32,32]=zeros", 32])
def test_arrays():
    pass
""")
    result = run(pytester, "tests")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*../src/tile.cu:6*shared load 4 B*"])


def test_the_fixture_analyzes_and_checks(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        def test_good(memsim):
            analysis = memsim.analyze("transpose_naive", size=(64, 64))
            assert max(site.max_ways or 0 for site in analysis.sites) == 32
            memsim.check(analysis, "wavefronts < 1_000_000", "sites(global).sectors <= ideal")

        def test_bad(memsim):
            analysis = memsim.analyze("transpose_naive", size=(64, 64))
            memsim.check(analysis, "wavefronts < 1_000_000", "ways <= 1")

        @pytest.mark.memsim("ways <= 1")
        def test_marked_good(memsim):
            memsim.analyze("transpose_padded", size=(64, 64))

        @pytest.mark.memsim("ways <= 1")
        def test_marked_bad(memsim):
            memsim.analyze("transpose_naive", size=(64, 64))
    """)
    result = run(pytester, "-rA")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["FAILED*test_bad*", "FAILED*test_marked_bad*"])


LAUNCHES = """
    import contextlib, sys, types
    import pytest
    from pathlib import Path
    from memsim.captured import session
    from memsim.captured.saved_launch import read_launch

    @contextlib.contextmanager
    def capturing(keep, arch):
        package.launch = lambda: keep(read_launch(Path({file!r})))
        yield

    package = types.ModuleType("a_package")
    package.capture_launches = capturing

    @pytest.fixture(autouse=True)
    def known(monkeypatch):
        monkeypatch.setitem(sys.modules, "a_package", package)
        monkeypatch.setattr(session, "PACKAGES", {{"a_package": "a_package"}})
"""


@pytest.mark.slow
def test_the_fixture_captures(pytester: pytest.Pytester) -> None:
    file = Path(__file__).parents[2] / "docs" / "captured" / "add" / "launch.json"
    pytester.makepyfile(
        LAUNCHES.format(file=str(file))
        + """
    @pytest.mark.memsim("sectors_per_request <= 16", "requests < 1_000")
    def test_good(memsim):
        with memsim.capture() as launches:
            package.launch()
        assert [launch.kernel.title for launch in launches] == ["add"]

    @pytest.mark.memsim("sectors_per_request <= 4")
    def test_bad(memsim):
        with memsim.capture():
            package.launch()

    @pytest.mark.memsim("ways <= 1")
    def test_nothing(memsim):
        with memsim.capture() as launches:
            assert launches == []

    def test_by_hand(memsim):
        with memsim.capture("sm_90") as launches:
            package.launch()
        assert memsim.analyze(launches[0], blocks=1).trace.blocks_replayed == 1
        memsim.check(memsim.analyze(launches[0]), "sectors_per_request <= 16")

    def test_grid(memsim):
        with memsim.capture() as launches:
            package.launch()
        memsim.analyze(launches[0], grid=4)
    """
    )
    result = run(pytester, "-rA")
    result.assert_outcomes(passed=3, failed=2, errors=1)
    for line in (
        "the marker memsim checked nothing: the test analyzed no kernel",
        "add: budget broken: sectors_per_request <= 4",
        "error: grid= does not apply to a launch",
    ):
        result.stdout.fnmatch_lines([line])


@pytest.mark.slow
def test_the_marker_of_a_class_and_of_a_module(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        pytestmark = pytest.mark.memsim("requests < 1_000_000", kernel="transpose_xor", size=(64, 64))

        @pytest.mark.memsim("ways <= 1", kernel="transpose_naive", size=(64, 64))
        class TestKernels:
            def test_one(self): pass

        def test_two(): pass

        @pytest.mark.xfail(strict=True)
        @pytest.mark.memsim("ways <= 1", kernel="transpose_naive", size=(64, 64))
        def test_known(): pass
    """)
    run(pytester).assert_outcomes(passed=1, failed=1, xfailed=1)


def test_a_marker_must_check_something_and_the_fixture_alone_need_not(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        def test_free(memsim): pass

        @pytest.mark.memsim("ways <= 1")
        def test_bound(memsim): pass

        @pytest.mark.memsim("ways <= 1")
        def test_elsewhere(memsim): pytest.skip("not here")

        @pytest.mark.memsim("ways <= 1")
        def test_wrong(memsim): assert False
    """)
    result = run(pytester)
    # bound: the test passes, what comes after it fails
    result.assert_outcomes(passed=2, skipped=1, failed=1, errors=1)
    result.stdout.fnmatch_lines(["*ERROR*test_bound*"])


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("marker", "fixture", "message"),
    [
        ('"ways <= 1"', False, "the marker memsim checks nothing: give it one of kernel=, file=, target="),
        ('"ways <= 1"', True, "the marker memsim checked nothing: the test analyzed no kernel"),
        ('kernel="transpose_xor"', False, "there is no budget"),
        (
            '"sites(array=x).ways <= 1", kernel="transpose_xor", size="64,64"',
            False,
            "this budget applies to",
        ),
        ('"way <= 1", kernel="transpose_xor"', False, "budget: there is no quantity 'way'"),
        ('"ways <= 1", kernel="transpose_xxx"', False, "there is no kernel 'transpose_xxx'"),
        ('"ways <= 1", kernel="transpose_xor", sise="64,64"', False, "sise= does not apply to a"),
        ('"ways <= 1", file="gone.cu", grid=1, block=1', False, "there is no such file"),
        ('"ways <= 1", file="gone.cu"', False, "gone.cu: there is no such file"),
        (
            '"ways <= 1", file="tile.cu"',
            False,
            "turn(const float *A, float *C, int n) needs grid=, block=, args= for",
        ),
        ('"ways <= 1", target="gone"', False, "there is no memsim.toml"),
        ('"baseline", kernel="transpose_xor", size="64,64"', False, "there is no memsim.toml"),
        (
            '"ways <= 1", kernel="transpose_xor", size="64,64", accept=["sites(load)"]',
            False,
            "accepts nothing",
        ),
    ],
)
def test_what_cannot_be_judged_fails_without_a_traceback(
    pytester: pytest.Pytester, marker: str, fixture: bool, message: str
) -> None:
    (pytester.path / "tile.cu").write_text(TILE)
    pytester.makepyfile(f"""
        import pytest

        @pytest.mark.memsim({marker})
        def test_it({"memsim" if fixture else ""}):
            pass
    """)
    result = run(pytester)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    text = result.stdout.str()
    assert message in text
    assert "Traceback" not in text
    assert "During handling" not in text


@pytest.mark.slow
def test_a_target_of_the_configuration(pytester: pytest.Pytester) -> None:
    (pytester.path / "tile.cu").write_text(TILE)
    budgets = "budgets = ['ways <= 1']\n"
    bare = TARGET.replace("-DPAD=1", "-DPAD=0") + "name = 'bare'\n"
    (pytester.path / "memsim.toml").write_text(budgets + TARGET + bare)
    pytester.makepyfile("""
        import pytest

        @pytest.mark.memsim(target="tile")
        def test_its_own_budgets(): pass

        @pytest.mark.memsim(target="bare")
        def test_its_own_budgets_broken(): pass

        @pytest.mark.memsim("wavefronts < 1_000_000", target="bare")
        def test_other_budgets(): pass

        @pytest.mark.memsim("wavefronts < 1_000_000", target="bare", grid=8)
        def test_a_launch_that_would_change_nothing(): pass

        @pytest.mark.memsim("wavefronts < 1_000_000", target="gone")
        def test_no_such_target(): pass
    """)
    result = run(pytester, "-rA")
    result.assert_outcomes(passed=2, failed=3)
    result.stdout.fnmatch_lines(["*would change nothing*", "*no target is called 'gone'*"])


@pytest.mark.slow
def test_the_baseline_of_the_configuration(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:

    (pytester.path / "memsim.toml").write_text("[[targets]]\nkernel = 'transpose_xor'\nsize = '64,64'\n")
    pytester.makepyfile("""
        import pytest

        @pytest.mark.memsim("baseline", kernel="transpose_xor", size="64,64", name="transpose_xor@64,64")
        def test_same(): pass

        @pytest.mark.memsim("baseline", kernel="transpose_naive", size="64,64", name="transpose_xor@64,64")
        def test_worse(): pass
    """)
    result = run(pytester)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*there is no baseline*"])
    assert main(["baseline", "--jobs", "1"]) == 0
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*worse than the baseline*"])


# --- ini options


KERNEL_TEST = """
import pytest

@pytest.mark.memsim(kernel="transpose_naive", size="64,64")
def test_it(): pass
"""


@pytest.mark.slow
def test_memsim_budgets(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(KERNEL_TEST)
    run(pytester).assert_outcomes(failed=1)
    pytester.makeini(
        "[pytest]\nmemsim_budgets =\n    wavefronts < 1_000_000\n    sites(global).sectors <= ideal\n"
    )
    run(pytester).assert_outcomes(passed=1)
    pytester.makeini("[pytest]\nmemsim_budgets =\n    wavefronts < 1_000_000\n    ways <= 1\n")
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*budget broken: ways <= 1"])


def test_memsim_arch(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(KERNEL_TEST.replace("kernel=", '"requests < 1_000_000", kernel='))
    pytester.makeini("[pytest]\nmemsim_arch = sm_90\n")
    run(pytester).assert_outcomes(passed=1)
    pytester.makeini("[pytest]\nmemsim_arch = sm_12\n")
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no rules for architecture 'sm_12'*"])


def test_memsim_config(pytester: pytest.Pytester) -> None:
    (pytester.path / "ci").mkdir()
    (pytester.path / "ci" / "guard.toml").write_text(
        "[[targets]]\nname = 'x'\nkernel = 'transpose_xor'\nsize = '64,64'\nbudgets = ['ways <= 1']\n"
    )
    pytester.makepyfile("import pytest\n@pytest.mark.memsim(target='x')\ndef test_it(): pass\n")
    run(pytester).assert_outcomes(failed=1)
    pytester.makeini("[pytest]\nmemsim_config = ci/guard.toml\n")
    run(pytester).assert_outcomes(passed=1)


@pytest.mark.slow
def test_memsim_cache(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = pytester.path / "kept"
    monkeypatch.setenv("MEMSIM_CACHE_DIR", str(kept))
    pytester.makepyfile(KERNEL_TEST.replace("kernel=", '"requests < 1_000_000", kernel='))
    pytester.makeini("[pytest]\nmemsim_cache = false\n")
    run(pytester).assert_outcomes(passed=1)
    assert not kept.exists()
    pytester.makeini("[pytest]\nmemsim_cache = true\n")
    run(pytester).assert_outcomes(passed=1)
    assert len(list(kept.iterdir())) == 1


# --- in the company of others


@pytest.mark.slow
def test_with_several_processes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.parametrize("n", range(4))
        @pytest.mark.memsim("ways <= 1", kernel="transpose_padded", size=(64, 64))
        def test_good(n):
            pass

        @pytest.mark.memsim("ways <= 1")
        def test_bad(memsim):
            memsim.analyze("transpose_naive", size=(64, 64))
    """)
    result = pytester.runpytest_subprocess("-n", "auto", "--maxprocesses", "2", "--strict-markers")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["transpose_naive: budget broken: ways <= 1"])


@pytest.mark.slow
def test_it_is_on_once_installed_and_off_when_asked(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(memsim): pass\n")
    pytester.runpytest_subprocess(*ALONE).assert_outcomes(passed=1)
    pytester.runpytest_subprocess(*ALONE, "-pno:memsim").assert_outcomes(errors=1)


def test_it_shows_its_marker_and_its_options(pytester: pytest.Pytester) -> None:
    run(pytester, "--markers").stdout.fnmatch_lines(["@pytest.mark.memsim(*budgets, kernel=*"])
    text = run(pytester, "--help").stdout.str()
    for option in ("memsim_budgets", "memsim_config", "memsim_arch", "memsim_cache"):
        assert option in text


def test_nothing_heavy_is_imported_before_a_kernel_is_analyzed() -> None:
    code = (
        "import sys; import memsim.pytest_plugin; "
        "print([name for name in ('numpy', 'click', 'rich', 'networkx', 'tomllib') if name in sys.modules], "
        "sorted(name for name in sys.modules if name.startswith('memsim')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] ['memsim', 'memsim.pytest_plugin']"


@pytest.mark.slow
def test_a_project_that_does_not_use_it_sees_nothing_of_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import sys

        def test_it():
            assert "memsim.pytest_plugin" in sys.modules
            assert "memsim.analysis" not in sys.modules
            assert "numpy" not in sys.modules
    """)
    result = pytester.runpytest_subprocess(*ALONE)
    result.assert_outcomes(passed=1)
    lines = [line for line in result.stdout.str().splitlines() if not line.startswith("plugins: ")]
    assert "memsim" not in "\n".join(lines)


@pytest.mark.slow
def test_a_marker_that_asks_for_errors(pytester: pytest.Pytester) -> None:
    body = "__shared__ int s[64]; int t = threadIdx.x;\n s[t] = t;\n o[t] = s[t ^ 32];"
    pytester.makefile(".cu", k=f"__global__ void k(int *o) {{ {body} }}")
    pytester.makepyfile("""
        import pytest

        LAUNCH = dict(file="k.cu", grid=1, block=64, args=["i32[64]"], sanitize=True)

        @pytest.mark.memsim(**LAUNCH)
        def test_bad():
            raise AssertionError("the test itself must not run")

        @pytest.mark.memsim(allow=["s:a test"], **LAUNCH)
        def test_allowed():
            pass

        @pytest.mark.memsim(kernel="transpose_naive", size="64,64", sanitize=True)
        def test_good():
            pass
    """)
    result = run(pytester)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        ["*test_bad*", "k: 1 race", "*1. race: s[[]*", "*would order them: __syncthreads()*"]
    )
