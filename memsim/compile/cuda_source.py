"""Compiles CUDA C++ to a cubin, the machine code of one chip, with line information; and the text in which
the launches of a source file are read.

A cubin's line tables contain paths: those of headers as they are, so that its bytes depend on the folder if a
header of the user's has code; that of the source itself in a folder of no meaning. Code, constants and sizes
do not depend on the folder.

The compiler is NVRTC, then NVRTC with host code removed, then nvcc: the first that succeeds. If none does,
the most helpful error is raised. NVRTC refuses host code that launches a kernel, so of a source with a launch
the device code alone is tried first, and the whole source if that fails.

The text for launches is the file's own, as the options for the compiler make it, and behind it the headers
that define the kernels which it launches, and what those include; `#line` names each. Of the other headers of
the project it has the constants.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from pathlib import Path

from memsim.arch.chip import exact_names, plain_name
from memsim.compile.compilers import NvrtcResult, find_nvcc, makes_code_for, release_of, run_nvcc, run_nvrtc
from memsim.compile.device_code import DYNAMIC, DeviceCode, device_code, with_constants
from memsim.compile.failure import (
    compile_error,
    false_assertions,
    makes_no_code,
    needs_host,
    only_false_assertions,
    refused_instances,
    squeeze,
)
from memsim.compile.host_code import EVERY, Assertion
from memsim.compile.included_files import included_by, included_files
from memsim.compile.options import for_nvrtc, macros_of, of_build, without_chips
from memsim.compile.prepare import Compiled, CompilerInput, Names, prepare
from memsim.compile.shown_sources import shown_log, shown_source
from memsim.errors import MemsimError
from memsim.files import read_bytes
from memsim.source.kernels import kernels
from memsim.source.launches import launches
from memsim.source.syntax import macros
from memsim.source.text import lines_by_condition, substitute_names, without_comments
from memsim.source.values import with_header_constants, with_macros


def launching_text(text: str, folder: Path, options: Sequence[str]) -> str:
    """The text of a source in a folder, with those headers, and with the macros of the options."""
    macros = macros_of(options)
    headers = dict(_headers(with_macros(text, macros), folder, options))
    included = included_files(text, folder, options).items()
    text = with_header_constants(text, (said for path, said in included if path not in headers), macros)
    parts = (f'#line 1 "{path.as_posix()}"\n{said}' for path, said in headers.items())
    return with_macros("\n".join([text, *parts]), macros)


def read_launching_text(path: Path, options: Sequence[str]) -> str:
    """As `launching_text`, of a file, with its options in `compile_commands.json`, too.

    Raises:
        MemsimError: it cannot be read.
    """
    text = read_bytes(path).decode("utf-8", "replace")
    path = path.absolute()
    return launching_text(text, path.parent, [*of_build(path)[0], *options])


def _headers(text: str, folder: Path, options: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """The headers with kernels that a text does not define but launches, or that they launch themselves; and
    those that they include.

    All that define kernels if the text neither defines nor launches one.
    """
    own = {kernel.plain for kernel in kernels(text)}
    launched = {launch.plain for launch in launches(text)}
    for path, said in included_files(text, folder, options).items():
        found = {kernel.plain for kernel in kernels(said)} - own
        by_itself = {launch.plain for launch in launches(said)} if found else set()
        if found & (launched | by_itself) or (found and not own | launched):
            yield path, said
            yield from included_by(said, path.parent, folder, options)


_CHIP = re.compile(r"sm_\d+[af]?")


def compile_cubin(
    source: str | Path,
    options: Sequence[str] = (),
    arch: str = "sm_90",
    name: str | None = None,
    compiler: str | None = None,
    instances: Sequence[str] = (),
) -> Compiled:
    """The machine code of a `.cu` file or of CUDA C++ text.

    Args:
        source: a path, or the text itself (a string with a line break).
        options: for the compiler, such as `-DBM=64` or `-Iinclude`. `-lineinfo` is always added, `-std=c++17`
            unless another standard is given.
        arch: the chip, `sm_90` or `sm_90a`.
        name: the file's name in errors and `Compiled.names`; default: the path as given, `kernel.cu` for
            text. Headers are named relative to it.
        compiler: None for NVRTC, then NVRTC with host code removed, then nvcc: the first that accepts it.
        instances: of the source's kernel templates, `transpose<float, 8>`; default: those that it launches.

    Raises:
        MemsimError: no such file; no such compiler; an unknown option; code that does not compile, with the
            place of the first error and the compiler's log.
    """
    if not _CHIP.fullmatch(arch):
        raise MemsimError(f"machine code is for a chip such as sm_90, not for {arch!r}")
    if compiler not in (None, "nvrtc", "nvcc"):
        raise MemsimError(f"compilers are nvrtc and nvcc, and not {compiler!r}")
    read, options, notes = prepare(source, options, name)
    built = build(read, options, arch, compiler, instances)
    files = included_files(read.text, read.folder, options)
    headers = {built.names.name_of(path.as_posix()): content for path, content in files.items()}
    return replace(built, headers=headers, notes=(*notes, *built.notes))


SET_ASIDE = "host code set aside"
MISSING = "headers that were not found, and that no kernel needs"
NOT_COMPILED = "launched in the source but not compiled"


#: Chips that every supported release, 12.0 and later, can compile for.
NVRTC_KNOWS = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_90a")


def build(
    source: CompilerInput,
    options: Sequence[str],
    arch: str,
    compiler: str | None = None,
    instances: Sequence[str] = (),
) -> Compiled:
    """As `compile_cubin`, of what `prepare` made; for `sm_90a` where the options say so, or the code needs
    that.
    """
    options, arch = without_chips(options, arch)
    try:
        return _build(source, options, arch, compiler, instances)
    except MemsimError as error:
        exact = exact_names(arch) if arch == plain_name(arch) else ()
        if not exact or f"{OF_ANOTHER} '{arch}'" not in (error.hint or ""):
            raise
        return _build(source, options, exact[0], compiler, instances)


#: What ptxas says of the instructions of `sm_90a`.
OF_ANOTHER = "not supported on .target"


def _build(
    source: CompilerInput, options: Sequence[str], arch: str, compiler: str | None, instances: Sequence[str]
) -> Compiled:
    """As `build`, for that chip."""
    nvcc = find_nvcc() if compiler != "nvrtc" else None
    if compiler == "nvcc" and nvcc is None:
        raise MemsimError("nvcc is not installed", hint="install the CUDA toolkit, or compile with NVRTC")
    if compiler == "nvcc" or not (arch in NVRTC_KNOWS or makes_code_for(arch)):
        if nvcc is None:
            raise makes_no_code("NVRTC", arch)
        return run_nvcc(nvcc, source, options, arch, instances)

    kept, ignored = for_nvrtc(options)
    path = source.neutral_name
    names = Names(((path, source.name), (source.true_name, source.name)))
    as_it_is = cache(partial(run_nvrtc, source.text, path, kept, arch, instances=instances))
    if not _launches(source.text) and as_it_is().ptx is not None:
        return _nvrtc_output(as_it_is(), arch, names, ignored, "")
    device, second, notes = _set_aside(source, path, kept, arch, instances)
    refused = _false_assertions(source, path, kept, arch) if second.ptx is not None and device.asserts else ""
    if second.ptx is not None and not refused:
        return _nvrtc_output(second, arch, names, (*ignored, *notes), f", {SET_ASIDE}")
    if as_it_is().ptx is not None:  # what looks like a launch is none
        return _nvrtc_output(as_it_is(), arch, names, ignored, "")
    if nvcc is not None:
        try:
            return run_nvcc(nvcc, source, options, arch, instances)
        except MemsimError:
            pass  # NVRTC's error about the device code is more useful
    own = as_it_is() if not needs_host(source.text, as_it_is().log) else second
    missing = {name: (names.name_of(file), line) for name, (file, line) in device.missing.items()}
    log = shown_log(refused or own.log, source, options, (path, source.true_name))
    text = shown_source(source, options)
    raise compile_error(text, names.renamed(log), source.name, missing, instances)


def _launches(text: str) -> bool:
    """Whether a source has a launch outside of conditions, which may hide it from NVRTC."""
    lines = lines_by_condition(without_comments(text), lambda *_: None)
    return any("<<<" in line and not groups and line.lstrip()[:1] != "#" for line, _, groups in lines)


def _nvrtc_output(program: NvrtcResult, arch: str, names: Names, notes: Sequence[str], how: str) -> Compiled:
    ptx = program.ptx or ""
    release = release_of(ptx)
    made_by = f"NVRTC {release}" if release else "NVRTC"
    code = ptx.encode() if program.cubin is None else program.cubin
    return Compiled(code, made_by + how, arch, names.renamed(program.log), names, notes=tuple(notes))


def _set_aside(
    source: CompilerInput, path: str, options: Sequence[str], chip: str | None, instances: Sequence[str]
) -> tuple[DeviceCode, NvrtcResult, list[str]]:
    """NVRTC's output for the device code alone, with the instances that the source itself launches."""
    from memsim.source.launches import instances_of

    launched = list(instances) or list(instances_of(launching_text(source.text, source.folder, options)))
    device = device_code(source.text, path, source.folder, options, " ".join(launched))

    def run(chosen: Sequence[str], more: Sequence[str] = device.options) -> NvrtcResult:
        return run_nvrtc(device.text, path, [*options, *more], chip, device.headers, chosen)

    program = run(launched)
    if program.ptx is None and DYNAMIC in program.log:
        device = with_constants(device, path, program.log)
        program = run(launched)
    if program.ptx is None and DYNAMIC in program.log:
        # nvcc folds a host constant in device code, NVRTC does not.
        without = [option for option in device.options if option != "-default-device"]
        program, plain = run(launched, without), program
        program = program if program.ptx is not None else plain
    notes = [f"{name} was found in {place}" for name, place in device.found.items()]
    if device.missing:
        notes.append(f"{MISSING}: {', '.join(device.missing)}")
    once = cache(run)
    # An error that is of no instance is there without any, too.
    if program.ptx is None and launched and not instances and once(()).ptx is not None:
        fitting = _compilable(once, tuple(launched), program.log, _log_spelling(device))
        good = once(fitting)
        if good.ptx is not None:
            program = good
            failed = [instance for instance in launched if instance not in fitting]
            notes.append(f"{NOT_COMPILED}: {', '.join(failed)}")
    return device, program, notes


def _false_assertions(source: CompilerInput, path: str, options: Sequence[str], chip: str | None) -> str:
    """What NVRTC says of assertions outside of functions that are false.

    They are compiled by themselves: what they name may be of the host, and no kernel needs it. One that the
    compiler cannot read counts as true: of a class with a member that it does not know it has no size.
    """

    def log_of(asserted: Assertion) -> str:
        device = device_code(source.text, path, source.folder, options, asserted=asserted)
        chosen = [*options, *device.options]
        return run_nvrtc(device.text, path, chosen, chip, device.headers).log

    log = log_of(EVERY)
    if only_false_assertions(log):
        return log
    alone = (log_of(place) for place in false_assertions(log))
    return "\n".join(filter(only_false_assertions, alone))


def _log_spelling(device: DeviceCode) -> Callable[[str], str]:
    """How NVRTC's log writes an instance: without spaces, and macros by their values."""
    every = (macros(text).items() for text in (device.text, *device.headers.values()))
    values = {name: value.strip() for name, value in chain.from_iterable(every)}
    return lambda instance: squeeze(substitute_names(instance, values))


def _compilable(
    run: Callable[[tuple[str, ...]], NvrtcResult],
    instances: tuple[str, ...],
    log: str,
    written: Callable[[str], str],
) -> tuple[str, ...]:
    """The instances that compile, if they do not compile all together, according to the log."""
    refused = refused_instances(log)
    unnamed = tuple(instance for instance in instances if written(instance) not in refused)
    if len(unnamed) < len(instances):
        return _those_of(run, unnamed, written)
    middle = len(instances) // 2
    halves = (instances[:middle], instances[middle:]) if middle else ()
    return tuple(instance for half in halves for instance in _those_of(run, half, written))


def _those_of(
    run: Callable[[tuple[str, ...]], NvrtcResult], instances: tuple[str, ...], written: Callable[[str], str]
) -> tuple[str, ...]:
    tried = run(instances)
    return instances if tried.ptx is not None else _compilable(run, instances, tried.log, written)
