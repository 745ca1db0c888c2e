"""The bank heatmap of one kernel or of two as an HTML page."""

from __future__ import annotations

from collections.abc import Sequence

from memsim.analysis import Analysis
from memsim.views.heatmap import heat_rows
from memsim.views.pages import environment


def heatmap_page(analyses: Sequence[Analysis]) -> str:
    """The heatmap of each analysis, side by side, as one page.

    Raises:
        MemsimError: none of the kernels touches shared memory.
    """
    panels = heat_rows.heat_panels(analyses)
    template = environment(heat=heat_rows).get_template("heatmap.html")
    return template.render(panels=list(zip(analyses, panels)), scales=heat_rows.scales(panels))
