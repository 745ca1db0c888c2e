"""A Dask scheduler with two workers, for tests: `from tests.cluster import scheduler as scheduler`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """Its address. The workers are threads of this process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        dashboard_address=None,
        protocol="tcp",
        memory_limit=0,  # the process is that of other tests, too, whose memory would pause the workers
    ) as cluster:
        yield cluster.scheduler_address
