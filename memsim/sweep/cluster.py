"""Counts jobs on the workers of a Dask scheduler.

Workers need memsim and the same files at the same paths. Needs distributed (`pip install distributed`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from memsim.errors import MemsimError
from memsim.job import Job
from memsim.sweep.results import Counts, counts_of
from memsim.targets.analyze_targets import analyze_job

PATIENCE = 10  # seconds to wait for the scheduler


def count_job(job: Job) -> Counts:
    """The counts of a job, or the reason why there are none."""
    try:
        return counts_of(analyze_job(job, None))
    except MemsimError as error:
        return Counts(error=str(error).partition("\n")[0])


def counted_by(address: str, jobs: Sequence[Job]) -> Iterator[tuple[int, Counts]]:
    """(number of the job, its counts), in order of completion.

    Raises:
        MemsimError: distributed is missing, the scheduler does not respond, or a worker fails.
    """
    distributed = _distributed()
    try:
        client = distributed.Client(address, timeout=PATIENCE)
    except (OSError, ValueError, TimeoutError) as error:
        raise MemsimError(
            f"no Dask scheduler answers at {address}: {error}",
            hint="such as tcp://10.0.0.1:8786; `dask scheduler` prints its own",
        ) from None
    with client:
        futures = client.map(count_job, jobs, pure=False)
        numbers = {future.key: number for number, future in enumerate(futures)}
        for future in distributed.as_completed(futures):
            try:
                counts = future.result()
            except Exception as error:  # such as memsim missing, or a worker killed
                raise MemsimError(
                    f"a worker of {address} could not analyze {jobs[numbers[future.key]].name}: {error}",
                    hint="its Python needs the same memsim, and the files at the same paths",
                ) from None
            yield numbers[future.key], counts


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise MemsimError("a Dask scheduler needs distributed", hint="pip install distributed") from None
    return distributed
