"""HTML pages: the whole report, a heatmap of its own, and what a notebook shows.

A page needs nothing else: no network, no fonts, no libraries.
"""

from memsim.views.report.page import Recorded, fragment, heatmap_page, report_page

__all__ = ["Recorded", "fragment", "heatmap_page", "report_page"]
