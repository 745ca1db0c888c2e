"""Mistakes in a kernel or a launch: each is named with its place, beside a twin that is right."""

from __future__ import annotations

import numpy as np
import pytest

from memsim import ArrayArg, MemsimError
from memsim.api.running import run, trace
from memsim.captured.analyze_any import analyze
from tests.simt.cuda import kernel

COPY = """
extern "C" __global__ void k(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i];
}"""


def test_out_of_bounds_names_thread_block_buffer_and_line() -> None:
    k = kernel(COPY)
    arrays = [np.zeros(100, np.float32), np.zeros(128, np.float32)]
    run(k, 2, 64, [*arrays, 100])
    for call in (run, trace):
        with pytest.raises(
            MemsimError,
            match=r"out-of-bounds ld.global.* byte 400 of in \(400 bytes\)"
            r" by thread \(36, 0, 0\) of block \(1, 0, 0\)",
        ) as error:
            call(k, 2, 64, [*arrays, 101])
        assert error.value.line == 5


def test_out_of_bounds_in_shared_memory() -> None:
    text = """
extern "C" __global__ void k(int *out, int shift) {
    __shared__ int s[64];
    s[threadIdx.x + shift] = 1;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}"""
    k = kernel(text)
    run(k, 1, 64, [np.zeros(64, np.int32), 0])
    with pytest.raises(MemsimError, match=r"out-of-bounds st.shared.* byte 256 of s .*thread \(63, 0, 0\)"):
        run(k, 1, 64, [np.zeros(64, np.int32), 1])


SHIFTED = """
extern "C" __global__ void k(const float *in, float *out, long long shift) {
    out[threadIdx.x] = in[threadIdx.x + shift];
}"""


@pytest.mark.parametrize(
    ("shift", "where"),
    [
        (-1, r", 4 bytes before in \(4096 bytes\), by thread \(0, 0, 0\)"),
        (993, r"at byte 4096 of in \(4096 bytes\) by thread \(31, 0, 0\)"),
        (2000, r"at byte 8000 of in \(4096 bytes\) by thread \(0, 0, 0\)"),  # there is `out`
        (-10_000, r", 40000 bytes before in \(4096 bytes\)"),
    ],
)
def test_out_of_bounds_counts_from_the_array_that_the_pointer_is_of(shift: int, where: str) -> None:
    k = kernel(SHIFTED)
    arrays = [np.zeros(1024, np.float32), np.zeros(8192, np.float32)]
    for call in (run, trace):
        call(k, 1, 32, [*arrays, 0])
        call(k, 1, 32, [*arrays, 992])
        with pytest.raises(MemsimError, match=r"out-of-bounds ld\.global.* of 4 bytes ?" + where):
            call(k, 1, 32, [*arrays, shift])


@pytest.mark.slow
def test_a_pointer_may_be_of_one_array_or_another() -> None:
    text = """
extern "C" __global__ void k(float *a, float *b, float *out) {
    float *p = threadIdx.x % 2 ? a : b;
    out[threadIdx.x] = p[threadIdx.x];
}"""
    k = kernel(text)
    arrays = [np.full(32, 1, np.float32), np.full(32, 2, np.float32), np.zeros(32, np.float32)]
    run(k, 1, 32, arrays)
    assert (arrays[2] == np.tile([2, 1], 16)).all()
    with pytest.raises(MemsimError, match=r"at byte 68 of a \(64 bytes\) by thread \(17"):
        run(k, 1, 32, [arrays[0][:16].copy(), *arrays[1:]])


def test_a_number_for_a_pointer_is_named() -> None:
    text = SHIFTED.replace("out[threadIdx.x]", "if (in) out[threadIdx.x]")
    k = kernel(text)
    out = np.zeros(32, np.float32)
    run(k, 1, 32, [0, out, 0])  # a null pointer that the kernel leaves alone
    for call in (run, trace):
        with pytest.raises(
            MemsimError, match=r"0x400, outside of every array \(argument in is 1024, argument shift is 0\)"
        ):
            call(k, 1, 32, [1024, out, 0])


def test_dynamic_shared_memory_that_was_forgotten() -> None:
    text = """
extern "C" __global__ void other(float *out) {
    __shared__ float s[32];
    s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x ^ 1];
}
extern "C" __global__ void k(float *out) {
    extern __shared__ float s[];
    s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x ^ 1];
}"""
    k, out = kernel(text), ArrayArg((64,))
    trace(k, 1, 64, [out], shared_bytes=256)
    for given in (0, 128):
        message = rf"at byte {given} of s \({given} bytes\) by thread \({given // 4}, 0, 0\)"
        with pytest.raises(MemsimError, match=message) as error:
            trace(k, 1, 64, [out], shared_bytes=given)
        assert "--shared-bytes" in (error.value.hint or "")
    machine = kernel(text, code="sass")  # in machine code an array of no bytes has no name
    trace(machine, 1, 64, [out], shared_bytes=256)
    with pytest.raises(
        MemsimError, match=r"but the launch has no shared memory, by thread \(0, 0, 0\)"
    ) as error:
        trace(machine, 1, 64, [out])
    assert "--shared-bytes" in (error.value.hint or "")
    other = kernel(text, "other")
    assert [array[0] for array in trace(other, 1, 32, [out]).arrays if array[1] == "shared"] == ["s"]
    with pytest.raises(MemsimError, match=r"at byte 128 of s \(128 bytes\)") as error:
        trace(other, 1, 64, [out])
    assert error.value.hint is None


def test_misaligned_vector_access() -> None:
    text = """
extern "C" __global__ void k(float *a, float *out, int shift) {
    float4 v = *reinterpret_cast<float4 *>(a + 4 * threadIdx.x + shift);
    out[threadIdx.x] = v.x + v.w;
}"""
    k = kernel(text)
    a, out = np.arange(132, dtype=np.float32), np.zeros(32, np.float32)
    run(k, 1, 32, [a, out, 4])
    assert (out == 8 * np.arange(32) + 11).all()
    with pytest.raises(MemsimError, match=r"misaligned ld.global.v4.f32 of 16 bytes at byte 4 of a") as error:
        run(k, 1, 32, [a, out, 1])
    assert error.value.line == 3


@pytest.mark.slow
def test_a_loop_that_never_ends_runs_out_of_steps() -> None:
    text = """
extern "C" __global__ void k(volatile int *count, int stop) {
    while (count[threadIdx.x] != stop)
        count[threadIdx.x] += 2;
}"""
    k = kernel(text)
    count = np.zeros(32, np.int32)
    run(k, 1, 32, [count, 1000], max_steps=20_000)
    assert (count == 1000).all()
    with pytest.raises(MemsimError, match="has not finished after 20,000 instructions") as error:
        run(k, 1, 32, [count, 1001], max_steps=20_000)
    assert error.value.line in (3, 4)


def test_a_failed_assertion_ends_the_launch() -> None:
    text = """
extern "C" __global__ void k(int *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    assert(i < n && "too many");
    assert(n > 0);
    a[i] = n;
}"""
    k = kernel(text)
    for call in (run, trace):
        call(k, 2, 32, [np.zeros(64, np.int32), 64])
        with pytest.raises(
            MemsimError,
            match=r"assertion failed in thread \(28, 0, 0\) of block \(1, 0, 0\) \(4 ",
        ) as error:
            call(k, 2, 32, [np.zeros(64, np.int32), 60])
        assert error.value.line == 4


def test_a_trap_ends_the_launch() -> None:
    text = """
extern "C" __global__ void k(int *a) {
    if (a[threadIdx.x] == 7)
        __trap();
    a[threadIdx.x] = 1;
}"""
    k = kernel(text)
    run(k, 1, 32, [np.zeros(32, np.int32)])
    with pytest.raises(
        MemsimError, match=r"trap executed by thread \(7, 0, 0\) of block \(0, 0, 0\)"
    ) as error:
        run(k, 1, 32, [np.arange(32, dtype=np.int32)])
    assert error.value.line == 4


@pytest.mark.slow
def test_a_long_loop_that_only_changes_memory_ends() -> None:
    text = """
extern "C" __global__ void k(int *a, int rounds) {
    while (atomicAdd(a, 1) % rounds != rounds - 1) { }
}"""
    k = kernel(text)
    count = np.zeros(1, np.int32)
    run(k, 1, 1, [count, 3000])
    assert count[0] == 3000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([np.zeros(64, np.float32)], "takes 3 arguments, but 1 were given"),
        ([np.zeros(64, np.float32), np.zeros(64, np.float32), 1.5], "argument n of k must be an integer"),
        ([np.zeros(64, np.float32), 3.0, 64], "argument out of k must be an array"),
        ([np.zeros(64, np.float32), {"a": 1}, 64], "argument out of k must be an array"),
        ([np.zeros(64, np.float32), np.zeros(64, np.float32), 2**40], "argument n of k must be an integer"),
    ],
)
def test_arguments_that_do_not_fit(arguments: list[object], message: str) -> None:
    k = kernel(COPY)
    run(k, 1, 64, [np.zeros(64, np.float32), np.zeros(64, np.float32), 64])
    with pytest.raises(MemsimError, match=message):
        run(k, 1, 64, arguments)


@pytest.mark.parametrize(
    ("grid", "block", "shared", "message"),
    [
        (1, 2048, 0, "larger than the hardware's limit"),
        (1, (32, 33), 0, "1056 threads; a block has at most 1024"),
        (0, 32, 0, "grid must be one to three positive integers"),
        (1, (1, 1, 65), 0, "larger than the hardware's limit"),
        (1, 32, 300 * 1024, "bytes of shared memory"),
        (1, 32, -1, "cannot be -1 bytes"),
    ],
)
def test_impossible_launches(grid: object, block: object, shared: int, message: str) -> None:
    k = kernel(COPY)
    arguments = [ArrayArg((64,)), ArrayArg((64,)), 64]
    assert trace(k, 1, 64, arguments, shared_bytes=1024).sites
    with pytest.raises(MemsimError, match=message):
        trace(k, grid, block, arguments, shared_bytes=shared)  # type: ignore[arg-type]


def test_too_much_declared_shared_memory() -> None:
    text = """
extern "C" __global__ void k(float *out) {
    __shared__ float s[SIZE];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[31 - threadIdx.x];
}"""
    run(kernel(text, SIZE=12288), 1, 32, [np.zeros(32, np.float32)])
    with pytest.raises(MemsimError, match="declares 49156 bytes of shared memory"):
        run(kernel(text, SIZE=12289), 1, 32, [np.zeros(32, np.float32)])


def test_launch_bounds_are_kept() -> None:
    text = COPY.replace("void k", "void __launch_bounds__(64) k")
    k = kernel(text)
    arrays = [np.zeros(256, np.float32), np.zeros(256, np.float32)]
    run(k, 2, 64, [*arrays, 128])
    with pytest.raises(MemsimError, match="compiled for at most 64 threads"):
        run(k, 2, 128, [*arrays, 256])


def test_a_grid_is_made_of_whole_clusters() -> None:
    k = kernel(COPY.replace("void k", "void __cluster_dims__(2, 1, 1) __launch_bounds__(64) k"))
    assert k.argument_names == ("in", "out", "n")
    arrays = [np.zeros(256, np.float32), np.zeros(256, np.float32)]
    run(k, 4, 64, [*arrays, 256])
    with pytest.raises(
        MemsimError, match=r"grid of k must be a multiple of its cluster \(2, 1, 1\), unlike \(3"
    ):
        run(k, 3, 64, [*arrays, 192])


@pytest.mark.slow
@pytest.mark.parametrize("rest", ["", "__global__ void scalar(float *a) { a[0] = 1; }"])
def test_a_template_without_an_instance_is_named(rest: str) -> None:
    text = f"""
namespace ns {{ template <typename T> __global__ void scale(T *a) {{ a[threadIdx.x] *= 2; }} }}
{rest}"""
    assert kernel(text, "ns::scale<float>", "sass").argument_names == ("a",)
    with pytest.raises(MemsimError, match="scale is a template with no instance") as error:
        kernel(text, "scale", "sass")
    assert "scale<" in (error.value.hint or "")
    for name in ("scal", "missing"):
        with pytest.raises(MemsimError, match="there is no kernel") as error:
            kernel(text, name, "sass")
    text += "\ntemplate __global__ void ns::scale<float>(float *);"
    assert kernel(text, "scale", "sass").argument_names == ("a",)
    with pytest.raises(MemsimError, match="scale<int> cannot be instantiated"):
        kernel(text, "scale<int>", "sass")


UNKNOWN_ADDRESS = """
extern "C" __global__ void k(const float *in, float *out) {
    unsigned smid;
    asm volatile("mov.u32 %0, %smid;" : "=r"(smid));
    out[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x < 32)
        out[smid] = 1.0f;
}"""


def test_an_address_that_nobody_knows_is_counted_not_dropped() -> None:
    k = kernel(UNKNOWN_ADDRESS)
    analysis = analyze(k, 3, 64, [ArrayArg((64,)), ArrayArg((64,))])
    unresolved = [site for site in analysis.sites if site.unresolved]
    assert [(site.line, site.op, site.instructions) for site in unresolved] == [(7, "store", 3)]
    assert "%smid" in (unresolved[0].unresolved or "")
    assert "could not be analyzed" in analysis.verdict
    assert analysis.totals["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"] is None
    assert analysis.totals["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 3 * 2 * 4


def test_a_result_that_nobody_knows_is_an_error() -> None:
    k = kernel(UNKNOWN_ADDRESS)
    with pytest.raises(MemsimError, match=r"result is unknown.*%smid"):
        run(k, 3, 64, [np.zeros(64, np.float32), np.zeros(64, np.float32)])


def test_a_branch_that_nobody_knows_stops_with_the_way_there() -> None:
    text = UNKNOWN_ADDRESS.replace("threadIdx.x < 32", "smid * 4 < 32")
    with pytest.raises(MemsimError, match=r"bra depends on an unknown value: .*%smid.* -> setp") as error:
        trace(kernel(text), 3, 64, [ArrayArg((64,)), ArrayArg((64,))])
    assert error.value.line in (5, 6)


RAGGED = """
extern "C" __global__ void k(const float *in, float *out, int n) {
    __shared__ float s[64];
    if (threadIdx.x < n) s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    float x = s[threadIdx.x], y = 1;
    if (x != 0) { y = 1 / x; y += sqrtf(y); IN }
    if (threadIdx.x < n) out[(int) y] = y;
}"""


@pytest.mark.parametrize("name", ["all", "some", "none of a warp"])
def test_a_branch_that_decides_no_access_may_be_unknown(name: str) -> None:
    """A division by what nobody wrote; the lanes that wrote theirs have their own way through it."""
    written = {"all": 64, "some": 40, "none of a warp": 32}[name]
    given = np.repeat([0.0, 1.0, 0.25, 0.0625], 16).astype(np.float32)  # y is 1, 2, 6, 20
    arguments = [given, np.zeros(64, np.float32), written]
    found = analyze(kernel(RAGGED, code="sass", IN=""), 1, 64, arguments)
    assert not any(site.unresolved for site in found.sites)
    store = next(site for site in found.sites if site.op == "store" and site.space == "global")
    assert (store.requests, store.sectors) == {64: (2, 3), 40: (2, 2), 32: (1, 1)}[written]
    assert len(found.trace.executed)
    notes = [note for note in found.trace.notes if "decide no access" in note]
    assert len(notes) == (written < 64) and all("k.cu:7" in note for note in notes)


def test_a_vote_is_unknown_only_in_warps_with_an_unknown_lane() -> None:
    text = RAGGED.replace(
        "if (x != 0) { y = 1 / x; y += sqrtf(y); IN }", "y = __ballot_sync(~0u, x > 0) & 63;"
    )
    arguments = [np.arange(64, dtype=np.float32), np.zeros(64, np.float32)]

    def stores(written: int) -> tuple[int | None, str | None]:
        found = analyze(kernel(text, code="sass"), 1, 64, [*arguments, written])
        (store,) = (site for site in found.sites if site.op == "store" and site.space == "global")
        return store.requests, store.unresolved

    assert stores(64) == (2, None)
    assert stores(32) == (1, None)  # the second warp votes, and does not store
    requests, why = stores(40)
    assert requests is None and why is not None and "VOTE" in why


def test_a_branch_that_decides_an_access_may_not_be_unknown() -> None:
    arguments = [np.ones(64, np.float32), np.zeros(64, np.float32)]
    k = kernel(RAGGED, code="sass", IN="out[threadIdx.x] = y;")
    assert analyze(k, 1, 64, [*arguments, 64]).sites
    with pytest.raises(MemsimError, match="depends on an unknown value: read of shared memory") as refused:
        analyze(k, 1, 64, [*arguments, 40])
    assert refused.value.line == 7


def test_a_call_through_a_pointer_hides_accesses_and_says_so() -> None:
    text = """
typedef int (*Choice)(const int *);
__device__ int first(const int *p) { return p[0]; }
__device__ int second(const int *p) { return p[32]; }
__device__ Choice choices[2] = {first, second};
extern "C" __global__ void k(const int *in, int *out, int which) {
    out[threadIdx.x] = CALL(in + threadIdx.x);
}"""
    arguments = [ArrayArg((64,), "int32", "iota"), ArrayArg((32,), "int32"), 1]
    direct = analyze(kernel(text, CALL="second"), 1, 32, arguments)
    assert not [site for site in direct.sites if site.unresolved]
    indirect = analyze(kernel(text, CALL="choices[which]"), 1, 32, arguments)
    hidden = {(site.op, site.space) for site in indirect.sites if site.unresolved}
    assert hidden == {(op, space) for op in ("load", "store") for space in ("shared", "global")}
    assert "4 accesses could not be analyzed" in indirect.verdict


def test_memory_that_the_kernel_allocates_has_no_known_address() -> None:
    text = """
extern "C" __global__ void k(int *out) {
    int *mine = new int[4];
    mine[2] = threadIdx.x;
    out[threadIdx.x] = 1;
}"""
    analysis = analyze(kernel(text), 1, 32, [ArrayArg((32,), "int32")])
    found = {(site.line, site.space) for site in analysis.sites if site.unresolved}
    assert found == {(4, "global"), (4, "shared")}  # a generic address may be in either


TAKING_TURNS = {
    "lock": (
        """
__device__ int mutex, count;
extern "C" __global__ void k(int *out) {
    if (threadIdx.x == 0) {
        while (atomicCAS(&mutex, 0, 1) != 0);
        out[blockIdx.x] = 1 + count++;
        __threadfence();
        atomicExch(&mutex, 0);
    }
}""",
        4,
        64,
    ),
    "one block after another": (
        """
__device__ volatile int done[8];
extern "C" __global__ void k(int *out) {
    const int b = blockIdx.x;
    if (threadIdx.x == 0) {
        if (b > 0) while (done[b - 1] == 0);
        out[b] = b + 1;
        __threadfence();
        done[b] = 1;
    }
}""",
        4,
        32,
    ),
    "one warp after another": (
        """
extern "C" __global__ void k(int *out) {
    __shared__ int turn;
    if (threadIdx.x == 0) turn = 0;
    __syncthreads();
    volatile int *now = &turn;
    const int mine = 3 - threadIdx.x / 32;
    while (*now != mine);
    __syncwarp();
    if (threadIdx.x % 32 == 0) { out[mine] = mine + 1; *now = mine + 1; }
}""",
        1,
        128,
    ),
}


@pytest.mark.some(1)
@pytest.mark.parametrize("name", TAKING_TURNS)
def test_who_waits_for_another_warp_waits_till_it_has_come(name: str) -> None:
    source, grid, block = TAKING_TURNS[name]
    out = np.zeros(4, np.int32)
    run(kernel(source), grid, block, [out])
    assert sorted(out) == [1, 2, 3, 4]


def test_a_turn_that_never_comes_is_not_waited_for_for_ever() -> None:
    source, grid, block = TAKING_TURNS["one warp after another"]
    k = kernel(source.replace("3 - threadIdx.x / 32", "4 - threadIdx.x / 32"))
    with pytest.raises(MemsimError, match="has not finished after 20,000 instructions"):
        run(k, grid, block, [np.zeros(5, np.int32)], max_steps=20_000)


@pytest.mark.slow
def test_why_a_value_is_unknown_is_said_where_only_some_lanes_have_it() -> None:
    text = """
extern "C" __global__ void k(const float *a, float *out) {
    __shared__ float s[64], t[64];
    if (threadIdx.x >= FIRST) s[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    t[threadIdx.x] = s[threadIdx.x];
    __syncthreads();
    if (t[threadIdx.x] > 0) out[threadIdx.x] = 1;
}"""
    arguments = [np.ones(64, np.float32), np.zeros(64, np.float32)]
    assert analyze(kernel(text, code="sass", FIRST=0), 1, 64, arguments).sites
    with pytest.raises(MemsimError) as refused:
        analyze(kernel(text, code="sass", FIRST=16), 1, 64, arguments)
    told = refused.value.message
    assert "depends on an unknown value: read of shared memory that was never written: LDS" in told
    assert "-> STS" in told and "-> FSETP" in told
