"""Options of compilers: their paths, those of a build system, and options for nvcc as options for NVRTC.

Unknown options are passed on, for NVRTC to reject.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from memsim.errors import MemsimError
from memsim.files import file_exists, read_json

#: Options of NVRTC and nvcc for a folder of headers. A path follows directly, after "=", or as the next one.
SHORT = "-I"
INCLUDE = (SHORT, "--include-path", "-include-path")
#: Those for other folders and files.
OTHERS = ("-isystem", "--system-include", "-idirafter", "-iquote", "-include", "--pre-include")


def split_options(options: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """(`-I`, path) or (`--pre-include`, path) for each option with a path, (option, None) for any other."""
    words = iter(options)
    for option in words:
        name, equals, value = option.partition("=")
        if option in (*INCLUDE, *OTHERS):
            yield option, next(words, None)
        elif equals and name in (*INCLUDE, *OTHERS):
            yield name, value
        elif option.startswith(SHORT):
            yield SHORT, option.removeprefix(SHORT)
        else:
            yield option, None


def include_folders(options: Sequence[str]) -> list[Path]:
    """The folders of headers in the options."""
    return [
        Path(path).absolute() for name, path in split_options(options) if name in INCLUDE and path is not None
    ]


def absolute_paths(options: Sequence[str], folder: Path) -> list[str]:
    """The options with all paths relative to `folder` made absolute."""
    return _with_paths(options, lambda path: folder / path)


def paths_in_tree(options: Sequence[str], folder: Path, repository: Path, tree: Path) -> list[str]:
    """The options of a target in `folder` with paths inside `repository` moved to `tree`.

    Files outside of the repository have no revisions and stay where they are.
    """
    root = repository.resolve()

    def move(path: str) -> Path:
        present = (folder / path).resolve()
        return tree / present.relative_to(root) if present.is_relative_to(root) else present

    return _with_paths(options, move)


def _with_paths(options: Sequence[str], change: Callable[[str], Path]) -> list[str]:
    return [
        name if path is None else f"{name}{'' if name == SHORT else '='}{change(path)}"
        for name, path in split_options(options)
    ]


# Options about the host, linking and output files, which do not change device code. Those of the second
# group take their value from the next word.
_ALONE = re.compile(
    r"-c|-dc|-g|-v|-O\d?|-m64|-keep|-MD|-MMD|-MP|-shared|-fPIC|-W[\w=,-]*|-f(?!tz=|mad=)[\w=-]+|-m(?:arch|tune)=.*|--verbose|--compile|--shared"
    r"|--?expt-(?:relaxed-constexpr|extended-lambda)|--?extended-lambda|--?forward-unknown-to-host-compiler"
    r"|--?(?:code|gpu-code|threads|cudart|optimize|compiler-options|Xcompiler|Xlinker|compiler-bindir|ccbin|split-compile)=.*"
    r"|-t\d+|-L.+|-l(?!ineinfo).+|--?ptxas-options=(?:-v|--verbose|-O3)|-Xptxas=(?:-v|--verbose|-O3)|-std=gnu.*"
)
_WITH_VALUE = frozenset(
    (
        "-o -x -MF -MT -MQ -ccbin -Xcompiler -Xlinker -Xptxas -Xcudafe -code -t -l -L "
        "--compiler-options --output-file --threads --compiler-bindir "
        "-cudart -diag-suppress "
    ).split()
)
_TRANSLATED = (
    (re.compile(r"-isystem=?(.+)"), r"-I\1"),
    (re.compile(r"-?-include=?(.+)"), r"--pre-include=\1"),
)
# Options in a build file that change device code.
_OF_DEVICE = re.compile(
    r"--?(?:arch|gpu-architecture|gencode|generate-code)=.+"
    r"|-[DUI].+|-isystem.+|-?-include.+|--?std=.+|--?use_fast_math|--?maxrregcount=.+|--?(?:ftz|fmad|prec-div|prec-sqrt)=.+"
)


# Options that say for which chips to compile; a value may be the next word.
_OF_CHIPS = re.compile(r"--?(?:arch|gpu-architecture|gencode|generate-code)(?:=(.*))?")


def without_chips(options: Sequence[str], arch: str) -> tuple[list[str], str]:
    """(the options that do not say for which chips to compile, the chip: `sm_90a` for `sm_90` if they did).

    `sm_90a` is the same chip, with the instructions of no other: wgmma, say.
    """
    kept, said = [], []
    words = iter(options)
    for word in words:
        found = _OF_CHIPS.fullmatch(word)
        if found is None:
            kept.append(word)
        else:
            said.append(found[1] or next(words, ""))
    exact = re.search(rf"(?:sm|compute)_{arch.removeprefix('sm_')}([af])", " ".join(said))
    return kept, arch + exact[1] if exact else arch


def for_nvrtc(options: Sequence[str]) -> tuple[list[str], list[str]]:
    """(the options for NVRTC, notes about ignored ones)."""
    taken: list[str] = []
    ignored: list[str] = []
    words = iter(_joined(options))
    for word in words:
        if word in _WITH_VALUE:
            ignored.append(f"{word} {next(words, '')}".strip())
        elif _ALONE.fullmatch(word):
            ignored.append(word)
        else:
            for pattern, translation in _TRANSLATED:
                word = pattern.sub(translation, word) if pattern.fullmatch(word) else word
            taken.append(word)
    said = f"options ignored because they do not change device code: {' '.join(ignored)}"
    return taken, [said] if ignored else []


def macros_of(options: Sequence[str]) -> dict[str, str]:
    """The macros that the options define, by name; one without a value is 1."""
    found: dict[str, str] = {}
    for option in _joined(options):
        name, _, value = option[2:].partition("=")
        if option.startswith("-D"):
            found[name] = value or ("" if "=" in option else "1")
        elif option.startswith("-U"):
            found.pop(name, None)
    return {name: value for name, value in found.items() if name.isidentifier()}


def of_build(path: Path) -> tuple[list[str], Path | None]:
    """(the options for a file in a `compile_commands.json`, that file; [] and None if there is none).

    It is looked up beside the file, in the folders above it, and in their `build` folders. Only options that
    change device code are used.
    """
    for folder in list(path.parents)[:_LEVELS]:
        for place in dict.fromkeys((folder, folder / "build", *sorted(folder.glob("build*")))):
            commands = place / "compile_commands.json"
            if file_exists(commands):
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
        return None  # not written by a build system
    return None


def _joined(words: Sequence[str]) -> list[str]:
    """`-I include` as one word."""
    joined: list[str] = []
    rest = iter(words)
    for word in rest:
        joined.append(word + next(rest, "") if word in ("-I", "-D", "-U", "-isystem", "-include") else word)
    return joined


def _from(folder: Path, option: str) -> str:
    """An include folder as an absolute path, relative to `folder`."""
    found = re.fullmatch(r"(-I|-isystem=?)(.+)", option)
    return f"-I{(folder / found[2]).as_posix()}" if found else option
