// How far L2 and DRAM are from each multiprocessor, how fast many multiprocessors read the same from L2, and how fast
// DRAM serves pieces of rows (docs/validation/reads.json). L2 is flushed by reading, so that nothing waits to be written.
#include "clocked.cuh"

__global__ void read_all(const uint4 *from, size_t count, u64 *out) {
    u32 sum = 0;
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        uint4 v = __ldcg(from + i);
        sum ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    if (sum == 77) out[1 << 16] = sum;
}
static void flush() { read_all<<<264, 1024>>>((const uint4 *)(memory + BYTES / 2), BYTES / 2 / 16, out); }

// One thread on each multiprocessor follows pointers, one multiprocessor after the other or all at once.
__global__ void follow(u64 first, u64 *out, int hops, int only) {
    u32 sm;
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    if (only >= 0 && sm != only) return;
    u64 at = first, before = now();
    for (int i = 0; i < hops; i++) asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(at) : "l"(at) : "memory");
    u64 after = now();
    out[sm] = at == 1 ? 0 : after - before;
}
static void distances() {
    const int N = 1024, MANY = 132;
    const size_t bytes = 4 << 20, stride = bytes / N;
    std::vector<u32> order(N);
    std::iota(order.begin(), order.end(), 0);
    std::mt19937 random(1);
    std::shuffle(order.begin() + 1, order.end(), random);
    std::vector<char> host(bytes, 0);
    for (int i = 0; i < N; i++) *(u64 *)&host[order[i] * stride] = (u64)(memory + order[(i + 1) % N] * stride);
    CHECK(cudaMemcpy(memory, host.data(), bytes, cudaMemcpyHostToDevice));
    for (int only = 0; only < MANY; only++) {
        flush();
        follow<<<MANY, 32>>>((u64)memory, out, N, only);
        u64 cold = fetched(MANY)[only];
        follow<<<MANY, 32>>>((u64)memory, out, N, only);
        printf("distance sm=%d : %.1f %.1f\n", only, double(cold) / N, double(fetched(MANY)[only]) / N);
    }
}

// Blocks of 512 threads read `bytes` in steps of 64 KiB; so many of them the same, each `skew` bytes further on.
__global__ void __launch_bounds__(512) reads(const char *memory, u64 *out, u32 bytes, int sharers, u32 skew) {
    const char *from = memory + (size_t)(blockIdx.x / sharers) * bytes;
    u32 at = (blockIdx.x % sharers) * skew + threadIdx.x * 16, sum = 0;
    u64 before = now();
#pragma unroll 1
    for (u32 i = 0; i < bytes; i += 65536, at += 65536) {
        uint4 v[8];
#pragma unroll
        for (int k = 0; k < 8; k++) v[k] = __ldcg((const uint4 *)(from + ((at + k * 8192) & (bytes - 1))));
#pragma unroll
        for (int k = 0; k < 8; k++) sum ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
    }
    if (sum == 77) out[1 << 16] = sum;
    __syncthreads();
    u64 after = now();
    if (!threadIdx.x) out[blockIdx.x] = after - before;
}

// Blocks of 128 threads add up columns: pieces of `piece` bytes of rows of `pitch`, AHEAD loads of 16 bytes a thread at once.
template <int AHEAD>
__global__ void __launch_bounds__(128) columns(const char *memory, u64 *out, int piece, size_t pitch, int rows) {
    int lanes = piece / 16, of_step = 128 / lanes, of_row = pitch / piece;
    const char *from = memory + (blockIdx.x / of_row * rows + threadIdx.x / lanes) * pitch + blockIdx.x % of_row * piece + threadIdx.x % lanes * 16;
    u32 sum = 0;
    u64 before = now();
#pragma unroll 1
    for (int row = 0; row < rows; row += of_step * AHEAD, from += of_step * AHEAD * pitch) {
        uint4 v[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) v[k] = __ldcg((const uint4 *)(from + k * of_step * pitch));
#pragma unroll
        for (int k = 0; k < AHEAD; k++) sum ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
    }
    if (sum == 77) out[1 << 16] = sum;
    __syncthreads();
    u64 after = now();
    if (!threadIdx.x) out[blockIdx.x] = after - before;
}
static void tell(const char *text, int grid) {
    auto t = fetched(grid);
    double mean = std::accumulate(t.begin(), t.end(), 0.0) / grid;
    printf("%s : %.0f %llu %llu\n", text, mean, *std::min_element(t.begin(), t.end()), *std::max_element(t.begin(), t.end()));
}

static int number;
int main(int count, char **) {
    start();
    char text[200];
    if (count == 1) distances();
    for (int grid : {1, 8, 33, 66, 132})
        for (int sharers : {1, 2, 4, 8, 16, 33, 132})
            for (u32 skew : {0u, 8192u, 32768u, 65536u}) {
                u32 bytes = 128 << 10;
                if (sharers > grid || (skew && sharers == 1) || (grid < 132 && skew)) continue;
                for (int pass = 0; pass < 2; pass++) reads<<<grid, 512>>>(memory, out, bytes, sharers, skew);
                CHECK(cudaGetLastError());
                sprintf(text, "reads number=%d grid=%d sharers=%d skew=%u bytes=%u", number, grid, sharers, skew, bytes);
                number += 2, tell(text, grid);
            }
    for (size_t pitch : {256, 512, 1024, 1280, 2048, 4096, 4352, 8192, 8448, 16384, 16640, 32768})
        for (int piece : {32, 64, 128, 256, 512})
            for (int ahead : {1, 2, 4})
                for (int warm : {0, 1}) {
                    int grid = 64, rows = 1024;
                    if (piece > pitch) continue;
                    if (!warm) flush();
                    if (ahead == 1) columns<1><<<grid, 128>>>(memory, out, piece, pitch, rows);
                    if (ahead == 2) columns<2><<<grid, 128>>>(memory, out, piece, pitch, rows);
                    if (ahead == 4) columns<4><<<grid, 128>>>(memory, out, piece, pitch, rows);
                    CHECK(cudaGetLastError());
                    sprintf(text, "columns number=%d pitch=%zu piece=%d ahead=%d warm=%d", number++, pitch, piece, ahead, warm);
                    tell(text, grid);
                }
}
