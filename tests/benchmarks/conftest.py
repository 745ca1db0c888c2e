"""What every measurement needs."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes keep bytecode, as wherever pip installs a package."""
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
