"""Writes the project's public address into a checkout that is to be published.

`python tools/set_address.py https://github.com/OWNER/memsim v1.2.3` makes the relative links and pictures
of README.md absolute, has its reader install the package from PyPI, and gives pyproject.toml its
`[project.urls]`. The release's workflow runs it before it builds. In the repository links stay relative: they
work in every copy of it.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[1]
FROM_CHECKOUT, FROM_PYPI = "pip install .\n", "pip install memsim\n"


def main() -> None:
    """Rewrites README.md and pyproject.toml of this checkout."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("address", help="the repository's, such as https://github.com/OWNER/memsim")
    reader.add_argument("tag", help="the release's, such as v1.2.3")
    asked = reader.parse_args()
    readme, settings = ROOT / "README.md", ROOT / "pyproject.toml"
    new = published_readme(readme.read_text("utf-8"), asked.address, asked.tag)
    with_urls = settings.read_text("utf-8") + "\n" + urls(asked.address, asked.tag)
    readme.write_text(new, "utf-8")
    settings.write_text(with_urls, "utf-8")


def published_readme(text: str, address: str, tag: str) -> str:
    """The README as PyPI shows it: links lead to the release's files, the first command takes the package.

    Raises:
        ValueError: nothing in it is installed from the checkout.
    """
    if FROM_CHECKOUT not in text:
        raise ValueError(f"README.md has no line {FROM_CHECKOUT!r}")
    for kind, target in set(links(text)):
        if not urlsplit(target).scheme and not target.startswith("#"):
            # raw/: the file itself, which a page elsewhere can show.
            absolute = f"{address}/{'raw' if kind == 'image' else 'blob'}/{tag}/{target}"
            text = text.replace(f"]({target})", f"]({absolute})")
    return text.replace(FROM_CHECKOUT, FROM_PYPI)


def links(text: str) -> Iterator[tuple[str, str]]:
    """('link' or 'image', target) of a Markdown text; what looks like one in a block of code is none."""
    for block in MarkdownIt().parse(text):
        for token in block.children or []:
            if token.type in ("link_open", "image"):
                kind = token.type.removesuffix("_open")
                yield kind, str(token.attrs["href" if kind == "link" else "src"])


def urls(address: str, tag: str) -> str:
    """`[project.urls]`, by the names that PyPI gives icons to."""
    if not re.fullmatch(r"https://[\w.-]+/[\w.-]+/[\w.-]+", address):
        raise ValueError(f"{address} is no repository's address such as https://github.com/OWNER/memsim")
    return f"""[project.urls]
Source = "{address}"
Documentation = "{address}/blob/{tag}/docs/index.md"
Changelog = "{address}/blob/{tag}/CHANGELOG.md"
Issues = "{address}/issues"
"""


if __name__ == "__main__":
    main()
