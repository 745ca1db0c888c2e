"""What `--json` prints is what its schema says."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given

from docs.schemas import schema_of
from memsim.analysis import SiteCounts, analyze_trace
from memsim.analysis.analysis import AnalysisDocument
from memsim.model.operations import OPERATIONS
from memsim.trace.trace import Trace
from tests.schema import validate
from tests.traces import LANES, Request, make_trace, site, traces

SCHEMA: dict[str, Any] = schema_of(AnalysisDocument, "analysis", "memsim analyze")


def document() -> dict[str, Any]:
    unknown = site(line=4, unresolved="it depends on a call")
    trace = make_trace((site(), [Request(LANES * 8)]), (unknown, []), notes=("local memory (1 access)",))
    document: dict[str, Any] = json.loads(json.dumps(analyze_trace(trace).to_dict()))
    return document


def test_the_document_is_the_analysis() -> None:
    made = document()
    assert made["schema"] == 1
    assert made["launch"] == {
        "grid": [2, 1, 1], "block": [32, 1, 1], "shared_bytes": 0, "blocks": 2, "blocks_replayed": 2,
    }  # fmt: skip
    assert [row["wavefronts"] for row in made["sites"]] == [2, None]
    assert made["totals"]["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] is None
    assert made["totals"]["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"] == 0
    assert made["notes"] == ["local memory (1 access)"]


@given(trace=traces())
def test_every_analysis_fits_the_schema(trace: Trace) -> None:
    analysis = analyze_trace(trace)
    made = json.loads(json.dumps(analysis.to_dict()))
    validate(made, SCHEMA)
    assert made == analysis.to_dict()


def test_the_schema_names_every_operation() -> None:
    named = SCHEMA["$defs"]["SiteRow"]["properties"]["op"]["enum"]
    assert {name for _, name in OPERATIONS} <= set(named) and len(set(named)) == len(named)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d.update(schema=2),
        lambda d: d.pop("verdict"),
        lambda d: d.update(verdict="two\nlines"),
        lambda d: d["launch"].update(grid=[1, 1]),
        lambda d: d["sites"][0].update(wavefronts=1.5),
        lambda d: d["sites"][0].update(instructions=None),
        lambda d: d["sites"][0].update(op="read"),
        lambda d: d["sites"][0].pop("max_ways"),
        lambda d: d["sites"][0].update(more=1),
        lambda d: d["totals"].update(metric="1"),
    ],
)
def test_the_schema_refuses_other_documents(spoil: Any) -> None:
    made = document()
    validate(made, SCHEMA)
    spoil(made)
    with pytest.raises(jsonschema.ValidationError):
        validate(made, SCHEMA)


def test_the_schema_names_every_field_of_a_row() -> None:
    fields = [field.name for field in dataclasses.fields(SiteCounts)]
    assert sorted(SCHEMA["$defs"]["SiteRow"]["required"]) == sorted(fields)
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
