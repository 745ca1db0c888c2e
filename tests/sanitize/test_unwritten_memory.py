"""Reads of local and global memory that nobody wrote, each beside its good twin."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.api.running import job_of
from memsim.api.sanitizing import sanitize_job
from memsim.errors import MemsimError
from memsim.sanitizer.hazards import INIT, Sanitized
from tests.simt.cuda import machine_kernel

LOCAL = """int a[8];
#pragma unroll 1
for (int i = 0; i < n; i++) a[(i + p[t]) & 7] = i;
o[t] = a[p[t + 63] & 7];"""


def sanitized(body: str, *unwritten: str, n: int = 8, head: str = "") -> Sanitized:
    text = f"{head}\n__global__ void k(int *o, int *p, int n) {{ int t = threadIdx.x;\n{body}\n}}"
    args = [np.zeros(256, np.int32), np.arange(256, dtype=np.int32), np.int32(n)]
    return sanitize_job(job_of(machine_kernel(text), 2, 64, args), tools=(INIT,), unwritten=unwritten)


def test_a_place_of_a_local_array_that_its_thread_has_not_written() -> None:
    assert not sanitized(LOCAL).findings
    (one,) = sanitized(LOCAL, n=7).errors
    assert (one.space, one.count, one.doubt) == ("local", 128, "")
    assert one.first.does == "loads" and one.second is None and one.element.startswith("byte 28 of ")


@pytest.mark.parametrize(("stored", "is_certain"), [("there ? v : -1", False), ("v + there", True)])
def test_a_local_value_that_is_chosen_behind_its_load(stored: str, is_certain: bool) -> None:
    head = "__device__ __noinline__ bool pop(int *to, int of, int n) { if (of < n) *to = of; return of < n; }"
    body = f"int v;\nbool there = pop(&v, p[t], n);\no[t] = {stored};"
    (one,) = sanitized(body, head=head).errors
    assert (one.space, one.count, not one.doubt) == ("local", 2 * 56, is_certain)
    assert not sanitized(body, head=head, n=64).findings


def test_global_memory_counts_as_written_unless_the_caller_says_that_it_is_not() -> None:
    body = "if (t < n * 8) o[t + 64 * blockIdx.x] = 1;\n__syncthreads();\np[t] = o[t + 64 * blockIdx.x];"
    assert not sanitized(body).findings and not sanitized(body, "o").findings
    (one,) = sanitized(body, "o", n=7).errors
    assert (one.array, one.element, one.space, one.count) == ("o", "o[56]", "global", 16)
    assert not sanitized(body, "p", n=7).findings


@pytest.mark.slow
def test_an_atomic_reads_what_it_changes() -> None:
    (one,) = sanitized("atomicAdd(o + t, 1);", "o").errors
    assert one.first.does == "updates" and one.count == 128  # both blocks at once
    assert not sanitized("if (blockIdx.x == 0) o[t] = 0;\natomicAdd(o + t, 1);", "o").findings


def test_an_array_that_there_is_not() -> None:
    with pytest.raises(MemsimError, match="no array in global memory is called 'q'"):
        sanitized("o[t] = 1;", "q")


STRUCT = "struct alignas(16) Padded { char a; int b; short c; int d; };\n"
WRITTEN = {"a": "x.a = p[t];", "b": "x.b = p[t + 1];", "c": "x.c = p[t + 2];", "d": "x.d = p[t + 3];"}
PLACES = {
    "shared": "__shared__ Padded s[64]; Padded &x = s[t];\n{0}\n__syncthreads();\n"
    "((Padded *)o)[t & 15] = s[t ^ 1];",
    "global": "Padded *s = (Padded *)o, &x = s[t & 7];\n{0}\n__syncthreads();\ns[8 + (t & 7)] = s[t & 7];",
    "local": "Padded s[4];\n#pragma unroll 1\nfor (int i = 0; i < n; i++) {{\n"
    "Padded &x = s[(i + p[t]) & 3];\n{0} }}\n"
    "((Padded *)o)[t & 15] = s[p[t] & 3];",
}


@pytest.mark.some(1)
@pytest.mark.parametrize("space", PLACES)
def test_padding_of_a_struct_is_not_missed_but_a_member_is(space: str) -> None:
    def found(*missing: str) -> Sanitized:
        body = PLACES[space].format("\n".join(WRITTEN[name] for name in WRITTEN if name not in missing))
        text = f"{STRUCT}__global__ void k(int *o, int *p, int n) {{ int t = threadIdx.x;\n{body}\n}}"
        args = [np.zeros(256, np.int32), np.arange(256, dtype=np.int32), np.int32(8)]
        unwritten = ("o",) if space == "global" else ()
        return sanitize_job(job_of(machine_kernel(text), 1, 64, args), tools=(INIT,), unwritten=unwritten)

    assert not found().findings and not found().unjudged
    for member, place in (("b", 4), ("c", 8)):
        (one,) = found(member).findings
        assert one.space == space and one.offset % 16 == place


HOISTED = """__shared__ alignas(16) int s[8];
if (t < n) s[t] = p[t];
__syncthreads();
int m = p[t];
{0}
o[t] = m;"""


@pytest.mark.parametrize(
    ("chosen", "used"),
    [
        ("if (n > 4) m = max(m, s[4]);\nif (n > 5) m = max(m, s[5]);", "m = max(m, max(s[4], s[5]));"),
        ("if (n > 4) m += s[4];\nif (n > 5) m += s[5];", "m += s[4] + s[5];"),
        ("int v = s[4];\nif (p[t] & 64) v = p[t + 7];\nm = v;", "m = s[4];\nif (m & 64) m = 7;"),
    ],
)
def test_a_load_that_the_compiler_makes_before_its_condition_is_only_possible(chosen: str, used: str) -> None:
    (possible,) = sanitized(HOISTED.format(chosen), n=1).findings
    assert "under a condition only" in possible.doubt and possible.element == "s[4]"
    (certain,) = sanitized(HOISTED.format(used), n=1).findings
    assert certain.doubt == "" and certain.element == "s[4]"
    assert not sanitized(HOISTED.format(chosen)).findings and not sanitized(HOISTED.format(used)).findings
