"""Replaces attributes of the packages whose launches are captured, for as long as a capture lasts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from inspect import getattr_static
from typing import Any


@contextmanager
def replaced_attributes(*changes: tuple[Any, Mapping[str, Any]]) -> Iterator[None]:
    """Within the context, each of these modules, classes and objects has these attributes."""
    before = [(owner, name, getattr_static(owner, name)) for owner, names in changes for name in names]
    try:
        for owner, attributes in changes:
            for name, value in attributes.items():
                setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)
