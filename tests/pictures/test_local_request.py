"""Requests to local memory taken apart, and in the reports that show every access."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.analysis import analyze_trace
from memsim.errors import MemsimError
from memsim.pictures.worst_request import GlobalRequest, take_apart
from memsim.views.check.findings import worst_request
from memsim.views.explain.sentences import line_name, sentences
from memsim.views.report import report_page
from tests.traces import LANES, Request, make_trace, site

ARRAY = (site(space="local", array="local memory", width=8), [Request(LANES % 2 * 8)])
SPILL = (site(space="local", op="store", line=2, array="spills"), [Request(LANES * 0 + 12)])
TABLE = (site(space="constant", line=4, array=""), [Request(LANES * 4)])


def test_words_of_the_lanes_lie_side_by_side() -> None:
    analysis = analyze_trace(make_trace(ARRAY, SPILL))
    request = take_apart(analysis, 1)
    assert isinstance(request, GlobalRequest)
    assert (request.sectors, request.ideal_sectors) == (16, 8)
    assert request.lines.tolist() == [0, 128, 256, 384] and request.touched.all()
    assert request.bytes_used == 32 * 8
    assert request.lanes_of_sector(0, 0) == request.lanes_of_sector(1, 0) == [0, 2, 4, 6]
    assert request.lanes_of_sector(3, 3) == [25, 27, 29, 31]
    assert [line_name(request, line) for line in (0, 3)] == ["local memory + 0 B", "local memory + 12 B"]
    told = " ".join(sentences(request))
    assert (
        "interleaves the 4-byte words" in told
        and "With the same index in all lanes, 8 sectors would be enough." in told
    )
    assert worst_request(analysis, analysis.sites[1]).endswith("access 16 sectors instead of 8")
    spill = take_apart(analysis, 0)
    assert isinstance(spill, GlobalRequest) and sentences(spill)[0].startswith("Coalesced: 4 sectors")
    assert np.array_equal(spill.addresses, 3 * 128 + 4 * LANES)


def test_constants_are_not_taken_apart() -> None:
    analysis = analyze_trace(make_trace(TABLE))
    assert analysis.sites[0].requests == 32 and worst_request(analysis, analysis.sites[0]) == ""
    with pytest.raises(MemsimError, match="one request for each different address"):
        take_apart(analysis, 0)


def test_the_page_has_them_all() -> None:
    page = report_page(analyze_trace(make_trace(ARRAY, SPILL, TABLE)))
    for text in ("spill store 4 B", "local load 8 B", "Constants at an index", "2x sectors", "32 requests"):
        assert text in page
