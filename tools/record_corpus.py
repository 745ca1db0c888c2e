"""Compiles the kernels of tests/captured/corpus: `python tools/record_corpus.py warp`, or `cute`.

To be run where the package is installed (`warp-lang`, `nvidia-cutlass-dsl`); no GPU is needed. Writes
tests/captured/corpus/PACKAGE.tar.xz with a folder for each launch, as `memsim capture` writes it.
"""

from __future__ import annotations

import argparse
import io
import sys
import tarfile
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

CORPUS = Path(__file__).resolve().parents[1] / "tests" / "captured" / "corpus"
sys.path[:0] = [str(CORPUS.parents[2]), str(CORPUS)]

import memsim  # noqa: E402
from memsim.captured.saved_launch import write_launch  # noqa: E402


def main() -> None:
    """Captures the launches of one package, and writes its archive."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("package", choices=("warp", "cute"))
    package = reader.parse_args().package
    kernels = import_module(f"{package}_kernels")
    with memsim.capture("sm_90") as launches:
        kernels.launch_all()
    with TemporaryDirectory() as folder:
        for place, launched in enumerate(launches):
            write_launch(launched, Path(folder, f"{place}_{launched.kernel.called}"))
        pack(Path(folder), CORPUS / f"{package}.tar.xz")


def pack(folder: Path, archive: Path) -> None:
    """The files of a folder, the same bytes each time."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:xz", preset=9) as tar:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(file.relative_to(folder).as_posix())
            entry.size = file.stat().st_size
            with file.open("rb") as content:
                tar.addfile(entry, content)
    archive.write_bytes(made.getvalue())
    print(f"{archive.name}: {archive.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
