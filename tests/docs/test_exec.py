"""What docs/exec.md says of the counts of programs that a GPU ran, too."""

from __future__ import annotations

from copy import deepcopy

from docs.exec_beside_ncu import ALONE, ARBITRATION, DIFFERENT, EQUAL, differences, launches, verdict
from memsim.validate.profiles import CONFLICTS, WAVEFRONTS

LOADS = f"{WAVEFRONTS}_op_ld.sum", f"{CONFLICTS}_op_ld.sum"


def test_no_count_of_a_program_differs_but_by_arbitration() -> None:
    """But for three, of which docs/exec.md tells; the sum over their instructions does not."""
    different = {name: one for _, name, one in launches() if verdict(one) == DIFFERENT}
    assert different.keys() == {"matmul_11", "matmul_12", "chapter09.hist_gpu_shmem_atomics"}
    for one in different.values():
        assert one["measured"][ALONE] == one["counts"][ALONE]
        assert all(name.startswith((WAVEFRONTS, CONFLICTS)) for name in differences(one))


def test_arbitration_is_as_many_wavefronts_as_conflicts_and_none_by_instruction() -> None:
    counts = {LOADS[0]: 40, LOADS[1]: 8, ALONE: 40}
    launch = {"counts": counts, "measured": deepcopy(counts)}
    assert verdict(launch) == EQUAL
    launch["measured"] |= {LOADS[0]: 42, LOADS[1]: 10}
    assert verdict(launch) == ARBITRATION
    for name, value in ((LOADS[1], 11), (LOADS[0], 38), (ALONE, 42)):
        other = deepcopy(launch)
        other["measured"][name] = value
        assert verdict(other) == DIFFERENT, name
