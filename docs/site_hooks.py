"""What mkdocs adds to the site: the playground, a page that needs no server.

Where `python docs/playground.py` has fetched Python for the browser, it is added, too, and the page answers
everything; else it has the answers of its examples.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parents[1]))

from docs.gallery import static_page
from memsim.play.server import HERE

FILES = Path(__file__).parents[1] / "build" / "playground"
WORKER = HERE / "worker.js"


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Adds `gallery.html`, and what it loads."""
    loaded = sorted(FILES.iterdir()) if FILES.is_dir() else []
    worker = f"{FILES.name}/worker.js" if loaded else None
    files.append(File.generated(config, "gallery.html", content=static_page(worker)))
    for path in [*loaded, *([WORKER] if loaded else [])]:
        files.append(File.generated(config, f"{FILES.name}/{path.name}", abs_src_path=str(path)))
    return files
