"""The schemas of what `--json` prints, as they ship in `memsim/schemas/`, and that of a `launch.json`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from inspect import cleandoc
from operator import or_
from pathlib import Path
from typing import Any

import msgspec

from memsim.analysis.analysis import AnalysisDocument
from memsim.argument_types.argument import KINDS
from memsim.captured.saved_launch import LaunchDocument
from memsim.captured.script_table import ScriptDocument
from memsim.doctor import DoctorDocument
from memsim.document import WrittenDocument
from memsim.driver.launch_table import LaunchesDocument
from memsim.suggest.suggestions_document import SuggestionsDocument
from memsim.sweep.every_value import EveryValueDocument
from memsim.sweep.results_shown import SweepDocument
from memsim.targets.offers import KernelsDocument
from memsim.validate.by_instruction import ValidationDocument
from memsim.views.bound_text import BoundDocument
from memsim.views.check.check_formats import CheckDocument
from memsim.views.compare_text import ComparisonDocument
from memsim.views.explain.request_text import RequestDocument
from memsim.views.heatmap.heat_rows import HeatmapDocument
from memsim.views.sanitize_text import SanitizeDocument, SanitizeLaunchesDocument
from memsim.views.time_text import TimeDocument

FOLDER = Path(__file__).parents[1] / "memsim" / "schemas"
DOCUMENTS: dict[str, tuple[type[msgspec.Struct], str]] = {
    "analysis": (AnalysisDocument, "memsim analyze"),
    "bound": (BoundDocument, "memsim bound"),
    "check": (CheckDocument, "memsim check"),
    "comparison": (ComparisonDocument, "memsim compare"),
    "doctor": (DoctorDocument, "memsim doctor"),
    "heatmap": (HeatmapDocument, "memsim heatmap"),
    "kernels": (KernelsDocument, "memsim list; memsim analyze of a file alone"),
    "launches": (LaunchesDocument, "memsim exec --json"),
    "prove": (EveryValueDocument, "memsim prove"),
    "request": (RequestDocument, "memsim explain"),
    "sanitize": (SanitizeDocument, "memsim sanitize of a launch"),
    "sanitize_launches": (SanitizeLaunchesDocument, "memsim sanitize of several launches or targets"),
    "suggestions": (SuggestionsDocument, "memsim suggest"),
    "script": (ScriptDocument, "memsim capture"),
    "sweep": (SweepDocument, "memsim sweep"),
    "time": (TimeDocument, "memsim time"),
    "validation": (ValidationDocument, "memsim validate; of --all, one in the list"),
    "written": (WrittenDocument, "memsim init, baseline, report and probe"),
}


def schema_of(document: type[msgspec.Struct], name: str, title: str) -> dict[str, Any]:
    """A document as a JSON schema: each field is there, and no other."""

    def of_fraction(kind: type) -> dict[str, Any]:
        if kind is Fraction:
            return {"type": "number"}
        raise NotImplementedError  # msgspec then says which type it is

    (whole,), parts = _components([document], of_fraction)
    for part in parts.values():
        if "properties" in part:
            fields = part["properties"].items()
            part["required"] = [field for field, how in fields if not how.pop("left_out", False)]
            part["additionalProperties"] = False
            for _, how in fields:
                how.pop("default", None)
    top = parts.pop(whole["$ref"].rpartition("/")[2])
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:memsim:schema:{name}:1"}
    return {**head, **top, "title": f"{title}, schema 1", "$defs": parts}


def launch_schema() -> dict[str, Any]:
    """That of a `launch.json`."""
    arguments = reduce(or_, (kind.Document for kind in KINDS.values()))
    (whole, argument), parts = _components([LaunchDocument, arguments])
    parts["LaunchDocument"]["properties"]["arguments"]["items"] = argument
    parts["Struct"]["properties"]["parts"]["items"] = argument
    return {**whole, "$defs": parts}


def _components(
    types: Sequence[Any], hook: Callable[[type], dict[str, Any]] | None = None
) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    """The schemas of types, and the parts that they refer to."""
    wholes, parts = msgspec.json.schema_components(types, schema_hook=hook, ref_template="#/$defs/{name}")
    for part in parts.values():
        if "description" in part:  # msgspec does so itself since 0.23
            part["description"] = cleandoc(part["description"])
    return wholes, parts


def schema_texts() -> dict[Path, str]:
    """The text of each file: a line for each field and each part."""
    return {
        FOLDER / f"{name}.schema.json": f"{_text(schema_of(document, name, title))}\n"
        for name, (document, title) in DOCUMENTS.items()
    }


def _text(schema: dict[str, Any]) -> str:
    lines = []
    for key, value in schema.items():
        if isinstance(value, dict):
            inner = ",\n".join(f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in value.items())
            lines.append(f" {json.dumps(key)}: {{\n{inner}\n }}")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}"


def write_schemas() -> None:
    """Writes those that ship."""
    for path, text in schema_texts().items():
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    write_schemas()
