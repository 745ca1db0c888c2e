"""What users are given: an `Analysis`, and `Suggestions`, that show themselves.

The records below know no views, so that each room that counts can read them. Whoever hands one to a user
(`memsim.analyze`, a kernel of the catalogue, a captured launch, pytest's fixture) gives it these methods with
`ShownAnalysis.of`. Views are imported when they are asked for: they are many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from memsim.analysis import Analysis, analyze_trace
from memsim.document import JsonObject
from memsim.errors import MemsimError
from memsim.files import write_text
from memsim.sanitizer.hazards import Sanitized

if TYPE_CHECKING:
    from memsim.job import Job
    from memsim.time.launch_time import LaunchTime
    from memsim.views.plot import Plots
    from memsim.views.suggest.terminal import ShownSuggestions


@dataclass(frozen=True, repr=False)
class Shown:
    """A picture: `print` writes it as text, a notebook shows its HTML."""

    text: str
    html: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html


class ShownAnalysis(Analysis):
    __doc__ = Analysis.__doc__

    #: What was analyzed, where it is a launch and not a trace; it stays in its process.
    job: Job | None = None

    @classmethod
    def of(cls, analysis: Analysis, job: Job | None = None) -> ShownAnalysis:
        """The analysis, of a job if it is of one, with methods that show it."""
        shown = cls(**{field.name: getattr(analysis, field.name) for field in fields(Analysis)})
        object.__setattr__(shown, "job", job)
        return shown

    @classmethod
    def of_job(cls, job: Job, progress: Callable[[float], None] | None = None) -> ShownAnalysis:
        """What a job costs, counted now.

        Raises:
            MemsimError: whatever is wrong with the kernel or its launch, or goes wrong in it.
        """
        from memsim.api.running import trace_job

        return cls.of(analyze_trace(trace_job(job, progress), job.arch), job)

    def __getstate__(self) -> dict[str, object]:
        """What another process needs to show it: with the line of its time, without the job."""
        kept = {name: value for name, value in vars(self).items() if name not in ("job", "timed")}
        return {**kept, "estimate": self.timed.estimate}

    @cached_property
    def timed(self) -> Analysis:
        """The same with the line that tells its estimated time, if it is of a launch."""
        from memsim.time.quick_estimate import estimate

        return self if self.job is None else replace(self, estimate=estimate(self.job, self.trace))

    def to_dict(self, *, sass: bool = False) -> JsonObject:
        """As printed by `memsim analyze --json`; `sass`: with the machine instructions of each of `sites`."""
        return Analysis.to_dict(self.timed, sass=sass)

    def time(self, l2: str = "cold", board: str = "") -> LaunchTime:
        """About how many cycles the launch takes, and what its warps wait for: an estimate (docs/time.md).

        l2: the L2 cache before the launch, "cold" as under a profiler, or "warm". board: a part of its name,
        such as "H100"; the one with the fastest memory if nothing is said.

        Raises:
            MemsimError: it is of a trace, or of index math; or as `memsim time`.
        """
        from memsim.time.predict_time import PreparedTime

        if self.job is None:
            raise MemsimError("this analysis is of no launch of machine code, whose schedule tells the time")
        prepared = PreparedTime(self.job, self.trace)
        return (prepared.on(board) if board else prepared).predict(l2, both_ways=True)

    @property
    def plot(self) -> Plots:
        """Pictures as matplotlib figures: `.heatmap()`, `.lanes(site)`.

        `plot()` itself draws the heatmap, or without shared memory the worst request.

        Raises:
            MemsimError: by each picture, if matplotlib is not installed.
        """
        from memsim.views.plot import Plots

        return Plots(self)

    def suggest(self, *arrays: str) -> ShownSuggestions:
        """Other layouts of the shared arrays, or only of those named, that need fewer wavefronts; best first.

        They are counted on the recorded requests but not compiled; `memsim suggest` does both.

        Raises:
            MemsimError: there is no shared array of that name.
        """
        from memsim.suggest import suggest
        from memsim.views.suggest.terminal import ShownSuggestions

        return ShownSuggestions.of(suggest(self, arrays=arrays))

    def heatmap(self, compare: Analysis | None = None) -> Shown:
        """How each access to shared memory uses the 32 banks; with `compare`, for both. Displays itself.

        Raises:
            MemsimError: none of the kernels accesses shared memory.
        """
        from memsim.views.heatmap.heat_rows import write
        from memsim.views.report import fragment
        from memsim.views.screen import text_of

        analyses: Sequence[Analysis] = [self] if compare is None else [self, compare]
        return Shown(text_of(partial(write, analyses)), "".join(map(fragment, analyses)))

    def explain(self, line: int | str | None = None, site: int | None = None) -> Shown:
        """The worst request of an access, lane by lane. Displays itself.

        line: of the source, or `"FILE:LINE"` if several files have it. site: the access's index in `sites`.
        Default: the worst access.

        Raises:
            MemsimError: no such access, or it could not be analyzed.
        """
        from memsim.pictures.worst_request import take_apart
        from memsim.views.analyze.costs import choose_sites
        from memsim.views.explain.request_text import write
        from memsim.views.labels import access
        from memsim.views.plain import plain_line
        from memsim.views.screen import text_of

        number, *others = choose_sites(self, None if line is None else str(line), site)
        also = (f"Also on this line: site {other}, {access(self.sites[other])}" for other in others)
        text = "\n".join([text_of(partial(write, take_apart(self, number))), *map(plain_line, also)])
        return Shown(text, f"<pre>{escape(text)}</pre>")

    def layout(self, array: str | None = None) -> Shown:
        """Where the words of a shared array lie and who wrote them. Displays itself.

        array: its name, the first if None.

        Raises:
            MemsimError: no such array.
        """
        from memsim.views.array_pictures import array_named, layout_lines
        from memsim.views.report import layout_fragment

        found = array_named(self, array)
        return Shown("\n".join(layout_lines(found)), layout_fragment(self, found))

    def flow(self) -> Shown:
        """What moves between global arrays, registers and shared arrays. Displays itself."""
        from memsim.views.array_pictures import flow_lines, ladder
        from memsim.views.report import flow_fragment

        return Shown("\n".join(flow_lines(ladder(self))), flow_fragment(self))

    def report(self, path: str | Path) -> None:
        """Write everything about the launch as a self-contained HTML page.

        Raises:
            MemsimError: the file cannot be written.
        """
        from memsim.views.report import report_page

        write_text(Path(path), report_page(self.timed), "it")

    def __str__(self) -> str:
        """The text that `memsim analyze` prints."""
        from memsim.views.analyze.terminal import render

        return render(self.timed)

    def _repr_html_(self) -> str:
        """The representation in a notebook: the verdict, the bank heatmap, the rows."""
        from memsim.views.report import fragment

        return fragment(self.timed)


class ShownSanitized(Sanitized):
    __doc__ = Sanitized.__doc__

    @classmethod
    def of(cls, found: Sanitized) -> ShownSanitized:
        """The findings with methods that show them."""
        return cls(**{field.name: getattr(found, field.name) for field in fields(Sanitized)})

    def __str__(self) -> str:
        """The text that `memsim sanitize` prints."""
        from memsim.views.sanitize_text import write
        from memsim.views.screen import text_of

        return text_of(partial(write, self))

    def _repr_html_(self) -> str:
        """The representation in a notebook."""
        return f"<pre>{escape(str(self))}</pre>"
