"""Options of nvcc, as NVRTC takes them.

In: options, as a build file has them for nvcc. Out: those for NVRTC, and notes about those that it has no use
for. Left out on purpose: whether the rest are options at all; NVRTC says so.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from memsim.errors import MemsimError
from memsim.files import read_json

# Of the host, of linking, of what is written where: they change nothing in device code. Those of the second
# group have a value in the next word.
_ALONE = re.compile(
    r"-c|-dc|-g|-v|-O\d?|-m64|-keep|-MD|-MMD|-MP|-shared|-fPIC|-W[\w=,-]*|-f(?!tz=|mad=)[\w=-]+|-m(?:arch|tune)=.*|--verbose|--compile|--shared"
    r"|--?expt-(?:relaxed-constexpr|extended-lambda)|--?extended-lambda|--?forward-unknown-to-host-compiler"
    r"|--?(?:generate-code|gencode|code|gpu-code|arch|gpu-architecture|threads|cudart|optimize|compiler-options|Xcompiler|Xlinker|compiler-bindir|ccbin|split-compile)=.*"
    r"|-t\d+|-L.+|-l(?!ineinfo).+|--?ptxas-options=(?:-v|--verbose|-O3)|-Xptxas=(?:-v|--verbose|-O3)|-std=gnu.*"
)
_WITH_VALUE = frozenset(
    (  # noqa: SIM905
        "-o -x -MF -MT -MQ -ccbin -Xcompiler -Xlinker -Xptxas -Xcudafe -gencode -arch -code -t -l -L "
        "--compiler-options --generate-code --gpu-architecture --output-file --threads --compiler-bindir "
        "-cudart -diag-suppress "
    ).split()
)
_TRANSLATED = (
    (re.compile(r"-isystem=?(.+)"), r"-I\1"),
    (re.compile(r"-?-include=?(.+)"), r"--pre-include=\1"),
)
_NEXT = {"-isystem": "-I", "-include": "--pre-include=", "-I": "-I", "-D": "-D", "-U": "-U"}
# What a build file says that changes device code.
_OF_DEVICE = re.compile(
    r"-[DUI].+|-isystem.+|-?-include.+|--?std=.+|--?use_fast_math|--?maxrregcount=.+|--?(?:ftz|fmad|prec-div|prec-sqrt)=.+"
)


def for_nvrtc(options: Sequence[str]) -> tuple[list[str], list[str]]:
    """(the options for NVRTC, notes about those that it has no use for)."""
    taken: list[str] = []
    ignored: list[str] = []
    words = iter(options)
    for word in words:
        if word in _NEXT:
            following = next(words, None)
            taken += [word] if following is None else [f"{_NEXT[word]}{following}"]
        elif word in _WITH_VALUE:
            ignored.append(f"{word} {next(words, '')}".strip())
        elif _ALONE.fullmatch(word):
            ignored.append(word)
        else:
            for pattern, translation in _TRANSLATED:
                word = pattern.sub(translation, word) if pattern.fullmatch(word) else word
            taken.append(word)
    return taken, [f"options that change nothing for device code: {' '.join(ignored)}"] if ignored else []


def of_build(path: Path) -> tuple[list[str], Path | None]:
    """(the options for a file that a `compile_commands.json` says, that file; [] and None if none does).

    Looked for beside the file, in the folders above it, and in their `build` folders. Only what changes
    device code is taken.
    """
    for folder in list(path.parents)[:_LEVELS]:
        for place in (folder, *sorted(folder.glob("build*"))):
            commands = place / "compile_commands.json"
            if commands.is_file():
                options = _of_entry(commands, path)
                if options is not None:
                    return options, commands
        if (folder / ".git").exists():
            break
    return [], None


_LEVELS = 8


def _of_entry(commands: Path, path: Path) -> list[str] | None:
    try:
        entries = read_json(commands)
        for entry in entries:
            folder = Path(commands.parent, entry["directory"])
            if (folder / entry["file"]).resolve() == path.resolve():
                words = entry.get("arguments") or shlex.split(entry["command"])
                return [_from(folder, word) for word in _joined(words[1:]) if _OF_DEVICE.fullmatch(word)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, MemsimError):
        return None  # it is none that a build has written
    return None


def _joined(words: Sequence[str]) -> list[str]:
    """`-I include` as one word."""
    joined: list[str] = []
    rest = iter(words)
    for word in rest:
        joined.append(word + next(rest, "") if word in ("-I", "-D", "-U", "-isystem", "-include") else word)
    return joined


def _from(folder: Path, option: str) -> str:
    """A folder of headers as an absolute path, as `folder` sees it."""
    found = re.fullmatch(r"(-I|-isystem=?)(.+)", option)
    return f"-I{(folder / found[2]).as_posix()}" if found else option
