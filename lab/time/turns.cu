// Which warp a scheduler takes: when each warp of one multiprocessor began each piece of the same work, in cycles since
// the first of them did (docs/validation/turns.json). Pieces of a block follow a barrier.
#include "clocked.cuh"

#define PIECES 16
#define ITERATIONS 32
#define FMA(x) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x))

// A piece is N FFMA on CHAIN registers in turn; WAITS: the first of them waits for a load of shared memory.
template <int CHAIN, int N, bool WAITS> __global__ void __launch_bounds__(1024) pieces(u64 *out, float value) {
    __shared__ volatile float shared[1024];
    shared[threadIdx.x] = value;
    float a[16];
    for (int i = 0; i < 16; i++) a[i] = value + i;
    u64 began[PIECES];
#pragma unroll 1
    for (int time = 0; time < 4; time++) {  // the last one is kept
        __syncthreads();
#pragma unroll
        for (int piece = 0; piece < PIECES; piece++) {
            began[piece] = now();
            if (WAITS) a[0] += shared[threadIdx.x];
#pragma unroll
            for (int k = 0; k < N; k++) FMA(a[(piece * N + k) % CHAIN]);
        }
    }
    float sum = 0;
    for (int i = 0; i < 16; i++) sum += a[i];
    if (threadIdx.x % 32 == 0)
        for (int piece = 0; piece < PIECES; piece++) out[threadIdx.x / 32 * PIECES + piece] = began[piece];
    if (sum == 77) out[0] = 0;
}

// A piece is an iteration of a loop of N FFMA.
template <int N> __global__ void __launch_bounds__(1024) loop(u64 *out, float value) {
    float a[16];
    for (int i = 0; i < 16; i++) a[i] = value + i;
    u64 began = 0;
    const int lane = threadIdx.x % 32;
    __syncthreads();
#pragma unroll 1
    for (int step = 0; step < ITERATIONS; step++) {
        u64 time = now();
        if (step == lane) began = time;
#pragma unroll
        for (int k = 0; k < N; k++) FMA(a[k % 16]);
    }
    float sum = 0;
    for (int i = 0; i < 16; i++) sum += a[i];
    out[threadIdx.x] = began;
    if (sum == 77) out[0] = 0;
}

// Blocks of 32 warps, two on a multiprocessor, each of which multiplies what it loads from shared memory, between
// barriers. Their first warps tell when each iteration began, and where.
__global__ void __launch_bounds__(1024, 2) blocks(u64 *out, float value) {
    __shared__ volatile float shared[2048];
    for (int i = threadIdx.x; i < 2048; i += 1024) shared[i] = value;
    float sum = value;
    u64 began = 0;
#pragma unroll 1
    for (int step = 0; step < ITERATIONS; step++) {
        u64 time = now();
        if (step == threadIdx.x) began = time;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; k++) sum += shared[k * 32 + threadIdx.x % 32] * shared[1024 + threadIdx.x / 32 * 32 + k];
    }
    u32 where;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(where));
    if (threadIdx.x < ITERATIONS) out[blockIdx.x * (ITERATIONS + 1) + threadIdx.x] = began;
    if (threadIdx.x == 0) out[blockIdx.x * (ITERATIONS + 1) + ITERATIONS] = where;
    if (sum == 77) out[0] = 0;
}

static void print(const char *name, int chain, int n, int warps, int warp, const u64 *began, int count, u64 first) {
    printf("%s chain=%d n=%d warps=%d warp=%d :", name, chain, n, warps, warp);
    for (int i = 0; i < count; i++) printf(" %llu", began[i] - first);
    printf("\n");
}
// Those of the first scheduler; `first` is the earliest of the block.
static void print_all(const char *name, int chain, int n, int warps, int count) {
    auto found = fetched(warps * count);
    u64 first = *std::min_element(found.begin(), found.end());
    for (int warp = 0; warp < warps; warp += 4) print(name, chain, n, warps, warp, &found[warp * count], count, first);
}
template <int CHAIN, int N, bool WAITS> static void run_pieces() {
    for (int warps : {8, 16, 32}) {
        for (int time = 0; time < 2; time++) pieces<CHAIN, N, WAITS><<<1, 32 * warps>>>(out, 1.5f);
        CHECK(cudaGetLastError());
        print_all(WAITS ? "loads" : "pieces", CHAIN, N, warps, PIECES);
    }
}
template <int N> static void run_loop() {
    for (int warps : {8, 16, 32}) {
        for (int time = 0; time < 2; time++) loop<N><<<1, 32 * warps>>>(out, 1.5f);
        CHECK(cudaGetLastError());
        print_all("loop", 16, N, warps, ITERATIONS);
    }
}
static void run_blocks() {
    const int count = ITERATIONS + 1, many = 4 * 132;
    for (int time = 0; time < 2; time++) blocks<<<many, 1024>>>(out, 1.5f);
    CHECK(cudaGetLastError());
    auto found = fetched(many * count);
    u64 where = found[ITERATIONS], first = found[0];
    for (int block = 0, nth = 0; block < many; block++)
        if (found[block * count + ITERATIONS] == where) print("blocks", 1, 32, 32, nth++, &found[block * count], ITERATIONS, first);
}

int main() {
    start();
    run_pieces<16, 8, false>(), run_pieces<1, 4, false>(), run_pieces<2, 4, false>();
    run_pieces<16, 4, true>(), run_pieces<16, 16, true>();
    run_loop<8>(), run_loop<16>(), run_loop<32>(), run_loop<64>(), run_loop<256>();
    run_blocks();
}
