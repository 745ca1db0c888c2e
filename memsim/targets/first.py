"""A first `memsim.toml`, from the CUDA files of a folder and the launches that they contain.

A folder in; the text of the file out. Left out on purpose: writing it, and analyzing anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from memsim.errors import MemsimError
from memsim.files import read_text
from memsim.targets.offers import Offer, offers

SUFFIX = ".cu"
HEAD = """\
# What `memsim check` guards: each kernel below, against the counts in memsim-baseline.toml.
# memsim baseline   writes that file
# memsim check      fails when an access costs more than it did

budgets = ["baseline"]
"""


def first_project(folder: Path) -> tuple[str, int, int]:
    """(text, targets, those of them that lack something) for all kernels in the `.cu` files below a folder.

    A target that lacks a value stands there as a comment, which says what it lacks.

    Raises:
        MemsimError: there is no kernel.
    """
    found = [
        (path.relative_to(folder).as_posix(), offer)
        for path in sorted(folder.rglob(f"*{SUFFIX}"))
        for offer in offers(read_text(path))
    ]
    if not found:
        raise MemsimError(
            f"there is no kernel in any {SUFFIX} file here",
            file=str(folder),
            hint="name the folder of your kernels: memsim init FOLDER",
        )
    entries = [_entry(file, offer) for file, offer in found]
    lacking = sum(bool(offer.asked) for _, offer in found)
    return "\n".join([HEAD, *entries]), len(entries), lacking


def _entry(file: str, offer: Offer) -> str:
    lines = ["[[targets]]", f"file = {json.dumps(file)}", *_keys(offer)]
    if not offer.asked:
        return "\n".join(lines) + "\n"
    lacks = f"# Say the value of {', '.join(offer.asked)}, and take the # away:"
    return "\n".join([lacks, *(f"# {line}" for line in lines)]) + "\n"


def _keys(offer: Offer) -> Iterator[str]:
    said: dict[str, Any] = {"args": []}
    for option, value in pairwise(offer.command):
        if option == "--arg":
            said["args"].append(value)
        elif option in ("--grid", "--block"):
            said[option[2:]] = [_number(part) for part in value.split(",")]
        elif option == "--shared-bytes":
            said["shared_bytes"] = _number(value)
        elif option == "--kernel":
            said["kernel"] = value
    for key in ("kernel", "grid", "block", "shared_bytes", "args"):
        if key in said:
            yield f"{key} = {json.dumps(said[key])}"


def _number(text: str) -> int | str:
    return int(text) if text.isdecimal() else text
