"""Pages: the whole report, a heatmap of its own, and what a notebook shows.

In: an `Analysis`. Out: HTML text that needs nothing else: no network, no fonts, no libraries. Left out on
purpose: writing files, and finding recordings to compare with.
"""

from memsim.views.report.page import Recorded, fragment, heatmap_page, report_page

__all__ = ["Recorded", "fragment", "heatmap_page", "report_page"]
