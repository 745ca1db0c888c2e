"""The texts of the source files that a module's code names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from memsim.boundary import Boundary
from memsim.compile.source_folders import may_be_shown, shown_text, source_folders
from memsim.files import file_exists


@dataclass(frozen=True, slots=True)
class SourceTexts:
    """Looks source files up by the names that code has for them.

    folders: where they may lie. file: what was loaded, beside which they are looked for first; None for a
    text. called: its display name, if it has one.
    """

    folders: Boundary
    file: Path | None = None
    called: str | None = None

    def of(self, names: Iterable[str]) -> dict[str, str]:
        """The texts of those that can be found and may be shown."""
        found = {name: self.find(name) for name in names}
        texts = {name: shown_text(path, self.folders) for name, path in found.items() if path is not None}
        return {name: text for name, text in texts.items() if text is not None}

    def find(self, name: str) -> Path | None:
        """The file that code names so; None if there is none that may be shown."""
        near = [self.file.parent / name, self.file.parent / Path(name).name] if self.file else []
        if self.file and self.called and not Path(self.called).is_absolute():
            near = [self.file.parents[len(Path(self.called).parts) - 1] / name]
        candidates = (path for path in (*near, Path(name)) if file_exists(path))
        return next((path for path in candidates if may_be_shown(path, self.folders)), None)


def texts_beside(file: Path | None, called: str | None = None, options: Sequence[str] = ()) -> SourceTexts:
    """The sources of a target: `file`, which is `called` so, compiled with `options`."""
    return SourceTexts(source_folders(file, options), file, called)
