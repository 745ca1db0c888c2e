"""The pytest plugin: budgets for kernels, as tests.

    @pytest.mark.memsim("ways <= 1", kernel="kernel_v4")
    def test_no_conflict():
        pass

    @pytest.mark.memsim("sectors_per_request <= 4")
    def test_coalesced(memsim):
        memsim.analyze("scale.cu", grid=8, block=128, args=["f32[1024]", 2.0])

    @pytest.mark.memsim(kernel="kernel_v4", sanitize=True, allow=["s:one value"])
    def test_no_race():
        pass

    def test_both(memsim):
        analysis = memsim.analyze("kernel_v4", size="512,512,512")
        memsim.check(analysis, "ways <= 1", "excess < 40%")

    @pytest.mark.memsim("ways <= 1")
    def test_program(memsim_exec):
        assert memsim_exec("./bench", "--small").exit_code == 0

`pytest --memsim` runs a suite whose tests need a CUDA device, as `memsim exec` does (Linux).

A broken budget fails the test with the table of the accesses that broke it. docs/ci.md has the options.
The plugin has no effect on projects that do not use it, and imports nothing heavy until a kernel is analyzed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from memsim.driver.execute_launches import ProgramRun
    from memsim.pytest_plugin.fixture import Guard

MARKER = "memsim"
MARKER_HELP = (
    "memsim(*budgets, kernel=, file=, target=, sanitize=, allow=, **launch): check the kernel against the "
    "budgets, and for races and other errors; "
    "without a kernel: check whatever the test analyzes with the memsim fixture"
)
# A marker with one of these names its kernel.
NAMES = ("kernel", "file", "target")
HAS_PASSED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("memsim")
    group.addoption("--memsim", action="store_true", help="the tests' CUDA device is memsim, on Linux")
    group.addoption("--memsim-analyze", action="store_true", help="as --memsim, and its launches are counted")
    parser.addini("memsim_budgets", "budgets for markers without any", type="linelist", default=[])
    parser.addini("memsim_config", "the configuration that has the targets and the baseline", default="")
    parser.addini("memsim_arch", "the chip whose rules to use", default="")
    parser.addini("memsim_cache", "keep traces between runs", type="bool", default=True)


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker, for --strict-markers."""
    config.addinivalue_line("markers", MARKER_HELP)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """With --memsim runs pytest as a program of `memsim exec`, which finds itself in it and goes on."""
    analyze = config.option.memsim_analyze
    if not (config.option.memsim or analyze) or "MEMSIM_DRIVER" in os.environ:
        return None
    from memsim.arch import SM_90, get_arch
    from memsim.cli.output import say_all
    from memsim.driver import launch_table
    from memsim.driver.execute_launches import Launches
    from memsim.driver.run_program import run_program
    from memsim.errors import MemsimError

    def say(text: str) -> None:
        say_all(f"memsim: {text}", err=True)

    try:
        launches = Launches(get_arch(config.getini("memsim_arch") or SM_90.name), say, analyze=analyze)
        command = [sys.executable, "-m", "pytest", *config.invocation_params.args]
        exit_code = run_program(command, launches, config.invocation_params.dir)
    except MemsimError as error:
        raise pytest.UsageError(str(error)) from None
    launch_table.write(launches, sys.stderr)
    return exit_code


@pytest.fixture
def memsim_exec(memsim: Guard) -> Callable[..., ProgramRun]:
    """Runs a CUDA program as `memsim exec --analyze` does, in the test's folder; its launches are judged by
    the budgets of the test's marker, if it has one: see `memsim.pytest_plugin.fixture.Guard.execute`.
    """
    return memsim.execute


@pytest.fixture
def memsim(request: pytest.FixtureRequest) -> Iterator[Guard]:
    """Analyzes kernels, and checks them against budgets: see `memsim.pytest_plugin.fixture.Guard`."""
    from memsim.pytest_plugin.fixture import Guard

    markers = tuple(marker for marker in request.node.iter_markers(MARKER) if not names_kernel(marker))
    guard = Guard(request.node, markers)
    yield guard
    if markers and not guard.judged and request.node.stash.get(HAS_PASSED, False):
        pytest.fail("the marker memsim checked nothing: the test analyzed no kernel", pytrace=False)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Judges the kernels named by markers before the test runs."""
    for marker in item.iter_markers(MARKER):
        if names_kernel(marker):
            from memsim.pytest_plugin.fixture import Guard

            Guard(item).judge_marker(marker)
        elif MARKER not in getattr(item, "fixturenames", ()):
            names = ", ".join(f"{name}=" for name in NAMES)
            message = f"the marker memsim checks nothing: give it one of {names} or use the fixture memsim"
            pytest.fail(message, pytrace=False)


@pytest.hookimpl(specname="pytest_runtest_call", hookwrapper=True)
def pytest_note_whether_it_passes(item: pytest.Item) -> Generator[None, Any, None]:
    """A test that is skipped, or fails, is not told that it checked nothing."""
    outcome = yield
    item.stash[HAS_PASSED] = outcome.excinfo is None


def names_kernel(marker: pytest.Mark) -> bool:
    """Whether the marker itself names a kernel."""
    return any(name in marker.kwargs for name in NAMES)
