"""The generated part of docs/suggest.md: what `memsim suggest` prints."""

from __future__ import annotations

from collections.abc import Callable

from docs.capture import capture

PARTS: dict[str, Callable[[], str]] = {
    "suggest transpose_naive": lambda: capture("memsim suggest transpose_naive"),
}
