"""The `memsim` fixture and marker. A broken budget, or nothing to judge, fails the test with a message and no
traceback.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memsim.analysis import Analysis
from memsim.api.sanitizing import sanitize_job
from memsim.arch import SM_90, get_arch
from memsim.captured.launched import Launched
from memsim.captured.session import capture
from memsim.driver.execute_launches import Launches, ProgramRun
from memsim.driver.run_program import run_program
from memsim.errors import MemsimError
from memsim.guard.baseline import Entry
from memsim.guard.budget import Budget, parse_budget
from memsim.guard.evaluate import GuardedKernel
from memsim.guard.judge import Declared, has_time_budget, judge
from memsim.guard.outcome import Outcome
from memsim.guard.select import Selector, parse_selector
from memsim.job import Job
from memsim.sanitizer.hazards import read_allowance
from memsim.shown import ShownAnalysis, ShownSanitized
from memsim.store import cache_folder
from memsim.targets.analyze_targets import analyze_job
from memsim.targets.cache import with_estimated_time
from memsim.targets.project import Project, find_project, read_project
from memsim.targets.project_check import check_project, read_baseline
from memsim.targets.target import catalogue_job, file_job, function_job, is_file, launched_job
from memsim.views.check.findings import text_of_findings, with_lanes


class Guard:
    """Analyzes and checks kernels in a test. Files are relative to the test's folder.

    judged: whether a budget was checked.
    """

    def __init__(self, item: pytest.Item, markers: Sequence[pytest.Mark] = ()) -> None:
        self.judged = False
        self._item = item
        self._markers = markers
        self._targets: list[tuple[Analysis, Job]] = []

    @contextmanager
    def capture(self, arch: str | None = None) -> Iterator[list[Launched]]:
        """Captures launches inside the block, as `memsim.capture` does.

        After the block each is judged by the budgets of the test's marker, if it has one.
        """
        chip = arch or self._item.config.getini("memsim_arch")
        with _plain_failures(), capture(chip) if chip else capture() as launches:
            yield launches
        if self._markers:
            for launched in launches:
                self.analyze(launched)

    def analyze(self, source: str | Path | Launched | Callable[..., object], **launch: Any) -> ShownAnalysis:
        """The cost of a kernel, judged by the budgets of the test's marker if it has one.

        Args:
            source: a kernel of the catalogue, a `.cu` or `.ptx` file, a captured launch, or index
                math in Python: a function, or its name as `layouts.py:transpose`.
            launch: `size` for the catalogue; `grid`, `block`, `args`, `kernel`, `options` and
                `shared_bytes` for a file; `grid`, `block` and `args` for a function; `blocks`, `arch` and
                `name` for all, and only these for a captured launch.
        """
        key = "file" if is_file(str(source)) else "kernel"
        with _plain_failures():
            if isinstance(source, Launched):
                job = launched_job(source, self._said(launch), spell="{}=".format)
            elif callable(source):
                job = function_job(source, self._said(launch), spell="{}=".format)
            else:
                job = self._job({**launch, key: str(source)})
            analysis = self._analyze(job)
            for marker in self._markers:
                if marker.kwargs.get("sanitize"):
                    self._sanitize(job, marker.kwargs.get("allow", ()))
                if marker.args or not marker.kwargs.get("sanitize"):
                    self._judge(analysis, marker.args, marker.kwargs.get("accept", ()))
        return analysis

    def execute(self, *command: str | Path) -> ProgramRun:
        """Runs a CUDA program on memsim, in the test's folder, and counts the first launch of each kind.

        Each is judged by the budgets of the test's marker, if it has one; one that cannot be counted then
        fails the test.
        """
        said: list[str] = []
        with _plain_failures():
            chip = get_arch(self._item.config.getini("memsim_arch") or SM_90.name)
            launches = Launches(chip, said.append, analyze=True)
            exit_code = run_program(list(map(str, command)), launches, self._item.path.parent)
            done = ProgramRun(exit_code, tuple(launches.kinds.values()), tuple(said))
            for marker in self._markers:
                for kind in done.kinds:
                    if kind.analysis is None:
                        raise MemsimError(f"{kind.kernel}: not counted: {kind.why_not}")
                    self._judge(kind.analysis, marker.args, marker.kwargs.get("accept", ()))
        return done

    def check(self, analysis: Analysis, *budgets: str, accept: Sequence[str] = ()) -> None:
        """Fail the test if a budget is broken, with a table of the accesses that broke it."""
        with _plain_failures():
            self._judge(analysis, budgets, accept)

    def judge_marker(self, marker: pytest.Mark) -> None:
        """Analyze the kernel that a marker names, and judge it."""
        launch = dict(marker.kwargs)
        accept = launch.pop("accept", ())
        errors, allow = launch.pop("sanitize", False), launch.pop("allow", ())
        with _plain_failures():
            if errors:
                named = launch.get("target")
                jobs = self._project().chosen([named]) if named else [self._job(dict(launch))]
                for job in jobs:
                    if not isinstance(job, Job):
                        raise MemsimError(f"{job.name} is a program", hint=f"memsim exec --sanitize -- {job}")
                    self._sanitize(job, allow)
            if errors and not marker.args:
                return
            if "target" in launch:
                self._judge_target(launch, marker.args, accept)
            else:
                self._judge(self._analyze(self._job(launch)), marker.args, accept)

    # --- analysis

    def _job(self, launch: dict[str, Any]) -> Job:
        said = self._said(launch)
        if "file" in said:
            return file_job(str(said.pop("file")), said, folder=self._item.path.parent, spell="{}=".format)
        return catalogue_job(said.pop("kernel"), said, spell="{}=".format)

    def _said(self, launch: dict[str, Any]) -> dict[str, Any]:
        arch = self._item.config.getini("memsim_arch")
        return {**({"arch": arch} if arch else {}), **launch}

    def _analyze(self, job: Job) -> ShownAnalysis:
        analysis = ShownAnalysis.of(analyze_job(job, self._cache), job)
        self._targets.append((analysis, job))
        return analysis

    @property
    def _cache(self) -> Path | None:
        return cache_folder() if self._item.config.getini("memsim_cache") else None

    def _project(self) -> Project:
        named = self._item.config.getini("memsim_config")
        if named:
            return read_project(self._item.config.rootpath / named)
        return read_project(find_project(self._item.path.parent))

    # --- judgement

    def _judge(self, analysis: Analysis, budgets: Sequence[str], accept: Sequence[str]) -> None:
        target = next((target for other, target in self._targets if other is analysis), None)
        name, given = (target.name, target.given) if target else (analysis.trace.kernel, None)
        rules = _rules(budgets or self._item.config.getini("memsim_budgets"), name)
        if target is not None and has_time_budget(name, rules):
            analysis = with_estimated_time(analysis, target, self._cache, "whole")
        entry = self._entry(name) if any(rule.what.needs_baseline for rule in rules) else None
        self._settle(judge([GuardedKernel(name, analysis, entry, given)], rules, _acceptances(accept, name)))

    def _sanitize(self, job: Job, allow: Sequence[str]) -> None:
        """Fail the test if a launch has errors, or if they cannot be judged."""
        self.judged = True
        found = ShownSanitized.of(sanitize_job(job, allowances=[read_allowance(text) for text in allow]))
        if found.exit_code:
            pytest.fail(str(found), pytrace=False)

    def _entry(self, name: str) -> Entry | None:
        path = self._project().baseline
        entries = read_baseline(path)
        if entries is None:
            raise MemsimError("there is no baseline", file=str(path), hint="memsim baseline writes it")
        return entries.get(name)

    def _judge_target(self, launch: dict[str, Any], budgets: Sequence[str], accept: Sequence[str]) -> None:
        """A target of the configuration, judged by its own budgets if the marker has none."""
        name = launch.pop("target")
        if launch:
            raise MemsimError(f"target {name!r} has its own launch: {', '.join(launch)} would change nothing")
        project = self._project()
        if budgets:
            project = replace(project, rules=tuple(_rules(budgets, name)))
        accepted = (*project.acceptances, *_acceptances(accept, name))
        project = replace(project, acceptances=accepted)
        self._settle(check_project(project, project.chosen([name]), self._cache, jobs=1))

    def _settle(self, outcome: Outcome) -> None:
        self.judged = True
        for note in outcome.notes:
            warnings.warn(note, stacklevel=2)
        if outcome.problems:
            raise outcome.problems[0].error
        broken = [finding for finding in with_lanes(outcome).findings if finding.breaks]
        if broken:
            shown = text_of_findings(broken, lambda kernel, file: file or kernel)
            pytest.fail(f"{outcome.verdict}\n\n{shown}", pytrace=False)


def _rules(budgets: Sequence[str], name: str) -> list[Declared[Budget]]:
    if not budgets:
        raise MemsimError("there is no budget, so nothing can fail", hint="such as 'ways <= 1'")
    return [Declared(parse_budget(text), [name]) for text in budgets]


def _acceptances(accept: Sequence[str], name: str) -> list[Declared[Selector]]:
    return [Declared(parse_selector(text), [name]) for text in accept]


@contextmanager
def _plain_failures() -> Iterator[None]:
    """Turn a `MemsimError` into a failure with its message and no traceback."""
    try:
        yield
    except MemsimError as error:
        if error.file is None and error.source is not None:
            error.file = "budget"  # the test's own text
        raise pytest.fail.Exception(f"error: {error}", pytrace=False) from None
