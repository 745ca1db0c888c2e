"""An analysis as JSON, as `analysis.schema.json` beside this file describes it.

It holds no addresses; `memsim analyze --save-trace` keeps those.
"""

from __future__ import annotations

import json

from memsim.analysis import Analysis


def render(analysis: Analysis, *, sass: bool = False) -> str:
    """`analysis.to_dict(sass=sass)` as indented JSON, without a newline at the end."""
    return json.dumps(analysis.to_dict(sass=sass), indent=2)
