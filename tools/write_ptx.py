"""Writes the PTX that ships: `python tools/write_ptx.py`, after a kernel has changed.

Needs the NVRTC release that pyproject.toml pins: another one writes other text, and a test compares.
"""

from __future__ import annotations

from memsim.kernels import compiled


def main() -> None:
    """One file for each kernel of the catalogue, and no others."""
    specs = compiled().values()
    written = {spec.ptx_path for spec in specs}
    for spec in specs:
        spec.ptx_path.write_text(spec.compile(), encoding="utf-8", newline="\n")
    for stale in {old for path in written for old in path.parent.glob("*.ptx")} - written:
        stale.unlink()
    print(f"{len(written)} files written")


if __name__ == "__main__":
    main()
