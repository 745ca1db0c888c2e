// What it takes a warp whose lanes go two ways: cycles of an iteration of a loop, by how many lanes enter its branch
// (docs/validation/branches.json). FEW lanes of 32 enter; all others go on where both meet.
#include "clocked.cuh"

#define FMA asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(value));
#define FMA4 FMA FMA FMA FMA
#define FMA16 FMA4 FMA4 FMA4 FMA4
#define ITERATIONS 256

// An iteration of BODY, which may use `lane`, `few`, `value`, `step` and `shared`.
#define LOOP(name, body)                                                                            \
    __global__ void name(u64 *out, float value, int few) {                                          \
        __shared__ volatile float shared[1024];                                                     \
        int lane = threadIdx.x % 32;                                                                \
        shared[threadIdx.x] = value;                                                                \
        u64 t0 = 0;                                                                                 \
        _Pragma("unroll 1") for (int step = -8; step < ITERATIONS; step++) {                        \
            if (!step) t0 = now();                                                                  \
            body                                                                                    \
        }                                                                                           \
        u64 t1 = now();                                                                             \
        if (!threadIdx.x) out[0] = t1 - t0;                                                         \
        if (value == 123) out[1] = (u64)value;                                                      \
    }
LOOP(nothing, FMA4)                                     // the loop itself
LOOP(whole, FMA4 FMA16)                                 // what a branch has, for all
LOOP(one_way, FMA4 if (lane < few) { FMA16 })
LOOP(two_ways, FMA4 if (lane < few) { FMA16 } else { FMA16 FMA4 })
LOOP(twice, FMA4 if (lane < few) { FMA16 } FMA4 if (lane >= few) { FMA16 })
LOOP(inside, FMA4 if (lane < 2 * few) { FMA16 if (lane < few) { FMA16 } })
LOOP(loaded, FMA4 if (lane < few) { value += shared[lane]; FMA16 })
LOOP(stored, FMA4 if (lane < few) { shared[lane] = value; FMA16 })
LOOP(trips, FMA4 _Pragma("unroll 1") for (int trip = 0; trip < (lane < few ? 8 : 4); trip++) { FMA4 })
LOOP(leaves, FMA4 _Pragma("unroll 1") for (int trip = 0; trip < 8; trip++) { FMA4 if (trip >= lane - few + 1) break; })
LOOP(meets, FMA4 if (lane < few) { FMA16 } __syncthreads();)
LOOP(only_meets, FMA4 __syncthreads();)
LOOP(meets_warp, FMA4 if (lane < few) { FMA16 } __syncwarp();)

template <typename K>
static void run(const char *name, K kernel) {
    for (int warps : {1, 4, 8})
        for (int few : {0, 1, 2, 8, 16, 31, 32}) {
            kernel<<<1, 32 * warps>>>(out, 1.5f, few);
            kernel<<<1, 32 * warps>>>(out, 1.5f, few);
            CHECK(cudaGetLastError());
            printf("branches kernel=%s warps=%d few=%d iterations=%d : %llu\n", name, warps, few, ITERATIONS, fetched(1)[0]);
        }
}
#define RUN(name) run(#name, name);

int main() {
    CHECK(cudaMalloc(&out, 64));
    RUN(nothing) RUN(whole) RUN(one_way) RUN(two_ways) RUN(twice) RUN(inside) RUN(loaded) RUN(stored) RUN(trips) RUN(leaves)
    RUN(meets) RUN(only_meets) RUN(meets_warp)
}
