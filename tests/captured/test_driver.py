"""What Triton's driver is replaced by, with a stand-in for Triton: with and without a driver below."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

import memsim
from memsim.argument_types import ArrayArg
from memsim.captured.launched import Launched
from memsim.captured.session import PACKAGES
from memsim.compile.cuda_source import compile_cubin
from memsim.errors import MemsimError

SOURCE = """
extern "C" __global__ void add(const float *x, float *out, int n, double scale, char *scratch, char *more) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] * (float)scale + (scratch ? scratch[i] : 0);
}"""
SIGNATURE = {"x": "*fp32", "out": "*fp32", "n": "i32", "scale": "fp64", "BLOCK": "constexpr"}


class OwnDriver:
    """As Triton's own driver, of a machine with a GPU."""

    def __init__(self) -> None:
        self.launches: list[tuple[Any, ...]] = []
        self.utils = SimpleNamespace(
            load_binary=lambda name, code, shared, device: ("module", 77, 16, 0, 1024),
            get_device_properties=lambda device: {"max_shared_mem": 232448},
            unload_module=lambda module: None,
        )

    def launcher_cls(self, source: Any, metadata: Any) -> Any:
        return lambda *call: self.launches.append(call)

    def get_current_device(self) -> int:
        return 3

    def get_current_stream(self, device: int) -> int:
        return 5


class Config:
    """As `triton.runtime.driver`."""

    def __init__(self, own: Any) -> None:
        self._active: Any = None
        self.own = own

    @property
    def active(self) -> Any:
        if self._active is None and self.own is None:
            raise RuntimeError("0 active drivers ([]). There should only be one.")
        return self._active or self.own

    def set_active(self, driver: Any) -> None:
        self._active = driver


class JITFunction:
    """As `triton.runtime.jit.JITFunction`, of one kernel that is compiled already."""

    code = b""
    metadata = SimpleNamespace()

    def run(self, *args: Any, grid: Any, warmup: bool) -> None:
        driver = sys.modules["triton"].runtime.driver.active
        device = driver.get_current_device()
        source = SimpleNamespace(
            signature=SIGNATURE, constants={(4,): 128}, fn=SimpleNamespace(arg_names=list(SIGNATURE))
        )
        launcher = driver.launcher_cls(source, self.metadata)
        _, function, *_ = driver.utils.load_binary("add", self.code, self.metadata.shared, device)
        stream = driver.get_current_stream(device)
        launcher(*grid, stream, function, (4, 1, 0), None, None, None, *args)


@pytest.fixture(params=[False, True], ids=["no driver", "a driver"])
def triton(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Any:
    own = OwnDriver() if request.param else None
    names = ("", ".runtime", ".runtime.jit", ".runtime.cache", ".backends", ".backends.compiler")
    made = {name: ModuleType(f"triton{name}") for name in names}
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, f"triton{name}", module)
        parent, _, last = name.rpartition(".")
        if name:
            setattr(made[parent], last, module)
    made[""].__version__ = "3.9.9"  # type: ignore[attr-defined]
    made[".runtime"].driver = Config(own)  # type: ignore[attr-defined]
    made[".runtime.jit"].JITFunction = JITFunction  # type: ignore[attr-defined]
    made[".backends.compiler"].GPUTarget = SimpleNamespace  # type: ignore[attr-defined]
    made[".runtime.cache"].get_cache_manager = lambda key: SimpleNamespace(get_file=lambda name: None)  # type: ignore[attr-defined]
    monkeypatch.setattr(JITFunction, "code", compile_cubin(SOURCE).cubin)
    monkeypatch.setattr(
        JITFunction,
        "metadata",
        SimpleNamespace(
            name="add", num_warps=4, num_ctas=1, num_stages=3, shared=0, hash="h", global_scratch_size=128
        ),
    )
    return SimpleNamespace(own=own, config=made[".runtime"].driver, function=JITFunction())  # type: ignore[attr-defined]


def test_a_launch_is_kept_and_made_where_there_is_a_driver(triton: Any) -> None:
    x, out = np.arange(256, dtype=np.float32), ArrayArg((256,))
    with memsim.capture() as launches:
        triton.function.run(x, out, 250, 0.5, 128, grid=(2, 1, 1), warmup=False)
    (launch,) = launches
    assert isinstance(launch, Launched)
    assert launch.kernel.argument_names == ("x", "out", "n", "scale", "global_scratch", "profile_scratch")
    assert (launch.grid, launch.block) == ((2, 1, 1), (128, 1, 1))
    assert launch.note == "BLOCK=128, num_warps=4, num_stages=3"
    assert [type(value) for value in launch.args[2:4]] == [np.int32, np.float64]
    assert launch.args[4] == ArrayArg((256,), "uint8", "zeros") and launch.args[5] is None
    assert [(s.array, s.sectors) for s in launch.analyze().sites if s.width == 4] == [("x", 32), ("out", 32)]
    assert triton.config._active is None
    assert triton.own is None or triton.own.launches == []  # these arrays lie nowhere on the GPU


class OnTheGpu:
    """As a tensor of a package that Triton knows."""

    dtype = "float32"
    __cuda_array_interface__: ClassVar[dict[str, Any]] = {
        "shape": (256,),
        "typestr": "<f4",
        "data": (0x7F00_0000_0200, False),
        "version": 3,
    }

    def data_ptr(self) -> int:
        return 0x7F00_0000_0200


def test_with_a_driver_the_launch_is_made_too(triton: Any) -> None:
    x, out = OnTheGpu(), OnTheGpu()
    with memsim.capture() as launches:
        triton.function.run(x, out, 250, 0.5, 128, grid=(2, 1, 1), warmup=False)
    assert launches[0].args[:2] == (ArrayArg((256,), offset=0), ArrayArg((256,), offset=0))
    if triton.own is not None:
        (call,) = triton.own.launches
        assert call[:3] == (2, 1, 1) and (int(call[3]), int(call[4])) == (5, 77)
        assert call[9] is x and call[10] is out and call[11:] == (250, 0.5, 128)


SPILLS = """
extern "C" __global__ void __launch_bounds__(96) pick(int *x, int i) {
    volatile int local[64];
    for (int j = 0; j < i; j++) local[j % 64] = x[j];
    x[threadIdx.x] = local[(i + threadIdx.x) % 64];
}"""


def test_what_a_kernel_takes_is_known_without_a_driver(triton: Any) -> None:
    """Persistent kernels divide by its registers; a driver tells them itself."""
    with memsim.capture():
        load = triton.config.active.utils.load_binary
        add, pick = (
            load(name, compile_cubin(text).cubin, 0, 0)[2:]
            for name, text in (("add", SOURCE), ("pick", SPILLS))
        )
    if triton.own is not None:
        assert add == pick == (16, 0, 1024)
    else:
        assert 16 <= add[0] <= 32 and add[1:] == (0, 1024)
        assert pick[1:] == (64, 96)


def test_each_capture_has_a_device_of_its_own(triton: Any) -> None:
    """Triton keeps kernels by device, and each keeps its launcher."""
    devices = []
    for _ in range(2):
        with memsim.capture():
            devices.append(triton.config.active.get_current_device())
    assert len(set(devices)) == 2
    assert {int(device) for device in devices} == {3 if triton.own else 0}


def test_captures_may_lie_in_one_another(triton: Any) -> None:
    x, out = ArrayArg((256,)), ArrayArg((256,))
    with memsim.capture() as outer:
        with memsim.capture() as inner:
            triton.function.run(x, out, 256, 1.0, 128, grid=(2, 1, 1), warmup=False)
        triton.function.run(x, out, 256, 1.0, 128, grid=(1, 1, 1), warmup=False)
    assert [one.grid[0] for one in inner] == [2]
    assert [one.grid[0] for one in outer] == [2, 1]


def test_arguments_that_do_not_make_up_the_parameters(triton: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SIGNATURE, "BLOCK", "i32")
    monkeypatch.setitem(SIGNATURE, "n", ("i32", "i32", "i32"))
    with pytest.raises(MemsimError, match="7 arguments to add, which takes 6"), memsim.capture():
        triton.function.run(ArrayArg((4,)), None, (1, 2, 3), 1.0, 128, grid=(2, 1, 1), warmup=False)


def test_an_unknown_type_is_said(triton: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SIGNATURE, "n", "i4")
    with pytest.raises(MemsimError, match="argument n has Triton's type i4"), memsim.capture():
        triton.function.run(ArrayArg((4,)), None, 1, 1.0, 128, grid=(2, 1, 1), warmup=False)


def test_without_any_package_there_is_nothing_to_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in PACKAGES:
        monkeypatch.delitem(sys.modules, package, raising=False)
    with pytest.raises(MemsimError, match="there is nothing to capture"), memsim.capture():
        pass


def test_a_chip_may_be_called_by_the_name_with_its_own_instructions(triton: Any) -> None:
    for arch, version in (("sm_90", (9, 0)), ("sm_90a", (9, 0)), ("sm_100f", (10, 0))):
        with memsim.capture(arch):
            assert triton.config.active.get_device_capability() == version
    with pytest.raises(MemsimError, match="no rules for architecture 'sm_12'"), memsim.capture("sm_12a"):
        pass
