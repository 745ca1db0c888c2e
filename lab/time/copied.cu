// How long loads of shared memory wait for what copies write there when their data come (docs/validation/copied.json).
#include "clocked.cuh"

// Warp 0 loads shared memory, each time from where the last load says, and keeps how long each load took. The others copy
// `each` pieces of 4 bytes a lane at a time, all at once, `row` lanes from one line, to lanes `pitch` bytes apart, and wait
// until these are there.
__global__ void __launch_bounds__(1024) copied(const char *memory, u64 *out, int rounds, int each, int row, int pitch, int loads) {
    extern __shared__ __align__(128) char tile[];
    __shared__ volatile int done;
    int lane = threadIdx.x % 32, w = threadIdx.x / 32;
    u32 chain = (u32)__cvta_generic_to_shared(tile), own = chain + 1024 + (w - 1) * 128;
    if (!w) reinterpret_cast<u32 *>(tile)[lane] = chain + 4 * lane;
    if (!threadIdx.x) done = 0;
    __syncthreads();
    if (w) {
        const char *from = memory + (size_t)blockIdx.x % 8 * (1 << 24) + (w - 1) * (1 << 20) + lane / row * 4096 + lane % row * 4;
        for (int i = 0; i < rounds; i++) {
            for (int j = 0; j < each; j++)
                asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(own + lane * pitch), "l"(from + j * 128) : "memory");
            asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
            asm volatile("bar.sync 1, %0;" ::"r"(blockDim.x - 32) : "memory");
        }
        if (threadIdx.x == 32) done = 1;
        return;
    }
    u32 at = chain + 4 * lane;
    int n = 0;
    for (; n < loads && !(n % 16 == 0 && done); n++) {
        u64 before = now();
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(at) : "r"(at) : "memory");
        if (at == 1) break; // never: the clock is read when the load is done
        u64 after = now();
        if (!lane && !blockIdx.x) out[1 + n] = after - before;
    }
    if (!lane && !blockIdx.x) out[0] = n;
}

int main() {
    start();
    CHECK(cudaFuncSetAttribute(copied, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
    const int loads = 8192;
    for (int grid : {1, 132})
        for (auto [row, pitch] : {std::pair{32, 4}, {32, 8}, {32, 16}, {32, 32}, {32, 64}, {32, 128}, {8, 4}, {4, 4}, {2, 4}, {1, 4}, {8, 16}, {8, 32}})
            for (int warps : {1, 4, 8, 16})
                for (int each : {4, 16}) {
                    for (int warm = 0; warm < 2; warm++)
                        copied<<<grid, 32 * (1 + warps), 8 << 10>>>(memory, out, 256, each, row, pitch, loads);
                    auto t = fetched(1 + loads);
                    size_t n = t[0];
                    std::sort(t.begin() + 1, t.begin() + 1 + n);
                    auto share = [&](double part) { return t[1 + (size_t)(part * (n - 1))]; };
                    double mean = std::accumulate(t.begin() + 1, t.begin() + 1 + n, 0.0) / n;
                    printf("copied grid=%d row=%d pitch=%d warps=%d each=%d : %zu %.1f %llu %llu %llu %llu %llu\n", grid, row, pitch, warps, each, n,
                           mean, share(0), share(.5), share(.9), share(.99), share(1));
                }
}
