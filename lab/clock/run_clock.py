"""Runs the probe by clock on this machine's GPU, by the program that is also exported."""

from __future__ import annotations

from collections.abc import Callable

from lab.clock.clock_recording import ClockRecording, clock_recording
from memsim.errors import MemsimError
from memsim.validate import standalone
from memsim.validate.exported_probe import program_data


def run_clock(gpu: Callable[[], standalone.Gpu] = standalone.Gpu) -> ClockRecording:
    """Measure every instruction that the chip has.

    Raises:
        MemsimError: driver or GPU missing.
    """
    try:
        return clock_recording(standalone.measure(gpu(), program_data()))
    except standalone.Refused as error:
        raise MemsimError(str(error), hint="omit --live to see what was recorded") from None
