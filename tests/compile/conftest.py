"""What tests of compilers share."""

from __future__ import annotations

import pytest


@pytest.fixture
def no_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memsim.compile.build.find_nvcc", lambda: None)
