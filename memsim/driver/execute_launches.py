"""The launches of a program: each is executed on its memory, and told by kind."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memsim.api.running import prepared_launch, trace_job
from memsim.arch import Arch
from memsim.driver.launch_recorder import LaunchRecorder
from memsim.driver.native_arithmetic import use_processor
from memsim.driver.native_build import compile_library
from memsim.driver.program_code import ProgramModule
from memsim.driver.program_memory import MemoryOfLaunch, ProgramMemory
from memsim.driver.remembered_launches import AllocationListener, RememberedLaunches, called_by
from memsim.driver.system_functions import KernelCalls
from memsim.errors import MemsimError
from memsim.estimated_time import Effort
from memsim.interpreter.lowered_op import NotLowered
from memsim.interpreter.native_launch import NativeInterpreter, TouchedAllocations
from memsim.job import Job
from memsim.kernel import Kernel
from memsim.launch import MAX_CLUSTER, Launch
from memsim.model.occupancy import Needs, occupancy
from memsim.names.demangle import without_long_arguments
from memsim.programs import within_time_limit
from memsim.simt.faults import KernelFault, check_cluster, check_threads
from memsim.state.poison import Poisoned
from memsim.views.labels import dim3

if TYPE_CHECKING:
    from memsim.analysis import Analysis

INVALID_VALUE, OUT_OF_RESOURCES, LAUNCH_FAILED, TOO_LARGE, BAD_CLUSTER = 1, 701, 719, 720, 912  # of CUresult
#: Of memsim's own, which are told and end nothing else.
MISTAKES = ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError
#: What a GPU says of a fault.
RESULT_OF_FAULT = {"address": 700, "alignment": 716, "assert": 710, "trap": LAUNCH_FAILED, "endless": 702}


_SHARED = (
    'the shared runtime: NVCC_APPEND_FLAGS="-cudart shared", or -DCMAKE_CUDA_RUNTIME_LIBRARY=Shared for CMake'
)
STATIC = (
    "the program, or a library that it uses, has NVIDIA's CUDA runtime linked into it, which runs on NVIDIA's"
    f" driver only. Build it with {_SHARED}"
)
STATIC_IN_LIBRARY = (
    "a library that the program uses has NVIDIA's CUDA runtime linked into it, which found no GPU; the other"
    f" launches were executed. If the program failed for that, build the library with {_SHARED}"
)


class LaunchRefused(MemsimError):
    """A GPU would not begin the launch, and go on with the next one. result: of CUresult."""

    def __init__(self, result: int, why: str) -> None:
        super().__init__(why)
        self.result = result


class LaunchShape(NamedTuple):
    """What launches of one kind have in common, beside the kernel."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    cluster: tuple[int, int, int] | None
    is_cooperative: bool


@dataclass
class LaunchKind:
    """The launches of one kernel with one shape.

    times: how many were made, how many of these failed, and how many did what one before them did; seconds:
    that they took here. analysis: of the first one; why_not: why there is none. recording: of it. notes: what
    is to be told of them, each once.
    """

    kernel: str
    shape: LaunchShape
    times: int = 0
    failed: int = 0
    remembered: int = 0
    seconds: float = 0.0
    analysis: Analysis | None = None
    recording: Path | None = None
    why_not: str = ""
    notes: dict[str, None] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The kernel's, as a line of text has room for it."""
        return without_long_arguments(self.kernel)


class ProgramRun(NamedTuple):
    """How a program ended. said: what memsim told while it ran."""

    exit_code: int
    kinds: tuple[LaunchKind, ...]
    said: tuple[str, ...]


class Launches:
    """Executes launches. analyze, sanitize: the first one of each kind is counted, or looked at for errors,
    too. time: it is counted, and its time estimated, with this effort. record: it is written below this
    folder. jobs: threads that execute one launch; None: one per processor. say: tells people something at
    once. output: the file that kernels print to. asked_for_tables: the program has asked for what only
    NVIDIA's driver has.
    """

    def __init__(
        self,
        chip: Arch,
        say: Callable[[str], None],
        *,
        analyze: bool = False,
        sanitize: bool = False,
        time: bool = False,
        effort: Effort = "quick",
        record: Path | None = None,
        max_steps: int | None = None,
        jobs: int | None = None,
    ) -> None:
        self.chip, self.say = chip, say
        self.output = 1
        self.analyze, self.sanitize, self.time = analyze or time, sanitize, time
        self.effort: Effort = effort
        self.max_steps, self.jobs = max_steps, jobs
        self.recorder = None if record is None else LaunchRecorder(record)
        self.interpreter: NativeInterpreter | None = None
        self.asked_for_tables = False
        self.kinds: dict[tuple[str, str, LaunchShape], LaunchKind] = {}
        self.remembered = RememberedLaunches()
        #: Functions of libraries that were computed by other means than kernels, and how often.
        self.not_modelled: Counter[str] = Counter()

    def use_machine_code(self, libraries: Path) -> None:
        """Executes launches by the libraries in a folder, as far as they can."""
        use_processor(libraries)
        self.interpreter = NativeInterpreter(libraries, self.jobs, compile_library)

    def why_nothing(self, exit_code: int) -> str:
        """What is told of a program with NVIDIA's own runtime, which found no device; "" of others."""
        if not self.asked_for_tables:
            return ""
        if self.kinds:
            return STATIC_IN_LIBRARY if exit_code else ""
        return STATIC

    def launch(
        self,
        module: ProgramModule,
        kernel: Kernel,
        shape: LaunchShape,
        parameters: bytes,
        device: ProgramMemory,
        most_in_cluster: int = MAX_CLUSTER,
    ) -> int:
        """Executes a launch; returns the driver's result, 0 if it is done.

        parameters: as the kernel gets them. most_in_cluster: blocks that the program allows.
        """
        shape = shape._replace(block=module.block_of(kernel, shape.block))
        key = kernel.origin.digest, kernel.name, shape
        kind = self.kinds.setdefault(key, LaunchKind(kernel.title, shape))
        kind.times += 1
        result, began = 0, time.perf_counter()
        try:
            module.refuse_hidden_parameters(kernel)
            launch = self._check(kernel, shape, most_in_cluster)
            values = [parameters[one.offset : one.offset + one.size] for one in kernel.parameters]
            job = Job(kernel, launch, values, arch=self.chip, max_steps=self.max_steps)
            with within_time_limit(kernel.title):
                self._execute(kind, job, module, device)
        except LaunchRefused as refused:
            result = refused.result
            self._failed(kind, refused)
        except KernelFault as fault:
            result = RESULT_OF_FAULT[fault.kind]
            self._failed(kind, fault)
        except MemsimError as error:
            result = LAUNCH_FAILED
            self._failed(kind, error)
        except MISTAKES as error:
            result = LAUNCH_FAILED  # the program goes on, and people are told
            self._failed(kind, MemsimError(_why_not(error)))
        except KeyboardInterrupt:
            result = LAUNCH_FAILED
            kind.notes["it was interrupted"] = None
            raise
        finally:
            kind.failed += bool(result)
            kind.seconds += time.perf_counter() - began
        return result

    def _check(self, kernel: Kernel, shape: LaunchShape, most_in_cluster: int) -> Launch:
        """The launch; raises LaunchRefused if a GPU would refuse it."""
        refused = INVALID_VALUE
        try:
            launch = Launch(shape.grid, shape.block, shape.shared_bytes)
            check_threads(kernel.executable, launch)
            refused = BAD_CLUSTER
            launch = replace(launch, cluster=shape.cluster)
            cluster = check_cluster(kernel.executable, launch)
        except MemsimError as error:
            raise LaunchRefused(refused, error.message) from None
        if cluster is not None and not 0 < prod(cluster) <= most_in_cluster:
            raise LaunchRefused(
                BAD_CLUSTER, f"a cluster has 1 to {most_in_cluster} blocks, unlike {dim3(cluster)}"
            )
        registers = kernel.machine.registers
        if launch.threads * registers > self.chip.registers:
            raise LaunchRefused(
                OUT_OF_RESOURCES,
                f"{launch.threads} threads with {registers} registers each need more than the chip's "
                f"{self.chip.registers:,}",
            )
        most = resident_blocks(kernel, launch, self.chip) * self.chip.multiprocessors
        if shape.is_cooperative and launch.blocks > most:
            raise LaunchRefused(
                TOO_LARGE,
                f"{launch.blocks:,} blocks are launched together, and {most:,} are resident at most",
            )
        return launch

    def _execute(self, kind: LaunchKind, job: Job, module: ProgramModule, device: ProgramMemory) -> None:
        if self.recorder is not None and kind.times == 1:
            try:
                kind.recording, missing = self.recorder.record(job, module, device)
                kind.notes |= dict.fromkeys(missing)
            except MemsimError as error:  # the program goes on
                self._failed(kind, error)
        if self.analyze and kind.times == 1:
            kind.analysis, kind.why_not = self._analysis(job, module, device)
        if self.sanitize and kind.times == 1:
            kind.notes |= dict.fromkeys(self._errors(job, module, device))
        memory = self._memory(job, module, device, is_private=False)
        if "malloc" in called_by(job.loaded):
            device.make_heap()
        memory.functions = KernelCalls(device, self.output)
        run = partial(self._run, job, memory)
        try:
            kind.remembered += self.remembered.execute(job, device, memory.constants, run)
        finally:
            memory.release()
        if memory.unwritten is not None:
            kind.notes[f"it wrote values that it never computed: {memory.unwritten.story()}"] = None

    def _run(self, job: Job, memory: MemoryOfLaunch, accessed: AllocationListener) -> None:
        """Executes a launch in machine code, or in the emulator if that has operations for more of it."""
        launch = prepared_launch(job, everything=True, memory=memory)
        if self.interpreter is not None:
            with suppress(NotLowered):
                self.interpreter.run(launch, accessed, TouchedAllocations(accessed.names, accessed.written))
                return
        launch.finish(launch.run(accessed, allow_out_of_bounds=job.allow_out_of_bounds), accessed)

    def _analysis(
        self, job: Job, module: ProgramModule, device: ProgramMemory
    ) -> tuple[Analysis | None, str]:
        """What the launch costs, by a copy of memory; or why that is not known."""
        from memsim.analysis import analyze_trace
        from memsim.time.quick_estimate import estimate

        with self._copies(job, module, device) as new_memory:
            try:
                trace = trace_job(job, memory=new_memory())
                time = estimate(job, trace, self.effort, new_memory) if self.time else None
                return replace(analyze_trace(trace, job.arch), estimate=time), ""
            except (MemsimError, Poisoned, *MISTAKES) as error:
                return None, _why_not(error)

    def _errors(self, job: Job, module: ProgramModule, device: ProgramMemory) -> list[str]:
        """What `memsim sanitize` finds in the launch, by a copy of memory, each in a line."""
        from memsim.api.sanitizing import sanitize_job
        from memsim.views.sanitize_text import in_lines

        with self._copies(job, module, device) as new_memory:
            try:
                return in_lines(sanitize_job(job, new_memory=new_memory))
            except (MemsimError, Poisoned, *MISTAKES) as error:
                return [f"not judged: {_why_not(error)}"]

    @contextmanager
    def _copies(
        self, job: Job, module: ProgramModule, device: ProgramMemory
    ) -> Iterator[Callable[[], MemoryOfLaunch]]:
        """Makes copies of memory, which are released at the end."""
        with ExitStack() as made:

            def new_memory() -> MemoryOfLaunch:
                memory = self._memory(job, module, device, is_private=True)
                made.callback(memory.release)
                return memory

            yield new_memory

    def _memory(
        self, job: Job, module: ProgramModule, device: ProgramMemory, *, is_private: bool
    ) -> MemoryOfLaunch:
        symbols = {name: start for name, (start, _) in module.variables.items()}
        base = job.loaded.executable.shared_base
        return MemoryOfLaunch(device, base, symbols, module.constants(), is_private)

    def _failed(self, kind: LaunchKind, error: MemsimError) -> None:
        kind.notes[str(error).splitlines()[0]] = None
        self.say(f"{kind.name} {dim3(kind.shape.grid)} x {dim3(kind.shape.block)}: {error}")


def _why_not(error: Exception) -> str:
    """Why something is not known of a launch, in a line."""
    if isinstance(error, MISTAKES):
        return f"memsim failed: {type(error).__name__}: {error}"
    return str(error).splitlines()[0]


def resident_blocks(kernel: Kernel, launch: Launch, chip: Arch) -> int:
    """How many blocks of a launch a multiprocessor holds at once."""
    used = kernel.static_shared + launch.shared_bytes
    if used > chip.shared_block_bytes:
        return 0
    machine = kernel.machine
    return occupancy(Needs(launch.threads, machine.registers, used, machine.image.barriers), chip).blocks
