// Which stores find their line in L1, and which go to L2 with what was stored before (docs/validation/stores.json):
// launches for a profiler that counts look-ups of stores, hits of these, and sectors that are written to L2.
#include "clocked.cuh"

DEV void store(char *at, u32 value) { asm volatile("st.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory"); }
DEV void store(char *at, unsigned short value) { asm volatile("st.global.u16 [%0], %1;" ::"l"(at), "h"(value) : "memory"); }
DEV void store(char *at, unsigned char value) { asm volatile("st.global.u8 [%0], %1;" ::"l"(at), "r"((u32)value) : "memory"); }
DEV void store(char *at, u64 value) { asm volatile("st.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory"); }
DEV u32 load(const char *at) {
    u32 value;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}
DEV float pause(int pauses, float value) { // of dependent products, which nothing folds
#pragma unroll 1
    for (int k = 0; k < pauses; k++) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(value));
    return value;
}

// Lane l of warp w stores `times` times, `step` bytes further each time, from w * warp + l * apart on, with `pauses` between.
// A warp begins `late` pauses after the one before. If it loads, it has read the first words before. Stores AT_ONCE follow
// each other without a loop, others as soon as 13 cycles if nothing moves.
template <typename T, int AT_ONCE>
__global__ void stores(char *to, u64 *out, int lanes, int apart, int warp, int step, int times, int pauses, int late, bool loads, float value) {
    int lane = threadIdx.x % 32, w = threadIdx.x / 32;
    char *at = to + w * warp + lane * apart;
    if (loads && load(at) == 1) return;
    __syncthreads();
    value = pause(w * late, value);
    u64 before = now();
    if (lane < lanes && value != 1) {
        if (AT_ONCE) {
#pragma unroll
            for (int n = 0; n < AT_ONCE; n++) store(at + n * step, (T)lane);
        } else if (!step) {
#pragma unroll 1
            for (int n = 0; n < times; n++) {
                store(at, (T)lane);
                value = pause(pauses, value);
            }
        } else {
#pragma unroll 1
            for (int n = 0; n < times; n++, at += step) {
                store(at, (T)lane);
                value = pause(pauses, value);
            }
        }
    }
    u64 after = now();
    if (!threadIdx.x) out[value == 1] = after - before;
}

static int number;
template <typename T, int AT_ONCE = 0>
static void run(int warps, int lanes, int apart, int warp, int step, int times, int pauses, int late, bool loads) {
    CHECK(cudaMemset(memory, 0, 4 << 20));
    stores<T, AT_ONCE><<<1, 32 * warps>>>(memory, out, lanes, apart, warp, step, times, pauses, late, loads, 2);
    CHECK(cudaGetLastError());
    printf("stores number=%d bytes=%zu at_once=%d warps=%d lanes=%d apart=%d warp=%d step=%d times=%d pauses=%d late=%d loads=%d : %llu\n", number++,
           sizeof(T), AT_ONCE, warps, lanes, apart, warp, step, AT_ONCE ? AT_ONCE : times, pauses, late, loads, fetched(1)[0]);
}

int main() {
    CHECK(cudaMalloc(&memory, 4 << 20)); // small, as a profiler saves it before each pass
    CHECK(cudaMalloc(&out, 64));
    for (int pauses : {0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 128}) {
        for (int apart : {4, 8, 16, 32, 64}) run<u32>(1, 32, apart, 0, 0, 2, pauses, 0, false);
        for (int lanes : {1, 2, 4, 8, 16, 24, 28, 32}) run<u32>(1, lanes, 128, 0, 0, 2, pauses, 0, false); // so many lines
        for (int lanes : {8, 24, 32}) run<u32>(1, lanes, 4096, 0, 0, 2, pauses, 0, false);
        for (int warps : {2, 4, 8, 16, 32})
            for (int apart : {4, 16, 32, 128}) run<u32>(warps, 32, apart, 32 * apart, 0, 2, pauses, 0, false);
        for (int apart : {4, 32, 128}) run<u32>(1, 32, apart, 0, 0, 2, pauses, 0, true); // lines that were loaded
        run<unsigned short>(1, 32, 4, 0, 2, 2, pauses, 0, false);
        run<unsigned char>(1, 32, 4, 0, 1, 4, pauses, 0, false);
        run<u32>(1, 8, 4, 0, 32, 4, pauses, 0, false);  // the sectors of a line, one after the other
        run<u32>(1, 32, 128, 0, 4, 8, pauses, 0, false);
        for (int warps : {2, 4, 8}) // warps that store to the same line: the same sector, another one
            for (int warp : {0, 32}) run<u32, 1>(warps, 8, 4, warp, 0, 0, 0, pauses, false);
    }
    for (int lanes : {8, 16, 20, 22, 24, 25, 26, 27, 28, 29, 30, 31, 32}) run<u32, 8>(1, lanes, 128, 0, 4, 0, 0, 0, false);
    for (int warps : {1, 2, 4, 8, 16, 32}) { // members of a structure
        run<u32, 2>(warps, 32, 8, 256, 4, 0, 0, 0, false);
        run<u32, 3>(warps, 32, 12, 384, 4, 0, 0, 0, false);
        run<u32, 4>(warps, 32, 16, 512, 4, 0, 0, 0, false);
        run<u32, 6>(warps, 32, 24, 768, 4, 0, 0, 0, false);
        run<u32, 8>(warps, 32, 32, 1024, 4, 0, 0, 0, false);
        run<u64, 2>(warps, 32, 16, 512, 8, 0, 0, 0, false);
        run<u64, 3>(warps, 32, 24, 768, 8, 0, 0, 0, false);
        run<u64, 4>(warps, 32, 32, 1024, 8, 0, 0, 0, false);
        run<unsigned short, 2>(warps, 32, 4, 128, 2, 0, 0, 0, false);
        run<unsigned char, 2>(warps, 32, 2, 64, 1, 0, 0, 0, false);
        run<unsigned char, 3>(warps, 32, 3, 96, 1, 0, 0, 0, false);
        run<unsigned char, 4>(warps, 32, 4, 128, 1, 0, 0, 0, false);
    }
}
