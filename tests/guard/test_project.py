"""The configuration: each mistake has its place, and a right twin beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from memsim.api.kernel_file import KernelFile
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.kernels import catalog
from memsim.launch import Launch
from memsim.targets.project import find_project, read_project
from tests.guard.conftest import TARGET, TILE, Folder

KERNEL = '[[targets]]\nkernel = "kernel_v4"\n'


def test_targets_and_budgets(folder: Folder) -> None:
    folder.write("src/tile.cu", TILE)
    path = folder.write(
        "memsim.toml",
        """\
budgets = ["excess < 40%"]
accept = ["sites(array=index)"]
baseline = "ci/baseline.toml"

[[targets]]
kernel = "transpose_*"
size = "64,64"

[[targets]]
file = "src/tile.cu"
name = "small"
grid = [2, 3]
block = 32
args = ["f32[1024]", "@a.npy", 32, 1.5]
options = ["-DPAD=1"]
shared_bytes = 64
blocks = 2
max_steps = 1000000
budgets = ["ways <= 1", "sectors <= ideal"]
""",
    )
    project = read_project(path)
    names = [name for name in catalog() if name.startswith("transpose_")]
    assert [target.name for target in project.targets] == [*(f"{name}@64,64" for name in names), "small"]
    assert project.targets[0] == replace(catalog()[names[0]].job("64,64"), name=f"{names[0]}@64,64")
    assert project.targets[-1] == Job(
        KernelFile(folder.path, "src/tile.cu", options=("-DPAD=1",)),
        Launch((2, 3, 1), (32, 1, 1), 64),
        args=("f32[1024]", "@a.npy", "32", "1.5"),
        blocks=2,
        max_steps=1_000_000,
        name="small",
    )
    assert [(rule.what.text, len(rule.kernels), rule.general) for rule in project.rules] == [
        ("ways <= 1", 1, False), ("sectors <= ideal", 1, False), ("excess < 40%", len(names) + 1, True),
    ]  # fmt: skip
    assert project.baseline == folder.path / "ci" / "baseline.toml"
    assert [a.what.text for a in project.acceptances] == ["sites(array=index)"]


def test_what_has_no_budget_is_held_to_the_baseline(folder: Folder) -> None:
    path = folder.write(
        "memsim.toml", KERNEL + '[[targets]]\nkernel = "kernel_v5"\nbudgets = ["ways <= 1"]\n'
    )
    rules = {rule.what.text: list(rule.kernels) for rule in read_project(path).rules}
    assert rules == {"ways <= 1": ["kernel_v5"], "baseline": ["kernel_v4"]}


def test_a_kernel_may_be_named_twice_for_more_budgets(folder: Folder) -> None:
    more = '[[targets]]\nkernel = "kernel_v*"\nbudgets = ["excess < 99%"]\n'
    project = read_project(folder.write("memsim.toml", KERNEL + more))
    assert [target.name for target in project.targets].count("kernel_v4") == 1


def test_pyproject_has_the_same_keys(folder: Folder) -> None:
    path = folder.write("pyproject.toml", '[tool.memsim]\n[[tool.memsim.targets]]\nkernel = "kernel_v4"\n')
    assert find_project(folder.path) == path
    assert read_project(path).targets == (catalog()["kernel_v4"].job(),)


def test_the_nearest_configuration_holds(folder: Folder) -> None:
    outer = folder.write("memsim.toml", KERNEL)
    inside = folder.path / "a" / "b"
    inside.mkdir(parents=True)
    folder.write("a/pyproject.toml", "[tool.other]\n")
    assert find_project(inside) == outer
    inner = folder.write("a/b/pyproject.toml", "[tool.memsim]\n")
    assert find_project(inside) == inner


def test_two_configurations_are_one_too_many(folder: Folder) -> None:
    folder.write("memsim.toml", KERNEL)
    folder.write("pyproject.toml", "[tool.memsim]\n")
    with pytest.raises(MemsimError, match="two configurations"):
        find_project(folder.path)
    folder.write("pyproject.toml", "[tool.black]\n")
    assert find_project(folder.path).name == "memsim.toml"


@pytest.mark.parametrize(
    ("wrong", "message", "right"),
    [
        ("", "no targets", KERNEL),
        ("targets = []\n", "no targets", KERNEL),
        ("targets = 3\n", "targets: Expected `array`, got `int`", KERNEL),
        ("targets = [3]\n", "targets[0]: Expected `object`, got `int`", KERNEL),
        ("[[target]]\n", "unknown key 'target'", KERNEL),
        ("[[targets]]\n", "neither kernel nor file", KERNEL),
        ('[[targets]]\nkernel = "kernel_v44"\n', "no kernel of the catalogue is called", KERNEL),
        ('[[targets]]\nkernel = "nothing_*"\n', "no kernel of the catalogue is called", KERNEL),
        ("[[targets]]\nkernel = 4\n", "kernel: Expected `str`, got `int`", KERNEL),
        (KERNEL + "grid = 8\n", "unknown key 'grid'", TARGET),
        (KERNEL + "blocks = 0\n", "blocks must be an integer of at least 1", KERNEL + "blocks = 1\n"),
        (KERNEL + "blocks = true\n", "blocks must be an integer", KERNEL + "blocks = 2\n"),
        (KERNEL + 'budgets = "ways <= 1"\n', "budgets: Expected", KERNEL + 'budgets = ["ways <= 1"]\n'),
        (KERNEL + "budgets = [1]\n", "budgets[0]: Expected `str`", KERNEL + 'budgets = ["ways <= 1"]\n'),
        ('[[targets]]\nkernel = "kernel_v*"\nname = "x"\n', "the name is for", KERNEL + 'name = "x"\n'),
        (KERNEL + '[[targets]]\nkernel = "kernel_v4"\nblocks = 1\n', "another target 'kernel_v4'",
         KERNEL + '[[targets]]\nkernel = "kernel_v4"\nblocks = 1\nname = "part"\n'),
        (TARGET.replace("tile.cu", "no.cu"), "there is no file no.cu", TARGET),
        (TARGET.replace("tile.cu", f"{'n' * 5000}.cu"), "there is no file nnn", TARGET),
        (TARGET.replace("grid = 1", "grid = 0"), "grid must be one to three", TARGET),
        (TARGET.replace("grid = 1", ""), "needs grid", TARGET),
        (TARGET.replace("[32, 32]", "[1, 1, 1, 1]"), "block must be one to three", TARGET),
        (TARGET.replace(", 32]\no", ", true]\no"), "args[2]: Expected `int | float | str`", TARGET),
        (TARGET + "size = '1'\n", "unknown key 'size'", TARGET),
        (TARGET + "compiler = 'gcc'\n", "compiler: Invalid enum value 'gcc'", TARGET + "compiler = 'nvcc'\n"),
        (KERNEL + 'name = "a\\nb"\n', "the invisible character U+000A", KERNEL + 'name = "a b"\n'),
        (KERNEL + 'name = "a\\u001b[2J"\n', "invisible character U+001B", KERNEL + 'name = "a[2J"\n'),
        (KERNEL + 'name = "\\u202ea"\n', "invisible character U+202E", KERNEL + 'name = "ä"\n'),
        (KERNEL + 'name = " "\n', "the name is empty", KERNEL + 'name = "a"\n'),
        (KERNEL + 'name = ""\n', "the name is empty", KERNEL + 'name = "_"\n'),
    ],
)  # fmt: skip
def test_a_mistake_and_its_right_twin(folder: Folder, wrong: str, message: str, right: str) -> None:
    folder.write("tile.cu", TILE)
    with pytest.raises(MemsimError) as caught:
        read_project(folder.write("memsim.toml", wrong))
    assert message in caught.value.message
    assert caught.value.file == str(folder.path / "memsim.toml")
    assert caught.value.exit_code == 2
    assert read_project(folder.write("memsim.toml", right)).targets


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('budgets = ["ways <= 1", "way <= 1"]\n' + KERNEL, 1, 26),
        (KERNEL + "budgets = [\n  'sites(stor).ways <= 1',\n]\n", 4, 10),
        (KERNEL + 'accept = ["index"]\n', 3, 12),
        ('[[targets]]\nkernel = "kernel_v44"\n', 2, 11),
        ("[[targets]\n", 1, 10),
    ],
)
def test_a_mistake_has_line_and_column(folder: Folder, text: str, line: int, column: int) -> None:
    with pytest.raises(MemsimError) as caught:
        read_project(folder.write("memsim.toml", text))
    assert (caught.value.line, caught.value.column) == (line, column)
    assert caught.value.source == text.splitlines()[line - 1]


def test_a_text_with_escapes_has_its_own_column(folder: Folder) -> None:
    with pytest.raises(MemsimError) as caught:
        read_project(folder.write("memsim.toml", KERNEL + 'budgets = ["sites(code=\\"x\\").way <= 1"]\n'))
    assert (caught.value.line, caught.value.column) == (None, 17)
    assert caught.value.source == 'sites(code="x").way <= 1'


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.write_bytes(b"\xff"), Path.mkdir])
def test_a_file_that_cannot_be_read(folder: Folder, make: Callable[[Path], object]) -> None:
    path = folder.path / "memsim.toml"
    make(path)
    with pytest.raises(MemsimError) as caught:
        read_project(path)
    assert caught.value.file == str(path)


def test_which_targets_are_meant(folder: Folder) -> None:
    project = read_project(folder.write("memsim.toml", '[[targets]]\nkernel = "kernel_v4*"\n'))
    assert [target.name for target in project.chosen(["*_padded"])] == ["kernel_v4_padded"]
    assert project.chosen([]) == project.targets
    with pytest.raises(MemsimError, match="no target is called 'kernel_v5'"):
        project.chosen(["kernel_v4", "kernel_v5"])
