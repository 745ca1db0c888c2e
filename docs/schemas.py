"""The schemas of what `--json` prints, as they ship in `memsim/schemas/`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from memsim.analysis.analysis import AnalysisDocument
from memsim.captured.script_table import ScriptDocument
from memsim.doctor import DoctorDocument
from memsim.document import WrittenDocument, schema_of
from memsim.driver.launch_table import LaunchesDocument
from memsim.suggest.suggestions_document import SuggestionsDocument
from memsim.sweep.every_value_shown import EveryValueDocument
from memsim.sweep.results_shown import SweepDocument
from memsim.targets.offers import KernelsDocument
from memsim.validate.by_instruction import ValidationDocument
from memsim.views.bound_text import BoundDocument
from memsim.views.check.json import CheckDocument
from memsim.views.compare_text import ComparisonDocument
from memsim.views.explain.json import RequestDocument
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
    "launches": (LaunchesDocument, "memsim exec -o"),
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
