"""Which `.cu` files of public projects load with what pip brings: `python tools/load_public.py FILES CLONES`.

FILES has a line `owner/name path` for each file; CLONES has a folder `owner+name`, `owner/name` or `name`
for each project. nvcc is hidden; with `--nvcc` it is asked afterwards for files that NVRTC refuses.
A file with nothing but templates loads where an instance of plausible types compiles, or where no header is
missing. Prints the table and, with `--save COUNTS.json`, keeps its counts. Nothing of the files is
kept.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from memsim.compile import build, compile_cubin
from memsim.compile.build import MISSING, SET_ASIDE
from memsim.compile.nvcc import find_nvcc
from memsim.errors import MemsimError
from memsim.sass.cubin import read_cubin
from memsim.source.kernels import KernelSource, TemplateParameter, kernels
from memsim.source.launches import instances_of

HOW = ("as it is", "host code set aside", "templates", "with nvcc", "refused")


def main() -> None:
    """Loads each file, and says how many of each project did."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("files", type=Path)
    reader.add_argument("clones", type=Path)
    reader.add_argument("--save", type=Path, metavar="COUNTS.json")
    reader.add_argument("--jobs", type=int, default=1)
    reader.add_argument("--nvcc", action="store_true", help="ask nvcc for what NVRTC refuses")
    asked = reader.parse_args()
    lines = [line.split(" ", 1) for line in asked.files.read_text("utf-8").splitlines() if line]
    paths = [folder_of(asked.clones, project) / path for project, path in lines]
    with ProcessPoolExecutor(asked.jobs) as pool:
        outcomes = list(pool.map(partial(load, ask_nvcc=asked.nvcc), paths))
    projects: dict[str, Counter[str]] = {}
    reasons: dict[str, Counter[str]] = {}
    for (project, path), (how, why) in zip(lines, outcomes, strict=True):
        projects.setdefault(project, Counter())[how] += 1
        if why:
            reasons.setdefault(project, Counter())[why.partition(":")[0]] += 1
            print(f"{project} {path}: {how}: {why}")
    table = {
        project: {
            **{how: counts[how] for how in HOW},
            "reasons": dict(sorted(reasons.get(project, Counter()).items())),
        }
        for project, counts in sorted(projects.items())
    }
    for project, row in table.items():
        print(project, *(row[how] for how in HOW), row["reasons"] or "")
    total = {how: sum(counts[how] for counts in projects.values()) for how in HOW}
    print(len(lines), "files:", ", ".join(f"{count} {how}" for how, count in total.items()))
    if asked.save:
        asked.save.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def folder_of(clones: Path, project: str) -> Path:
    """The folder of a project's clone."""
    owner, name = project.split("/")
    places = [clones / f"{owner}+{name}", clones / owner / name, clones / name]
    found = next((place for place in places if place.is_dir()), None)
    if found is None:
        sys.exit(f"{clones} has no clone of {project}")
    return found


def load(path: Path, *, ask_nvcc: bool = False) -> tuple[str, str]:
    """(how it loads, why it does not): one of `HOW`, and a reason that begins with its kind and a colon."""
    build.find_nvcc = lambda: None
    try:
        return _load(path)
    except MemsimError as error:
        why = _reason(error)
    except UnicodeDecodeError:
        why = "not UTF-8:"
    finally:
        build.find_nvcc = find_nvcc
    if ask_nvcc:
        try:
            if read_cubin(compile_cubin(path, compiler="nvcc").code).kernels:
                return "with nvcc", why
        except MemsimError:
            pass
    return "refused", why


def _load(path: Path) -> tuple[str, str]:
    compiled = compile_cubin(path)
    if read_cubin(compiled.code).kernels:
        return ("host code set aside" if SET_ASIDE in compiled.compiler else "as it is"), ""
    text = path.read_text("utf-8")
    if instances_of(text):
        return "refused", "instances do not compile: those that it launches"
    templates = [kernel for kernel in kernels(text) if kernel.template]
    if not templates:
        return "refused", "no kernel: none is found in it"
    if any(_is_made(path, instance) for kernel in templates[:3] for instance in _plausible(kernel)):
        return "templates", ""
    missing = [note for note in compiled.notes if note.startswith(MISSING)]
    return ("refused", f"headers missing: {missing[0]}") if missing else ("templates", "")


def _plausible(kernel: KernelSource) -> list[str]:
    """Instances of a template that somebody may type."""
    needed = [parameter for parameter in kernel.template if parameter.default is None]
    return [
        f"{kernel.name}<{', '.join(_argument(parameter, real, number) for parameter in needed)}>"
        for real, number in (("float", "32"), ("__half", "8"), ("int", "128"))
    ]


def _argument(parameter: TemplateParameter, real: str, number: str) -> str:
    if parameter.kind in ("typename", "class"):
        return real
    return "true" if parameter.kind == "bool" else number


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
        return "texture references: gone since CUDA 12"
    if "Unresolved extern function" in log:
        return "other files needed: a device function is defined elsewhere"
    if "Formal parameter space overflowed" in log:
        return "newer CUDA needed: parameters above 4 KB"
    if re.search(r"#error directive", error.message):
        return "macros needed: #error"
    return f"not understood: {error.message}"


if __name__ == "__main__":
    main()
