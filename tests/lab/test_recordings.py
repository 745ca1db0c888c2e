"""Files of the laboratory's recordings."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from lab.recordings import write_arrays
from memsim.errors import MemsimError
from memsim.validate.device import Device

DEVICE = Device("NVIDIA H200", "9.0", "580.95", "13.0", "13.6")


def test_arrays_are_written_once_with_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / DEVICE.slug / "requests.npz"
    write_arrays({"rows": np.arange(3), "source": "text"}, path, DEVICE, base=64)
    with np.load(path, allow_pickle=False) as file:
        head = json.loads(str(file["head"]))
        assert (file["rows"].tolist(), str(file["source"])) == ([0, 1, 2], "text")
    assert (head["schema"], head["gpu"], head["driver"], head["base"]) == (1, "NVIDIA H200", "580.95", 64)
    before = path.read_bytes()
    with pytest.raises(MemsimError, match="never overwritten"):
        write_arrays({}, path, DEVICE)
    assert path.read_bytes() == before
