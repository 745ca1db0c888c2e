"""Types of the fields of recordings, by which `recording_files.check_record` validates files."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Text = Annotated[str, Meta(min_length=1)]
Natural = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Chip = Annotated[str, Meta(pattern=r"^sm_\d+[a-z]?$")]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Date = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", description="UTC")]
Dim3 = tuple[Positive, Positive, Positive]
