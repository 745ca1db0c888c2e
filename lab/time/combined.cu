// Which multiprocessors' requests for the same sectors are combined on their way to L2, how far apart in time they may
// be, which half of L2 each is at, and which multiprocessor a block is started on (docs/validation/combined.json).
#include "clocked.cuh"

static const int MOST = 132;
// Each multiprocessor has one block of these, as it takes more than half of the shared memory.
static const int SHARED = 120 << 10;

// The multiprocessors of `turn` that are not negative read the same `bytes`: each so many cycles after all have come.
__global__ void __launch_bounds__(512) read_in_turn(const char *from, u64 *out, const int *turn, int members, u32 bytes, u32 *arrived) {
    u32 sm;
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    int delay = turn[sm];
    if (delay < 0) return;
    if (!threadIdx.x) {
        atomicAdd(arrived, 1);
        while (*(volatile u32 *)arrived < members) __nanosleep(500);
        u64 t, until;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(until)::"memory");
        until = (until + 8192) & ~4095ull;  // all read the timer less than 4 us apart, so most mean the same time
        do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
        while (t < until);
        u64 begun = now();
        while (now() - begun < delay);
    }
    __syncthreads();
    u32 sum = 0;
    u64 before = now();
#pragma unroll 1
    for (u32 i = 0, at = threadIdx.x * 16; i < bytes; i += 65536, at += 65536) {
        uint4 v[8];
#pragma unroll
        for (int k = 0; k < 8; k++) v[k] = __ldcg((const uint4 *)(from + at + k * 8192));
#pragma unroll
        for (int k = 0; k < 8; k++) sum ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
    }
    if (sum == 77) out[1 << 16] = sum;
    __syncthreads();
    if (!threadIdx.x) out[sm] = now() - before;
}
__global__ void __launch_bounds__(1024) where(u64 *out) {
    u32 sm;
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    u64 t = now();
    if (!threadIdx.x) out[blockIdx.x] = sm;
    while (now() - t < 20000);
}

static int *turns;
static u32 *arrived;
static int number;
static void read_by(const char *name, const std::vector<int> &turn, u32 bytes) {
    int members = MOST - std::count(turn.begin(), turn.end(), -1);
    CHECK(cudaMemcpy(turns, turn.data(), MOST * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(arrived, 0, 4));
    CHECK(cudaMemset(out, 0, MOST * 8));
    read_in_turn<<<MOST, 512, SHARED>>>(memory, out, turns, members, bytes, arrived);
    CHECK(cudaGetLastError());
    auto t = fetched(MOST);
    printf("%s number=%d members=%d bytes=%u : %llu\n", name, number++, members, bytes, *std::max_element(t.begin(), t.end()));
}
static void placed(int grid, int threads, int shared) {
    CHECK(cudaFuncSetAttribute(where, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    where<<<grid, threads, shared>>>(out);
    auto sm = fetched(grid);
    printf("placed grid=%d threads=%d shared=%d :", grid, threads, shared);
    for (u64 one : sm) printf(" %llu", one);
    printf("\n");
}
int main(int count, char **given) {
    start();
    CHECK(cudaMalloc(&turns, MOST * 4));
    CHECK(cudaMalloc(&arrived, 4));
    CHECK(cudaFuncSetAttribute(read_in_turn, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
    bool is_cold = count > 1 && std::string(given[1]) == "cold";
    char text[200];
    if (count == 1) {
        for (int grid : {8, 64, 132, 264})
            for (int shared : {200 << 10, 100 << 10, 50 << 10, 20 << 10}) placed(grid, 256, shared);
        for (int grid : {64, 264, 1024}) placed(grid, 1024, 0), placed(grid, 128, 0);
    }
    u32 bytes = 256 << 10;
    read_by("first", std::vector<int>(MOST, 0), bytes);
    std::vector<int> firsts = is_cold ? std::vector<int>{0} : std::vector<int>{0, 71};
    for (int first : firsts)  // cold: the other one long before, so that what it asked for has come
        for (int other = 0; other < MOST; other++) {
            std::vector<int> turn(MOST, -1);
            turn[other] = 0, turn[first] = is_cold ? 40000 : 0;
            sprintf(text, "pair first=%d other=%d", first, other);
            read_by(text, turn, bytes);
        }
    if (is_cold) return 0;
    for (int other : {1, 2, 16, 18})
        for (int delay : {0, 25, 50, 100, 150, 200, 250, 300, 350, 400, 500, 600, 800, 1000, 1500, 2000, 4000}) {
            std::vector<int> turn(MOST, -1);
            turn[0] = 0, turn[other] = delay;
            sprintf(text, "delay other=%d delay=%d", other, delay);
            read_by(text, turn, bytes);
        }
    for (int step : {1, 2, 4, 6, 8, 16})
        for (int many : {2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 132}) {
            if ((many - 1) * step >= MOST) continue;
            std::vector<int> turn(MOST, -1);
            for (int i = 0; i < many; i++) turn[i * step] = 0;
            sprintf(text, "every step=%d many=%d", step, many);
            read_by(text, turn, bytes);
        }
}
