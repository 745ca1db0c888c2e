"""Drafts a `memsim.toml` from the CUDA files in a folder and the launches in them, and from saved launches.

A kernel whose source says all of its launch becomes a target, which follows that launch; another one a line
of the comment at the end.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from memsim.captured.saved_launch import LAUNCH, is_launch
from memsim.compile.cuda_source import read_launching_text
from memsim.compile.options import absolute_paths
from memsim.errors import MemsimError
from memsim.targets.offers import Offer, offers

SUFFIX = ".cu"
HEAD = """\
# What `memsim check` guards: each kernel below, as its source launches it or as it was captured, against
# the counts in memsim-baseline.toml.
# memsim baseline   writes that file
# memsim check      fails if an access costs more than before

budgets = ["baseline"]
"""
LACKING = """\
# The sources do not say everything about the launches of the kernels below. `memsim analyze FILE` shows
# what they do say. A target that adds the values:
#
#   [[targets]]
#   file = {file}
#   kernel = {kernel}
#   {values}
"""


def first_project(folder: Path, include: Sequence[str] = ()) -> tuple[str, int, int]:
    """(text, number of targets, number of other kernels) for all kernels in the `.cu` files below a folder,
    and all launches that were saved there.

    include: folders of headers, relative to the folder.

    Raises:
        MemsimError: there is no kernel.
    """
    options = absolute_paths([f"-I{one}" for one in include], folder)
    launches = [path for path in sorted(folder.rglob(LAUNCH)) if is_launch(path)]
    copies = {path.parent for path in launches}  # of the sources lie beside a launch
    found = [
        (path.relative_to(folder).as_posix(), offer)
        for path in sorted(folder.rglob(f"*{SUFFIX}"))
        if path.parent not in copies
        for offer in offers(read_launching_text(path, options))
    ]
    if not found and not launches:
        raise MemsimError(
            f"no {SUFFIX} file here contains a kernel, and no {LAUNCH} is a captured launch",
            file=str(folder),
            hint="pass the folder of your kernels: memsim init FOLDER",
        )
    names = Counter(_name(file, offer) for file, offer in found if not offer.asked)
    whole = [
        _target(file, offer, include, is_alone=names[_name(file, offer)] == 1)
        for file, offer in found
        if not offer.asked
    ]
    saved = [path.relative_to(folder) for path in launches]
    whole += [_table({"name": file.parent.as_posix(), "file": file.as_posix()}) for file in saved]
    lacking = [(file, offer) for file, offer in found if offer.asked]
    return "\n".join([HEAD, *whole, *_comment(lacking)]), len(whole), len(lacking)


def _name(file: str, offer: Offer) -> str:
    """What a target is called if it has no name of its own."""
    return Path(file).stem if offer.alone else offer.name


def _target(file: str, offer: Offer, include: Sequence[str], *, is_alone: bool) -> str:
    """A target; with a name of its own unless no other one is called as its kernel or file is."""
    path = Path(file).with_suffix("")
    said: dict[str, Any] = {}
    if not is_alone:
        said["name"] = (path if offer.alone else path / offer.name).as_posix()
    said["file"] = file
    if not offer.alone:
        said["kernel"] = offer.name
    if include:
        said["options"] = [f"-I{folder}" for folder in include]
    return _table(said)


def _table(said: Mapping[str, Any]) -> str:
    return "\n".join(["[[targets]]", *(f"{key} = {json.dumps(value)}" for key, value in said.items())]) + "\n"


def _comment(lacking: Sequence[tuple[str, Offer]]) -> Iterator[str]:
    """What the other kernels need, a line each, below their file."""
    if not lacking:
        return
    file, first = next((one for one in lacking if one[1].launch is not None), lacking[0])
    yield LACKING.format(file=json.dumps(file), kernel=json.dumps(first.name), values=_values(first))
    for file, own in groupby(lacking, key=lambda one: one[0]):
        kernels = (f"#   {offer.name}: {', '.join(offer.asked)}" for _, offer in own)
        yield "\n".join([f"# {file}", *kernels, ""])


def _values(offer: Offer) -> str:
    """The keys that an incomplete target needs, in the form of TOML."""
    keys = [f"{key} = [...]" for key, word in offer.shape.items() if word.by_hand]
    if not offer.is_by_name:
        keys.append(f"args = {json.dumps([word.text for word in offer.arguments])}")
    else:
        keys.append(f"let = {{ {', '.join(f'{name} = ...' for name in offer.names)} }}")
    return "\n#   ".join(keys)
