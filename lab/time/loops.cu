// What it takes that code comes: cycles of an iteration of loops of many instructions, by how many warps execute them
// (docs/validation/loops.json).
#include "clocked.cuh"

#define ITERATIONS 64

template <int N> DEV void ffmas(float (&a)[16]) {
#pragma unroll
    for (int k = 0; k < N; k++) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(a[k % 16]));
}

// An iteration of `body`. What is between the clocks is the same code for all but that.
template <class Body> __global__ void __launch_bounds__(1024) loop(u64 *out, float value, int skips) {
    float a[16];
    for (int i = 0; i < 16; i++) a[i] = value + i;
    u64 before = 0;
#pragma unroll 1
    for (int step = -4; step < ITERATIONS; step++) {
        if (!step) before = now();
        Body::run(a, skips);
    }
    u64 after = now();
    float sum = 0;
    for (int i = 0; i < 16; i++) sum += a[i];
    if (sum == 77) out[99] = 1;
    if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = before, out[32 + threadIdx.x / 32] = after;
}

template <int N> struct Straight {
    DEV void run(float (&a)[16], int) { ffmas<N>(a); }
};
// N instructions in so many pieces, after each of which so many are jumped over.
template <int N, int PIECES, int OVER> struct Jumps {
    DEV void run(float (&a)[16], int skips) {
#pragma unroll
        for (int piece = 0; piece < PIECES; piece++) {
            ffmas<N / PIECES>(a);
            if (!skips) {
                ffmas<OVER>(a);
                asm volatile("membar.cta;");  // so that it is a jump
            }
        }
    }
};
// An inner loop of N instructions, executed so often, within one of OUTER more.
template <int N, int TIMES, int OUTER> struct Nested {
    DEV void run(float (&a)[16], int) {
#pragma unroll 1
        for (int time = 0; time < TIMES; time++) ffmas<N>(a);
        ffmas<OUTER>(a);
    }
};

template <class Body> static void run(const char *name, int n, int pieces, int over) {
    for (int warps : {1, 4, 8, 16, 32}) {
        u64 least = ~0ull, of_one = 0;  // of all, from the first clock to the last, and of the slowest
        for (int time = 0; time < 3; time++) {
            loop<Body><<<1, 32 * warps>>>(out, 1.5f, 1);
            CHECK(cudaGetLastError());
            auto found = fetched(64);
            u64 *before = &found[0], *after = &found[32], slowest = 0;
            for (int warp = 0; warp < warps; warp++) slowest = std::max(slowest, after[warp] - before[warp]);
            u64 all = *std::max_element(after, after + warps) - *std::min_element(before, before + warps);
            if (all < least) least = all, of_one = slowest;
        }
        printf("%s n=%d pieces=%d over=%d warps=%d : %.2f %.2f\n", name, n, pieces, over, warps, double(least) / ITERATIONS,
               double(of_one) / ITERATIONS);
    }
}
template <int N> static void straight() { run<Straight<N>>("straight", N, 1, 0); }
template <int N, int PIECES, int OVER> static void jumps() { run<Jumps<N, PIECES, OVER>>("jumps", N, PIECES, OVER); }
template <int N, int TIMES, int OUTER> static void nested() { run<Nested<N, TIMES, OUTER>>("nested", N, TIMES, OUTER); }

int main() {
    CHECK(cudaMalloc(&out, 4096));
    straight<16>(), straight<32>(), straight<64>(), straight<80>(), straight<96>(), straight<104>(), straight<112>();
    straight<116>(), straight<120>(), straight<124>(), straight<128>(), straight<132>(), straight<136>(), straight<144>();
    straight<160>(), straight<192>(), straight<224>(), straight<256>(), straight<320>(), straight<328>(), straight<336>();
    straight<344>(), straight<352>(), straight<360>(), straight<368>(), straight<376>(), straight<384>(), straight<512>();
    straight<768>(), straight<1024>(), straight<1536>(), straight<1792>(), straight<1984>(), straight<2048>(), straight<2112>(), straight<3072>(), straight<4096>();
    straight<6144>(), straight<8192>(), straight<12288>();
    jumps<64, 1, 8>(), jumps<64, 1, 32>(), jumps<64, 1, 128>(), jumps<64, 2, 16>(), jumps<64, 2, 64>(), jumps<64, 2, 256>();
    jumps<64, 4, 16>(), jumps<64, 4, 64>(), jumps<64, 4, 256>(), jumps<64, 8, 16>(), jumps<64, 8, 256>();
    jumps<256, 2, 64>(), jumps<256, 4, 16>(), jumps<256, 4, 64>(), jumps<256, 4, 256>(), jumps<256, 8, 16>(), jumps<256, 8, 64>();
    jumps<1024, 4, 16>(), jumps<1024, 4, 256>(), jumps<1024, 8, 16>(), jumps<1024, 8, 64>(), jumps<1024, 8, 256>();
    jumps<1024, 16, 16>(), jumps<1024, 16, 64>(), jumps<4096, 16, 64>(), jumps<4096, 16, 256>();
    nested<32, 4, 64>(), nested<32, 4, 256>(), nested<64, 4, 128>(), nested<64, 4, 512>(), nested<96, 4, 512>(), nested<128, 4, 512>();
    nested<256, 4, 512>();
}
