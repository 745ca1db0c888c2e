"""Files for the playground to work on the site alone: `python docs/playground.py`, then `mkdocs build`.

Python for a browser is npm's package `pyodide`; msgspec is on PyPI for it. numpy's developers publish no
such build, and Pyodide's is on its own server only; it is taken from a package of PyPI that carries a copy,
which must have the SHA-256 that Pyodide's own list of packages gives. 125 MB are loaded, of which 19 MB
become part of the site.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile

from memsim.analysis.verdict import PAGE
from memsim.data import data_folder

ROOT = Path(__file__).parents[1]
FILES = ROOT / "build" / "playground"
PYODIDE = "314.0.3"
MSGSPEC = "0.22.0"
CARRIES_NUMPY = "open-webui==0.12.4"  # the numpy of Pyodide 314.0.3
PLATFORM = ("--platform", "pyemscripten_2026_0_wasm32", "--python-version", "3.14", "--only-binary", ":all:")
OF_PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
#: What memsim imports for an answer or a report, in Python alone: as installed here.
PURE = ("jinja2", "markupsafe", "networkx")


def main() -> None:
    """Writes `FILES`."""
    FILES.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(["npm", "pack", "--silent", f"pyodide@{PYODIDE}"], cwd=folder, check=True)
        with tarfile.open(folder / f"pyodide-{PYODIDE}.tgz") as packed:
            for file in OF_PYODIDE:
                member = packed.extractfile(f"package/{file}")
                assert member is not None, file
                (FILES / file).write_bytes(member.read())
        numpy = _numpy(_downloaded(folder, CARRIES_NUMPY, "--ignore-requires-python"), folder)
        msgspec = _downloaded(folder, f"msgspec=={MSGSPEC}", *PLATFORM)
        with ZipFile(FILES / "packages.zip", "w", ZIP_DEFLATED, compresslevel=9) as made:
            for wheel in (numpy, msgspec):
                with ZipFile(wheel) as packed_wheel:
                    for entry in packed_wheel.namelist():
                        if "/tests/" not in entry:
                            made.writestr(entry, packed_wheel.read(entry))
            for name, file in _sources():
                made.write(file, name)


def _downloaded(folder: Path, package: str, *options: str) -> Path:
    """The wheel of a package, by pip."""
    into = folder / package.partition("=")[0]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(into)]
    subprocess.run([*command, *options, package], check=True)
    (wheel,) = into.glob("*.whl")
    return wheel


def _numpy(carrier: Path, folder: Path) -> Path:
    """numpy's wheel out of another one, if it is the one that Pyodide's list of packages names."""
    listed = json.loads((FILES / "pyodide-lock.json").read_text("utf-8"))["packages"]["numpy"]
    with ZipFile(carrier) as packed:
        (found,) = (name for name in packed.namelist() if name.endswith(listed["file_name"]))
        content = packed.read(found)
    if hashlib.sha256(content).hexdigest() != listed["sha256"]:
        raise SystemExit(f"{found} in {carrier.name} is not the file that Pyodide lists")
    wheel = folder / listed["file_name"]
    wheel.write_bytes(content)
    return wheel


def _sources() -> Iterator[tuple[str, Path]]:
    """The name of each file of memsim and of `PURE` in the archive, and where it lies."""
    for package in ("memsim", *PURE):
        spec = find_spec(package)
        assert spec is not None and spec.origin is not None, package
        folder = Path(spec.origin).parent
        for file in sorted(folder.rglob("*")):
            inside = file.relative_to(folder)
            wanted = file.is_file() and (package == "memsim" or file.suffix == ".py")
            if wanted and not {"__pycache__", "tests", "_data"} & set(inside.parts):
                yield f"{package}/{inside.as_posix()}", file
    yield f"memsim/_data/docs/{PAGE}", data_folder("docs") / PAGE


if __name__ == "__main__":
    main()
