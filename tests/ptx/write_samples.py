"""Write `samples/`: the PTX that two compilers make of `cuda/*.cu`.

Run `python tests/ptx/write_samples.py` after a change of a source. NVRTC comes with memsim; nvcc has to be on
the PATH (13.0 wrote the files that are here). Both leave their version in the header of the PTX.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from memsim.compile.cuda_source import compile_cuda

HERE = Path(__file__).parent
_FOLDERS = re.compile(r'(\.file\s+\d+\s+")[^"]*/')


def main() -> None:
    """Compile every source with both compilers."""
    samples = HERE / "samples"
    for source in sorted((HERE / "cuda").glob("*.cu")):
        ptx = compile_cuda(source, name=source.name)
        _write(samples / f"{source.stem}.nvrtc.ptx", ptx)
        target = samples / f"{source.stem}.nvcc.ptx"
        command = ["nvcc", "-w", "-arch=compute_90", "-ptx", "-lineinfo", source.name, "-o", str(target)]
        subprocess.run(command, cwd=source.parent, check=True)
        _write(target, target.read_text(encoding="utf-8"))


def _write(target: Path, ptx: str) -> None:
    """The PTX, with files named without the folders of this machine."""
    target.write_text(_FOLDERS.sub(r"\1", ptx), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
