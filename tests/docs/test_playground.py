"""The site's numpy for browsers is taken from another package only if it is the one that Pyodide lists."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from zipfile import ZipFile

import pytest

from docs import playground


def test_numpy_is_the_file_that_pyodide_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playground, "FILES", tmp_path)
    listed = {"file_name": "numpy-2.whl", "sha256": hashlib.sha256(b"numpy").hexdigest()}
    (tmp_path / "pyodide-lock.json").write_text(json.dumps({"packages": {"numpy": listed}}), "utf-8")
    for content in (b"numpy", b"another"):
        with ZipFile(tmp_path / "carrier.whl", "w") as made:
            made.writestr("assets/numpy-2.whl", content)
        if content == b"numpy":
            assert playground._numpy(tmp_path / "carrier.whl", tmp_path).read_bytes() == content
        else:
            with pytest.raises(SystemExit, match="not the file that Pyodide lists"):
                playground._numpy(tmp_path / "carrier.whl", tmp_path)
