"""What mkdocs adds to the site: the playground's gallery, a page that needs no server."""

from __future__ import annotations

import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parents[1]))

from memsim.play.gallery import static_page


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Adds `gallery.html`."""
    files.append(File.generated(config, "gallery.html", content=static_page()))
    return files
