"""Proposals put to the test: the edited source is compiled and replayed, and its results compared.

A `Proof` has the counts of the edited kernel next to the forecast. The replayed counts are the ones that
hold: the compiler may merge or split accesses differently.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from memsim.analysis import Analysis, analyze_trace
from memsim.api import kernel_file, loading, running
from memsim.argument_types import ArrayArg
from memsim.argument_types.argument import Copies, argument_of
from memsim.argument_types.array_arg import as_numpy
from memsim.errors import MemsimError
from memsim.files import read_text
from memsim.job import Job
from memsim.suggest.caller_layout import CallerLayout, packed_results
from memsim.suggest.edit import Edit
from memsim.suggest.maps import Map, Padding, XorSwizzle
from memsim.suggest.proposals import Advice, Proposal
from memsim.suggest.ranking import quickest_first
from memsim.suggest.tiles import Tile
from memsim.time.quick_estimate import estimate

MOST_TRIES = 4  # the most edits that are compiled


def has_source(job: Job) -> bool:
    """Whether a job's kernel can be rebuilt: it is no machine code or PTX, nor loaded already."""
    kernel = job.kernel
    return isinstance(kernel, kernel_file.OfFile) and Path(kernel.file).suffix in loading.SOURCE_SUFFIXES


def source_of(job: Job) -> kernel_file.KernelFile:
    """The source from which a job's kernel is rebuilt."""
    assert isinstance(job.kernel, kernel_file.OfFile)  # as it has a source
    return job.kernel.as_file


def source_text(job: Job) -> str:
    """The text of that: a trace has none of a file that makes no access."""
    source = source_of(job)
    return source.text or read_text(source.folder / source.file)


def macros_of(job: Job) -> dict[str, int]:
    """The integer macros in the options of a job's source."""
    found = (re.fullmatch(r"-D\s*(\w+)=(\d+)", option) for option in source_of(job).options)
    return {match[1]: int(match[2]) for match in found if match is not None}


def integer_arguments(job: Job) -> dict[str, int]:
    """The kernel's integer arguments, by name."""
    named = zip(job.loaded.argument_names, job.values, strict=True)
    whole = (int, np.integer)
    return {
        name: int(value) for name, value in named if isinstance(value, whole) and not isinstance(value, bool)
    }


def edit_job(job: Job, edit: Edit, like: Job) -> Job:
    """The job with an edited source, in the launch and with the arguments of another."""
    return replace(with_text(job, edit.file, edit.new), launch=like.launch, args=like.args)


def with_text(job: Job, file: str, text: str) -> Job:
    """The job with another text of its source, or of a file that this includes.

    Raises:
        MemsimError: the file is not included by a line that can be found.
    """
    source = source_of(job)
    text = text.removeprefix("\ufeff")  # which no compiler takes behind the beginning
    if file == source.file:
        return replace(job, kernel=replace(source, text=text))
    lines = source_text(job).removeprefix("\ufeff").split("\n")
    own, other = (source.folder.absolute() / one for one in (source.file, file))
    for number, line in enumerate(lines, 1):
        if any(path.resolve() == other.resolve() for path in source.included_paths(line)):
            lines[number - 1] = f'#line 1 "{other.as_posix()}"\n{text}\n#line {number + 1} "{own.as_posix()}"'
            options = (*source.options, f"-I{(source.folder / file).parent}")
            return replace(job, kernel=replace(source, text="\n".join(lines), options=options))
    raise MemsimError(
        f"the array is declared in {file}, which {source.file} includes by another file", file=file
    )


def replay_job(job: Job) -> Analysis:
    """The analysis of a job, with its estimated time.

    Raises:
        MemsimError: its source does not compile, or an error in the kernel.
    """
    trace = running.trace_job(job)
    return replace(analyze_trace(trace, job.arch), estimate=estimate(job, trace))


@dataclass(frozen=True)
class Proof:
    """An edited kernel and its counts. job: that of the edited kernel.

    forecast, counted: wavefronts of each changed array, by name; counted by replaying the edited kernel.
    before: of the original kernel. asks: of the caller, nothing. reorders: no sums.
    """

    proposals: tuple[Proposal, ...]
    edit: Edit
    job: Job
    analysis: Analysis
    before: dict[str, int]
    forecast: dict[str, int]
    counted: dict[str, int]
    asks: tuple[CallerLayout, ...] = ()
    reorders: bool = False

    @property
    def holds(self) -> bool:
        """Whether the edited kernel's counts equal the forecast."""
        return self.forecast == self.counted

    @property
    def helps(self) -> bool:
        """Whether the edited kernel needs fewer wavefronts than the original, over all its arrays."""
        return self.saved > 0

    @property
    def rank(self) -> tuple[object, ...]:
        """Sort key of equally quick ones, best first: wavefronts, as forecast or not, size of the edit."""
        return -self.saved, not self.holds, self.edit.tokens

    @property
    def saved(self) -> int:
        """Wavefronts that the edited kernel saves over all its arrays."""
        return sum(self.before.values()) - sum(self.counted.values())


def prove_best(job: Job, advice: Sequence[Advice], most: int = MOST_TRIES) -> list[Proof]:
    """The best proposals that have an edit, of all arrays at once, compiled and replayed.

    Paddings and swizzles are both tried: which of them costs fewer cycles, their wavefronts do not say. Where
    an array's counts differ from the forecast, the others are tried without it. Where an address is passed
    on, results are compared. Returns everything replayed, the best first. most: edits that are compiled; 1:
    those with the best forecast.

    Raises:
        MemsimError: there is no compiler, or no edit compiles.
    """
    written = [[each for each in entry.proposals if each.edit is not None] for entry in advice]
    found: dict[tuple[int, ...], Proof] = {}
    failed: MemsimError | None = None
    tried_first = []
    for kind in (Padding, XorSwizzle) if most > 1 else (Map,):
        of_kind = [sorted(some, key=lambda each: not isinstance(each.change, kind)) for some in written]
        tried_first.append([proposals[0] for proposals in of_kind if proposals])
    firsts = {tuple(map(id, chosen)): chosen for chosen in tried_first if chosen}
    with ThreadPoolExecutor() as pool:  # compilers are processes of their own
        begun = {key: pool.submit(copy_context().run, prove, job, some) for key, some in firsts.items()}
        for chosen in firsts.values():
            while chosen and len(found) < most and (key := tuple(map(id, chosen))) not in found:
                try:
                    proof = begun[key].result() if key in begun else prove(job, chosen)
                except MemsimError as error:
                    if error.file is None:
                        raise  # no compiler, not a mistake in the edited text
                    failed = error
                    break
                if proof.edit.unseen and not is_the_same(job, proof.job):
                    lines = ", ".join(map(str, proof.edit.unseen))
                    failed = MemsimError(
                        f"results differ, as line {lines} passes on an address", file=proof.edit.file
                    )
                    break
                found[key] = proof
                chosen = [
                    each for each in chosen if proof.counted[each.tile.name] == proof.forecast[each.tile.name]
                ]
    if failed is not None and not found:
        raise failed
    time = quickest_first(proof.analysis for proof in found.values())
    return sorted(found.values(), key=lambda proof: (not proof.helps, time(proof.analysis), proof.rank))


def prove(job: Job, proposals: Sequence[Proposal]) -> Proof:
    """The source with these proposals' edits, compiled and replayed.

    Raises:
        MemsimError: a proposal has no edit, the edits overlap, an access of the edited kernel cannot be
            counted, or any error of compiling and replaying.
    """
    whole = _together(proposals)
    grown = Counter[str]()  # by carvings of the same dynamic array
    for each in proposals:
        grown[each.tile.carving] += each.more_dynamic
    more = max(grown.values())
    launch = replace(job.launch, shared_bytes=job.launch.shared_bytes + more)
    changed = edit_job(job, whole, replace(job, launch=launch))
    analysis = replay_job(changed)
    _check_counted(analysis, [each.tile.array for each in proposals], whole)
    return Proof(
        proposals=tuple(proposals),
        edit=whole,
        job=changed,
        analysis=analysis,
        before={each.tile.name: _of(each.before, each.tile) for each in proposals},
        forecast={each.tile.name: each.cost.most for each in proposals},
        counted={each.tile.name: _of(analysis, each.tile) for each in proposals},
    )


def _check_counted(analysis: Analysis, names: Sequence[str], edit: Edit) -> None:
    """Raise unless every access of these arrays is counted; an uncounted one would look like a saving."""
    known = {name for name, space, _, _ in analysis.trace.arrays if space == "shared"}
    lost = [name for name in names if name not in known]
    if lost or any(site.unresolved for site in analysis.sites if site.space == "shared"):
        what = f"{' and '.join(lost)} cannot be distinguished" if lost else "not every access can be counted"
        raise MemsimError(f"in the edited kernel {what}", file=edit.file)


def _of(analysis: Analysis, tile: Tile) -> int:
    return wavefronts_of(analysis, tile.array, tile.lines)


def wavefronts_of(analysis: Analysis, array: str, lines: frozenset[tuple[str, int]] = frozenset()) -> int:
    """The wavefronts of all requests that touch a shared array, or of those of some lines."""
    return sum(
        site.wavefronts or 0
        for site in analysis.sites
        if site.space == "shared"
        and array in site.array.split("|")
        and (not lines or (site.file, site.line) in lines)
    )


def differing_results(
    job: Job, other: Job, progress: running.Progress | None = None, asks: Sequence[CallerLayout] = ()
) -> tuple[str, ...]:
    """The parameters whose arrays differ bitwise after running a job and another job of the same kernel.

    Both run on the same arguments and blocks, those of `asks` in another layout. () if nothing differs.

    Raises:
        MemsimError: one of them cannot be run.
    """
    before = packed_results(results_of(job, progress), asks)
    try:
        after = results_of(other, progress)
    except MemsimError as error:
        message = f"the changed kernel fails: {error.message}"
        raise MemsimError(
            message, hint="some accesses do not index the array directly", exit_code=1
        ) from None
    return tuple(name for name, result in before.items() if after[name] != result)


def is_the_same(job: Job, changed: Job, asks: Sequence[CallerLayout] = ()) -> bool:
    """Whether a changed kernel runs, and has the same results."""
    with suppress(MemsimError):  # a change that does not run is not proposed
        return not differing_results(job, changed, asks=asks)
    return False


@dataclass(frozen=True, slots=True)
class Rounding:
    """Results that differ because what is computed is the same, but rounded otherwise.

    before, after: both kernels as their results are the same: `how`. values: of the arrays that differ as the
    kernels are, how many do, and how many there are.
    """

    before: Job
    after: Job
    how: str
    values: tuple[int, int]

    @property
    def told(self) -> str:
        """What is the same, and what is not."""
        differ, every = self.values
        return f"bit-for-bit identical {self.how}, {differ:,} of {every:,} values are rounded otherwise"


def rounding_between(
    job: Job, other: Job, differ: Sequence[str], asks: Sequence[CallerLayout] = (), *, reorders: bool = False
) -> Rounding | None:
    """How the parameters that differ are rounded otherwise; None if it is more than that.

    By other products and sums that are contracted to operations that round once; if sums are in another
    order (`reorders`), by that, too: those of small whole numbers are exact.
    """
    ways = [(_without_contraction, "without contraction of products and sums (--fmad=false); with it")]
    if reorders:
        ways.append((with_whole_numbers, "of small whole numbers, whose sums are exact; of these"))
    for way, how in ways:
        before, after = way(job), way(other)
        if is_the_same(before, after, asks):
            return Rounding(before, after, how, _differing_values(job, other, differ, asks))
    return None


def _differing_values(
    job: Job, other: Job, differ: Sequence[str], asks: Sequence[CallerLayout]
) -> tuple[int, int]:
    results, values = (packed_results(results_of(job), asks), results_of(other)), [0, 0]
    for name in differ:
        argument = job.values[job.loaded.argument_names.index(name)]
        kind = next(array.dtype for _, array in argument_of(argument).pointees())
        one, two = (np.frombuffer(each[name], f"V{np.dtype(kind).itemsize}") for each in results)
        values[0] += int((one != two).sum())
        values[1] += len(one)
    return values[0], values[1]


def _without_contraction(job: Job) -> Job:
    source = source_of(job)
    return replace(job, kernel=replace(source, options=(*source.options, "--fmad=false")))


def with_whole_numbers(job: Job) -> Job:
    """The job with small whole numbers in the place of its floats."""
    rounded: dict[int, np.ndarray] = {}

    def whole(array: np.ndarray | ArrayArg) -> np.ndarray:
        made = as_numpy(array)
        if made.dtype.kind != "f":
            return made
        near = np.rint(np.clip(np.nan_to_num(made.astype("f8")), -1, 1) * 8).astype(made.dtype)
        return rounded.setdefault(id(array), near)

    return replace(job, args=[argument_of(argument).with_arrays(whole) for argument in job.values])


def results_of(job: Job, progress: running.Progress | None = None) -> dict[str, bytes]:
    """The bytes of each parameter's arrays after a run on copies of them."""
    copies = Copies()

    def own(array: np.ndarray | ArrayArg) -> np.ndarray:
        """As it is before the launch."""
        return array.make() if isinstance(array, ArrayArg) else copies(array)

    args = [argument_of(argument).with_arrays(own) for argument in job.values]
    running.trace_job(replace(job, kernel=job.loaded, args=args), progress, everything=True)
    arrays = ((array for _, array in argument_of(argument).pointees()) for argument in args)
    joined = [b"".join(one.tobytes() for one in each if isinstance(one, np.ndarray)) for each in arrays]
    return dict(zip(job.loaded.argument_names, joined, strict=True))


def _together(proposals: Sequence[Proposal]) -> Edit:
    whole: Edit | None = None
    for each in proposals:
        if each.edit is None:
            raise MemsimError(f"the change of {each.tile.name} cannot be written by rules")
        joined = each.edit if whole is None else whole.joined(each.edit)
        if joined is None:
            raise MemsimError(
                f"the change of {each.tile.name} overlaps another change",
                file=each.edit.file,
                hint=f"select one array: --array {each.tile.name}",
            )
        whole = joined
    if whole is None:
        raise MemsimError("there is nothing to prove")
    return whole
