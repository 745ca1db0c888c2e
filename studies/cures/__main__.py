"""Checks out the sources of all launches: `python -m studies.cures TREES`."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from studies.cures.launch import Source
from studies.cures.sets import SETS


def main() -> None:
    """A work tree for each project and commit, with the files that its launches need."""
    reader = argparse.ArgumentParser(prog="python -m studies.cures", description=__doc__)
    reader.add_argument("trees", type=Path)
    reader.add_argument("--url", default="https://github.com/{}", help="where {} is OWNER/NAME")
    asked = reader.parse_args()
    trees: dict[str, list[Source]] = defaultdict(list)
    for launch in chain(*SETS.values()):
        trees[launch.source.folder].append(launch.source)
    for folder, sources in trees.items():
        print(folder, flush=True)
        check_out(asked.url.format(sources[0].project), asked.trees / folder, sources)


def check_out(url: str, folder: Path, sources: Iterable[Source]) -> None:
    """Files that sources of one commit of a project need; nothing else of it is downloaded."""
    sources = list(sources)
    if not folder.exists():
        _git("clone", "--quiet", "--filter=blob:none", "--no-checkout", url, str(folder))
    paths = sorted({path for source in sources for path in (source.file, *source.needs)})
    _git("-C", str(folder), "checkout", "--quiet", sources[0].commit, "--", *paths)
    for source in sources:
        if source.compiled != source.file:
            shutil.copyfile(folder / source.file, folder / source.compiled)


def _git(*words: str) -> None:
    subprocess.run(["git", *words], check=True)


if __name__ == "__main__":
    main()
