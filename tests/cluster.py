"""Dask schedulers with two workers, for tests: `from tests.cluster import scheduler as scheduler`."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """Its address. The workers are threads of this process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        dashboard_address=":0",
        protocol="tcp",
        memory_limit=0,  # the process is that of other tests, too, whose memory would pause the workers
    ) as cluster:
        yield cluster.scheduler_address


@contextmanager
def mortal(allowed_failures: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """The address of a scheduler whose workers are processes, and what kills the first of them.

    allowed_failures: deaths of workers after which what they did is not tried again.
    """
    distributed = pytest.importorskip("distributed")
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": allowed_failures}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", protocol="tcp", silence_logs=50
        ) as cluster,
    ):
        first = cluster.workers[0]  # its nanny, which starts another process when one dies

        def kill() -> None:
            # It may be dead already: its scheduler has not heard of it, or another has not started.
            if (number := first.pid) is not None:
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)

        yield cluster.scheduler_address, kill
