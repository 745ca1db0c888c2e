"""Templates of the HTML pages: where they are, and the names that all of them may use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from memsim.views.analyze.limits import limited
from memsim.views.colours import colour_of_bank, colour_of_count, colour_of_trouble, ink_on
from memsim.views.labels import access, count, dim3, number, ranges

if TYPE_CHECKING:
    from jinja2 import Environment

VIEWS = Path(__file__).parent
FOLDERS = [VIEWS / "templates", VIEWS / "heatmap" / "templates", VIEWS / "report" / "templates"]


def environment(**names: Any) -> Environment:
    """Jinja's environment; `names` are what else the templates may call, to choose words and colours."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(FOLDERS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {
        **{
            "access": access,
            "count": count,
            "dim3": dim3,
            "limited": limited,
            "number": number,
            "ranges": ranges,
            "zip": zip,
        },
        **{"colour_of_count": colour_of_count, "colour_of_trouble": colour_of_trouble},
        **{"colour_of_bank": colour_of_bank, "ink_on": ink_on},
        **names,
    }
    return made
