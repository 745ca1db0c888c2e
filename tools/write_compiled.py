"""Writes the compiled kernels: `python tools/write_compiled.py`, after a kernel has changed.

Machine code with its listing, which ships, and PTX for the studies. Needs the NVRTC release that the extra
`shipped-test` pins (another one makes other code, and a test compares) and nvdisasm.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from dataclasses import asdict
from pathlib import Path

from memsim.compile.cuda_source import compile_cubin
from memsim.kernels import Spec, catalog
from memsim.kernels.shipped import Made, Shipped, digest
from memsim.sass.disassemble import disassemble
from studies.kernel_ptx import compile_ptx, ptx_path

DATE = (1980, 1, 1, 0, 0, 0)  # the earliest date of a zip file: equal contents make equal files


def main() -> None:
    """One PTX file and one zip file for each kernel of the catalogue, and no others."""
    specs = catalog().values()
    written = {path for spec in specs for path in (ptx_path(spec), spec.compiled_path)}
    for spec in specs:
        ptx = compile_ptx(spec)
        ptx_path(spec).write_text(ptx, encoding="utf-8", newline="\n")
        write_shipped(spec.compiled_path, machine_code(spec, ptx))
    for folder in {path.parent for path in written}:
        for stale in set(folder.iterdir()) - written:
            stale.unlink()
    print(f"{len(written)} files written")


def machine_code(spec: Spec, ptx: str) -> Shipped:
    """A kernel's machine code. It is compiled in a folder of its own: a cubin says where its source was."""
    folder = Path(
        tempfile.gettempdir(), "memsim", "kernels"
    )  # the same each time: the bytes say where it was
    folder.mkdir(parents=True)
    try:
        for path in (*spec.source.parent.glob("*.cu"), *spec.source.parent.glob("*.cuh")):
            shutil.copy(path, folder)
        name = f"kernels/{spec.source.name}"
        done = compile_cubin(folder / spec.source.name, spec.options, name=name)
        listing = disassemble(done.cubin).replace(folder.as_posix() + "/", "kernels/")
    finally:
        shutil.rmtree(folder.parent)
    made = Made(
        compiler=done.compiler,
        arch=done.arch,
        options=tuple(spec.options),
        sources={name: digest(text) for name, text in spec.source_texts().items()},
        ptx=digest(ptx),
    )
    return Shipped(done.cubin, listing, made)


def write_shipped(path: Path, shipped: Shipped) -> None:
    """Write the file; equal contents make equal bytes."""
    contents = {
        "kernel.cubin": shipped.cubin,
        "kernel.sass": shipped.listing.encode(),
        "made.json": json.dumps(asdict(shipped.made), indent=1, sort_keys=True).encode(),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name, content in contents.items():
            file.writestr(zipfile.ZipInfo(name, DATE), content, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main()
