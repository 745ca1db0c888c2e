"""The report as an HTML page, and what a notebook shows of an analysis.

A page needs nothing else: no network, no fonts, no libraries.
"""

from memsim.views.report.page import Recorded, flow_fragment, fragment, layout_fragment, report_page

__all__ = ["Recorded", "flow_fragment", "fragment", "layout_fragment", "report_page"]
