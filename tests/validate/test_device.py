"""What is missing on this machine is said in one sentence each."""

from __future__ import annotations

import builtins
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from memsim.errors import MemsimError
from memsim.validate import device
from memsim.validate.device import check_chip, this_device


class CUDARuntimeError(Exception):
    pass


def fake_cupy(monkeypatch: pytest.MonkeyPatch, major: int = 9, minor: int = 0, fails: str = "") -> None:
    def properties(number: int) -> dict[str, Any]:
        if fails:
            raise CUDARuntimeError(fails)
        return {"name": b"NVIDIA H100 80GB HBM3", "major": major, "minor": minor}

    cupy: Any = ModuleType("cupy")
    cupy.__version__ = "14.2.0"
    cupy.cuda = SimpleNamespace(
        runtime=SimpleNamespace(
            CUDARuntimeError=CUDARuntimeError, getDeviceProperties=properties, driverGetVersion=lambda: 13000
        )
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(device, "driver_version", lambda: "580.159.04")


def test_a_device_and_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cupy(monkeypatch)
    found = this_device()
    assert (found.arch, found.cuda, found.slug) == ("sm_90", "13.0", "nvidia-h100-80gb-hbm3")
    check_chip(found)


@pytest.mark.parametrize(
    ("error", "says", "hint"),
    [
        (ModuleNotFoundError("No module named 'cupy'", name="cupy"), "CuPy is not installed", "pip install"),
        (
            ImportError("libnvrtc.so.12: no such file", name="cupy._core"),
            "CuPy cannot be loaded: libnvr",
            "reinstall it",
        ),
    ],
)
def test_no_cupy(error: ImportError, says: str, hint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    found = builtins.__import__

    def no_cupy(name: str, *rest: Any) -> Any:
        if name == "cupy":
            raise error
        return found(name, *rest)

    monkeypatch.setattr(builtins, "__import__", no_cupy)
    with pytest.raises(MemsimError, match=says) as caught:
        this_device()
    assert hint in str(caught.value.hint) and caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("fails", "says"),
    [
        ("cudaErrorInsufficientDriver: CUDA driver version is insufficient", "no NVIDIA driver"),
        ("cudaErrorNoDevice: no CUDA-capable device is detected", "no NVIDIA GPU"),
        ("cudaErrorECCUncorrectable: uncorrectable ECC error", "does not respond"),
    ],
)
def test_no_driver_no_gpu(fails: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cupy(monkeypatch, fails=fails)
    with pytest.raises(MemsimError, match=says) as caught:
        this_device()
    assert caught.value.hint and caught.value.exit_code == 2


def test_an_unknown_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cupy(monkeypatch, major=8, minor=7)
    with pytest.raises(MemsimError, match=r"no rules for NVIDIA H100 80GB HBM3 \(sm_87\)") as caught:
        check_chip(this_device())
    assert "memsim probe --export" in str(caught.value)
