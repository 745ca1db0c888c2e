"""`launch.json` names files; all of them lie in its own folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsim.compile.cuda_source import compile_cubin
from tests.security.conftest import SECRET, Place, Run

SOURCE = '\n\nextern "C" __global__ void k(float *o) {\n    o[threadIdx.x] = 1;\n}\n'
ARRAY = {"kind": "array", "name": "o", "dtype": "float32", "shape": [32]}
LAUNCH = {"version": 1, "kernel": "k", "code": "code/k.cubin", "grid": [1, 1, 1], "block": [32, 1, 1]}


@pytest.fixture
def launch(place: Place) -> Path:
    """The folder of a launch in the project; its code is in a folder there."""
    folder = place.project / "run"
    (folder / "code").mkdir(parents=True)
    (folder / "code" / "k.cubin").write_bytes(compile_cubin(SOURCE).cubin)
    (folder / "k.cu").write_text(SOURCE)
    write(folder)
    return folder


def write(folder: Path, **changes: Any) -> None:
    """The document, with these changes."""
    document = {"called": "", "made_by": "", "arguments": [ARRAY], "sources": ["k.cu"]}
    (folder / "launch.json").write_text(json.dumps({**document, **LAUNCH, **changes}))


def test_files_of_its_folder_are_read(memsim: Run, launch: Path) -> None:
    """Also of folders in it."""
    assert memsim("analyze run/launch.json --json").document()["kernel"] == "k"


@pytest.mark.some(5)
@pytest.mark.parametrize("key", ["sources", "code", "ptx", "values"])
@pytest.mark.parametrize("how", ["absolute", "above", "link"])
def test_files_elsewhere_are_refused(memsim: Run, place: Place, launch: Path, key: str, how: str) -> None:
    """Neither by an absolute name, nor by `..`, nor by a link; nothing is copied to another folder."""
    (launch / "link").symlink_to(place.secret)
    name = {"absolute": str(place.secret), "above": "../shown.txt", "link": "link"}[how]
    changed = {"sources": [name]} if key == "sources" else {key: name}
    write(launch, **({"arguments": [{**ARRAY, "values": name}]} if key == "values" else changed))
    memsim("analyze run/launch.json --save-launch copy").refused(f"{name} is not a file in its folder")
    assert not Path("copy").exists()


@pytest.mark.parametrize("dtype", ["object", "O", "f4,O", "f4,,f4"])
def test_bytes_of_a_file_are_no_objects(memsim: Run, launch: Path, dtype: str) -> None:
    """Python would follow the addresses that the file has."""
    np.save(launch / "array.npy", np.full(64, 0x41414141, np.uint32))
    array = {**ARRAY, "values": "array.npy"}
    write(launch, arguments=[array])
    assert memsim("analyze run/launch.json --json").document()["kernel"] == "k"
    objects = {"kind": "struct", "name": "o", "parts": [{**array, "dtype": dtype}]}
    write(launch, arguments=[{"kind": "struct", "name": "o", "parts": [objects]}])
    memsim("analyze run/launch.json").refused(f"there is no type '{dtype}'")


@pytest.mark.slow
def test_its_machine_code_opens_nothing_else(memsim: Run, place: Place, launch: Path) -> None:
    """The line table of a launch's code is one of others, too."""
    for named in (place.secret, place.inside):
        text = SOURCE.replace("    o", f'#line 1 "{named}"\n    o')
        (launch / "code" / "k.cubin").write_bytes(compile_cubin(text).cubin)
        write(launch, sources=[])
        shown = memsim("analyze run/launch.json --json").document()["sites"][0]
        assert shown["source"] == (SECRET if named == place.inside else "")
