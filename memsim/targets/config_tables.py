"""A configuration file as typed tables; errors have file, line and column where possible."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn, TypeVar

import msgspec

from memsim.errors import MemsimError
from memsim.files import TomlError, parse_toml, read_text

K = TypeVar("K", bound=msgspec.Struct)
# TOMLDecodeError has the position only in its message.
_PLACE = re.compile(r"(?P<what>.*) \(at line (?P<line>\d+), column (?P<column>\d+)\)")


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration file; `text` is used to locate errors."""

    path: Path
    text: str

    def fail(self, message: str, hint: str | None = None) -> NoReturn:
        """Raise an error about the file."""
        raise MemsimError(message, file=str(self.path), hint=hint)

    def locate(self, error: MemsimError) -> MemsimError:
        """Locate an error about a string of the file (its `source`): the first line that contains it."""
        text, column = error.source or "", error.column or 1
        for number, line in enumerate(self.text.splitlines(), 1):
            for quoted in (f'"{text}"', f"'{text}'"):
                at = line.find(quoted)
                if at >= 0:
                    column = at + 1 + column
                    return self._error(error, number, column, line)
        return self._error(error, None, column, text)

    def _error(self, error: MemsimError, line: int | None, column: int, source: str) -> MemsimError:
        return MemsimError(
            error.message, file=str(self.path), line=line, column=column, source=source, hint=error.hint
        )


def read_toml(path: Path) -> tuple[ConfigFile, dict[str, object]]:
    """The file and what is in it.

    Raises:
        MemsimError: it cannot be read, or is not TOML.
    """
    text = read_text(path)
    try:
        return ConfigFile(path, text), parse_toml(text)
    except TomlError as error:
        place = _PLACE.fullmatch(str(error))
        if place is None:
            raise MemsimError(f"not valid TOML: {error}", file=str(path)) from None
        line = int(place["line"])
        raise MemsimError(
            f"not valid TOML: {place['what']}",
            file=str(path),
            line=line,
            column=int(place["column"]),
            source=[*text.splitlines(), ""][line - 1],
        ) from None
    except (ValueError, RecursionError) as error:  # an integer of thousands of digits; brackets in brackets
        raise MemsimError(f"not valid TOML: {error}", file=str(path)) from None


@dataclass(frozen=True, slots=True)
class ConfigTable:
    """A table of a file. name: what errors call it."""

    file: ConfigFile
    name: str
    values: dict[str, object]

    def check_keys(self, known: Sequence[str]) -> None:
        """Every key must be one of `known`."""
        for key in self.values:
            if key not in known:
                near = get_close_matches(key, known, n=1)
                guess = f"did you mean {near[0]!r}? " if near else ""
                self.fail(f"unknown key {key!r}", f"{guess}known: {', '.join(known)}")

    def read_as(self, keys: type[K]) -> K:
        """The table as a Struct, whose fields are its keys."""
        try:
            return msgspec.convert(self.values, keys)
        except msgspec.ValidationError as error:
            what, _, place = str(error).partition(" - at `$.")
            self.fail(f"{place.rstrip('`')}: {what}")

    def fail(self, message: str, hint: str | None = None) -> NoReturn:
        """Something is wrong with the table."""
        self.file.fail(f"{self.name}: {message}", hint)

    def fail_at(self, text: str, message: str, hint: str | None = None) -> NoReturn:
        """Something is wrong with a string of the table."""
        error = MemsimError(f"{self.name}: {message}", column=1, source=text, hint=hint)
        raise self.file.locate(error)
