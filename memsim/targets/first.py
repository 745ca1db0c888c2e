"""Drafts a `memsim.toml` from the CUDA files in a folder and the launches in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memsim.errors import MemsimError
from memsim.files import read_text
from memsim.targets.offers import Offer, offers

SUFFIX = ".cu"
HEAD = """\
# What `memsim check` guards: each kernel below, against the counts in memsim-baseline.toml.
# memsim baseline   writes that file
# memsim check      fails if an access costs more than before

budgets = ["baseline"]
"""


def first_project(folder: Path) -> tuple[str, int, int]:
    """(text, number of targets, number of incomplete ones) for all kernels in the `.cu` files below a folder.

    An incomplete target is commented out, with what is missing.

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
            f"no {SUFFIX} file here contains a kernel",
            file=str(folder),
            hint="pass the folder of your kernels: memsim init FOLDER",
        )
    entries = [_entry(file, offer) for file, offer in found]
    lacking = sum(bool(offer.asked) for _, offer in found)
    return "\n".join([HEAD, *entries]), len(entries), lacking


def _entry(file: str, offer: Offer) -> str:
    lines = ["[[targets]]", f"file = {json.dumps(file)}", *_keys(offer)]
    if not offer.asked:
        return "\n".join(lines) + "\n"
    lacks = f"# Set {', '.join(offer.asked)} and uncomment:"
    return "\n".join([lacks, *(f"# {line}" for line in lines)]) + "\n"


def _keys(offer: Offer) -> Iterator[str]:
    said: dict[str, Any] = {} if offer.alone else {"kernel": offer.name}
    by_name = offer.launch is not None and bool(offer.asked)
    for key, word in offer.shape.items():
        if not by_name or word.by_hand:
            parts = [_number(part) for part in word.text.split(",")]
            said[key] = parts[0] if key == "shared_bytes" else parts
    if not by_name:
        said["args"] = [word.text for word in offer.arguments]
    for key, value in said.items():
        yield f"{key} = {json.dumps(value)}"
    if by_name:
        yield f"let = {{ {', '.join(f'{name} = ...' for name in offer.names)} }}"


def _number(text: str) -> int | str:
    return int(text) if text.isdecimal() else text
