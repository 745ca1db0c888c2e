"""What tests of compilers share."""

from __future__ import annotations

import pytest


@pytest.fixture
def no_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memsim.compile.cuda_source.find_nvcc", lambda: None)
