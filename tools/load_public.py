"""Which `.cu` files of public projects load with what pip brings: `python tools/load_public.py FILES CLONES`.

FILES has a line `owner/name path` for each file; CLONES has a folder `owner+name`, `owner/name` or `name`
for each project. nvcc is hidden. A file loads when every kernel that it defines gives machine code: each
one that is no template, each instance that the file itself launches or instantiates, and of each template
that is left one instance of plausible arguments, as `--kernel 'name<...>'` makes it. What the preprocessor
drops is no kernel. Prints each outcome and the table; `--save COUNTS.json` keeps the counts. Nothing of the
files is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import islice
from pathlib import Path

from memsim.compile import cuda_source
from memsim.compile.cuda_source import MISSING, NOT_COMPILED, compile_cubin
from memsim.compile.prepare import prepare
from memsim.errors import MemsimError
from memsim.sass.cubin import read_cubin
from memsim.source.kernels import KernelSource, TemplateParameter, kernels
from memsim.source.launches import instances_of, launches

LOADED = "loaded"
# Instances of one template that are tried.
AT_MOST = 8
REALS = ("float", "__half", "float", "int", "__nv_bfloat16", "double", "float4")
NUMBERS = ("32", "2", "128", "4", "8", "1", "256", "16", "64")


def main() -> None:
    """Loads each file, and says how many of each project did."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("files", type=Path)
    reader.add_argument("clones", type=Path)
    reader.add_argument("--save", type=Path, metavar="COUNTS.json")
    reader.add_argument("--jobs", type=int, default=1)
    asked = reader.parse_args()
    hide_nvcc()
    lines = [line.split(" ", 1) for line in asked.files.read_text("utf-8").splitlines() if line]
    paths = [folder_of(asked.clones, project) / path for project, path in lines]
    projects: dict[str, Counter[str]] = {}
    with ProcessPoolExecutor(asked.jobs, initializer=hide_nvcc) as pool:
        for (project, path), why in zip(lines, pool.map(load, paths), strict=True):
            projects.setdefault(project, Counter())[why.partition(":")[0] or LOADED] += 1
            print(f"{project} {path}: {why or LOADED}", flush=True)
    table = {
        project: {
            "files": counts.total(),
            LOADED: counts.pop(LOADED, 0),
            "reasons": dict(sorted(counts.items())),
        }
        for project, counts in sorted(projects.items())
    }
    for project, row in table.items():
        print(project, *row.values())
    print(sum(row[LOADED] for row in table.values()), "of", len(lines), "files load")
    if asked.save:
        asked.save.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def hide_nvcc() -> None:
    """No nvcc, and no CUDA toolkit: what pip brings is all there is."""
    cuda_source.find_nvcc = lambda: None
    for name in ("CUDA_HOME", "CUDA_PATH"):
        os.environ.pop(name, None)


def folder_of(clones: Path, project: str) -> Path:
    """The folder of a project's clone."""
    owner, name = project.split("/")
    places = [clones / f"{owner}+{name}", clones / owner / name, clones / name]
    found = next((place for place in places if place.is_dir()), None)
    if found is None:
        sys.exit(f"{clones} has no clone of {project}")
    return found


def load(path: Path) -> str:
    """Why a file does not load, a reason that begins with its kind and a colon; empty if it does."""
    try:
        return _load(path)
    except MemsimError as error:
        return _reason(error)


def _load(path: Path) -> str:
    compiled = compile_cubin(path)
    made = Made(read_cubin(compiled.cubin).kernels)
    text = path.read_text("utf-8", "surrogateescape")
    defined = kernels(text)
    noted = "".join(note for note in compiled.notes if note.startswith(NOT_COMPILED))
    launched = [name for name in instances_of(text) if name in noted or not made.has(_plain(name))]
    left = [kernel for kernel in defined if not made.has(kernel.plain)]
    left += [kernel for kernel in defined if any(_is_of(kernel, instance) for instance in launched)]
    left = [kernel for kernel in dict.fromkeys(left) if not _is_dropped(path, text, kernel)]
    if len(left) == len(defined) == 0 and not made.names:
        return "no kernel is compiled: what the preprocessor keeps has none"
    for kernel in left:
        if not kernel.template:
            return f"a kernel is not compiled: {kernel.name}"
        refused = [instance for instance in launched if _is_of(kernel, instance)]
        if refused:
            return f"a launched instance does not compile: {refused[0]}"
    types = _Types.of(path, text)
    refused = [kernel.name for kernel in left if not _gives_an_instance(path, text, kernel, types)]
    if not refused:
        return ""
    missing = [note for note in compiled.notes if note.startswith(MISSING)]
    return f"headers missing: {missing[0]}" if missing else f"no plausible instance compiles: {refused[0]}"


class Made:
    """The kernels in a cubin."""

    def __init__(self, mangled: Iterable[str]) -> None:
        self.names = tuple(mangled)

    def has(self, plain: str) -> bool:
        """Is there a kernel, or an instance of a template, of this name?"""
        return any(name == plain or f"{len(plain)}{plain}" in name for name in self.names)


def _plain(name: str) -> str:
    return name.partition("<")[0].partition("(")[0].rpartition("::")[2]


def _is_of(kernel: KernelSource, instance: str) -> bool:
    return instance.partition("<")[0] == kernel.name


def _is_dropped(path: Path, text: str, kernel: KernelSource) -> bool:
    """Does the preprocessor drop a kernel: an #error inside of it changes nothing."""
    lines = text.split("\n")
    place = next((row for row in range(kernel.line - 1, len(lines)) if "{" in lines[row]), kernel.line - 1)
    changed = "\n".join([*lines[: place + 1], "#error it is compiled", *lines[place + 1 :]])
    source, options, _ = prepare(path, (), None)
    try:
        cuda_source.build(replace(source, text=changed), options, "sm_90")
    except MemsimError:
        return False
    return True


# --- instances that somebody may type


class _Types:
    """What a source, and the headers beside it, offer for arguments of templates."""

    def __init__(self, text: str) -> None:
        self.functors = re.findall(
            r"\b(?:struct|class)\s+(\w+)[^;{}]*\{(?:[^{}]|\{[^{}]*\})*?\boperator\s*\(\s*\)", text
        )
        found = re.findall(r"\benum\s+(class\s+|struct\s+)?(\w+)[^;{}]*\{([^{}]*)\}", text)
        self.enumerators = {
            name: [f"{name}::{value}" if scoped else value for value in re.findall(r"(\w+)\s*[=,}]|$", body)]
            for scoped, name, body in found
        }

    @classmethod
    def of(cls, path: Path, text: str) -> _Types:
        from memsim.compile.device_code import read_project

        project = read_project(text, path.absolute().as_posix(), path.absolute().parent, ())
        return cls("\n".join(project.texts.values()))


def _gives_an_instance(path: Path, text: str, kernel: KernelSource, types: _Types) -> bool:
    return any(_is_made(path, instance) for instance in islice(_plausible(text, kernel, types), AT_MOST))


def _plausible(text: str, kernel: KernelSource, types: _Types) -> Iterator[str]:
    """Instances of a template that somebody may type; what its launches say of the arguments is taken."""
    written = [
        tuple("" if launch.unknown & set(re.findall(r"\w+", said)) else said for said in launch.template)
        for launch in launches(text)
        if launch.plain == kernel.plain
    ]
    needed = [parameter for parameter in kernel.template if parameter.default is None]
    seen = set()
    for attempt in range(len(REALS) * len(NUMBERS)):
        for said in [*dict.fromkeys(written), ()]:
            count = max(len(said), len(needed))
            arguments = [
                _argument(parameter, attempt, said[place] if place < len(said) else "", types)
                for place, parameter in enumerate(kernel.template[:count])
                if "..." not in f"{parameter}"
            ]
            instance = f"{kernel.name}<{', '.join(arguments)}>"
            if instance not in seen:
                seen.add(instance)
                yield instance


def _argument(parameter: TemplateParameter, attempt: int, said: str, types: _Types) -> str:
    if said:
        return said
    real, number = REALS[attempt % len(REALS)], NUMBERS[attempt % len(NUMBERS)]
    kind = parameter.kind.rpartition(" ")[2] or parameter.kind
    if kind in ("typename", "class"):
        choices: Sequence[str] = types.functors if _is_functor(parameter.name) and types.functors else ()
        return choices[attempt % len(choices)] if choices else real
    if kind == "bool":
        return ("false", "true")[attempt % 2]
    if types.enumerators.get(kind):
        return types.enumerators[kind][attempt % len(types.enumerators[kind])]
    return number


def _is_functor(name: str) -> bool:
    return re.search(r"(?i)op$|op_|func|fn|epilogue|policy|visitor|predicate|load|store", name) is not None


def _is_made(path: Path, instance: str) -> bool:
    try:
        compile_cubin(path, instances=[instance])
    except MemsimError:
        return False
    return True


def _reason(error: MemsimError) -> str:
    if "cannot open source file" in error.message or "headers are missing" in error.message:
        return f"headers missing: {error.message}"
    log = error.hint or ""
    if "is not a template" in error.message and "texture" in error.message:
        return "texture references, gone since CUDA 12: they are used"
    if "Unresolved extern function" in log:
        return "other files needed: a device function is defined elsewhere"
    if "Formal parameter space overflowed" in log:
        return "newer CUDA needed: parameters above 4 KB"
    if re.search(r"#error directive", error.message):
        return "macros needed: #error"
    return f"not understood: {error.message}"


if __name__ == "__main__":
    main()
