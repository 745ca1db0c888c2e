// Latencies of L1, L2 and DRAM hop by hop, L1's size and policy, and when blocks start on a multiprocessor.
#include "clocked.cuh"

DEV u64 load(u64 at, bool past_l1) {
    u64 found;
    if (past_l1) asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(found) : "l"(at) : "memory");
    else asm volatile("ld.global.u64 %0, [%1];" : "=l"(found) : "l"(at) : "memory");
    return found;
}
// Where the number of the last launch is, of which one block is enough.
const int TAKEN = 1 << 20;
static u64 launches = 0;
// One thread follows pointers: `warm` hops from `first`, then from there again `hops` timed ones, two hops unrolled.
__global__ void follow(u64 first, u64 *out, int warm, int hops, bool past_l1, u32 multiprocessor, u64 launch) {
    extern __shared__ u32 took[];
    u32 sm;
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    if (sm != multiprocessor || threadIdx.x || atomicMax(out + TAKEN, launch) == launch) return;
    u64 at = first;
    for (int i = 0; i < warm; i++) at = load(at, past_l1);
    if (warm) at = first + (at == 1);
    for (int i = 0; i < hops; i++) {
        u64 before = now();
        at = load(at, past_l1);
        if (at == 1) took[0] = 0;
        u64 after = now();
        took[i] = u32(after - before);
    }
    for (int i = 0; i < hops; i++) out[i] = took[i];
}
// Writes over the L2 cache.
static void flush() {
    CHECK(cudaMemset(memory + BYTES / 2, 1, BYTES / 2));
    CHECK(cudaMemset(memory + BYTES / 2, 0, BYTES / 2));
}
// A chain through places `stride` bytes apart, in order or not.
static void make_chain(size_t bytes, size_t stride, bool shuffled) {
    size_t count = bytes / stride;
    std::vector<u32> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::mt19937 random(1);
    if (shuffled) std::shuffle(order.begin() + 1, order.end(), random);
    std::vector<char> host(bytes, 0);
    for (size_t i = 0; i < count; i++)
        *(u64 *)&host[order[i] * stride] = (u64)(memory + order[(i + 1) % count] * stride);
    CHECK(cudaMemcpy(memory, host.data(), bytes, cudaMemcpyHostToDevice));
}
static void tell(const char *what, std::vector<u64> took) {
    double sum = 0;
    for (u64 t : took) sum += t;
    std::sort(took.begin(), took.end());
    size_t n = took.size();
    printf("%s : %.1f %llu %llu %llu %llu %llu %llu %llu\n", what, sum / n, took[0], took[n / 10], took[n / 4], took[n / 2],
           took[3 * n / 4], took[9 * n / 10], took[n - 1]);
}
static void hops() {
    const int N = 8192;
    CHECK(cudaFuncSetAttribute(follow, cudaFuncAttributeMaxDynamicSharedMemorySize, 4 * N));
    char text[200];
    for (size_t megabytes : {1, 4, 16, 32, 128, 400})
        for (int cold = 0; cold < 2; cold++)
            for (u32 sm : {0, 1, 40, 100}) {
                make_chain(megabytes << 20, megabytes << 20 >> 13, true);
                if (cold) flush();
                for (int pass = 0; pass < (cold ? 1 : 2); pass++) follow<<<1024, 32, 4 * N>>>((u64)memory, out, 0, N, true, sm, ++launches);
                sprintf(text, "hops megabytes=%zu cold=%d sm=%u", megabytes, cold, sm);
                tell(text, fetched(N));
            }
}
// The share of hits of a second pass over so many bytes; by the shared memory that is taken.
static void sizes() {
    for (int shared : {16, 32, 64, 100, 132, 164, 196, 227})
        for (int kilobytes = 8; kilobytes <= 256; kilobytes += 8)
            for (int shuffled = 0; shuffled < 2; shuffled++) {
                int hops = kilobytes * 8;
                make_chain(kilobytes * 1024, 128, shuffled);
                CHECK(cudaFuncSetAttribute(follow, cudaFuncAttributeMaxDynamicSharedMemorySize, shared * 1024));
                follow<<<1024, 32, shared * 1024>>>((u64)memory, out, hops, hops, false, 0, ++launches);
                auto took = fetched(hops);
                int hits = std::count_if(took.begin(), took.end(), [](u64 t) { return t < 120; });
                printf("size shared=%d kilobytes=%d shuffled=%d : %d %d\n", shared, kilobytes, shuffled, hits, hops);
            }
    CHECK(cudaFuncSetAttribute(follow, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024));
    for (int stride = 256; stride <= 65536; stride *= 2)
        for (int lines : {2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 192, 256, 384, 512}) {
            make_chain((size_t)stride * lines, stride, false);
            follow<<<1024, 32, 100 * 1024>>>((u64)memory, out, lines, lines, false, 0, ++launches);
            auto took = fetched(lines);
            int hits = std::count_if(took.begin(), took.end(), [](u64 t) { return t < 120; });
            printf("ways stride=%d lines=%d : %d %d\n", stride, lines, hits, lines);
        }
}
// Cycles of loads after other accesses to the same line.
__global__ void policy(char *memory, u64 *out) {
    if (threadIdx.x) return;
    int n = 0;
#define TIMED(offset) { u64 t = now(); u64 x = load((u64)memory + (offset), false); if (x == 77) out[100] = x; u64 e = now(); out[n++] = e - t; }
    for (int i = 0; i < 4; i++) {
        memory += 4096;
        n = i * 16;
        TIMED(0) TIMED(0) TIMED(8) TIMED(32) TIMED(64) TIMED(96)         // a line's sectors
        *(volatile u32 *)(memory + 1024) = 1; __threadfence();
        TIMED(1024) TIMED(1024)                                          // a load after a store that missed
        *(u32 *)(memory + 1024) = 2;
        TIMED(1024)                                                      // after a store that hit
        atomicAdd((u32 *)(memory + 1024), 1u);
        TIMED(1024)                                                      // after an atomic
        TIMED(2048) __threadfence(); TIMED(2048)                         // after a fence
        asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(*(u32 *)&out[200]) : "l"(memory + 2048) : "memory");
        TIMED(2048)                                                      // after a load past L1
    }
}
// Each block's multiprocessor, first and last cycle, by a clock that all share (ns) and by its own.
__global__ void blocks(u64 *out, int cycles) {
    u64 start = now(), at, sm = 0;
    if (!threadIdx.x) {
        u32 id;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
        sm = id;
    }
    do at = now();
    while (at < start + cycles);
    if (!threadIdx.x) {
        out[3 * blockIdx.x] = sm;
        out[3 * blockIdx.x + 1] = start;
        out[3 * blockIdx.x + 2] = now();
    }
}
static void starts() {
    for (int threads : {32, 128, 256, 512, 1024})
        for (int shared : {0, 24, 100})
            for (int waves : {1, 8, 40})
                for (int cycles : {0, 2000}) {
                    CHECK(cudaFuncSetAttribute(blocks, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024));
                    for (int pass = 0; pass < 2; pass++) blocks<<<132 * waves, threads, shared * 1024>>>(out, cycles);
                    auto t = fetched(3 * 132 * waves);
                    std::vector<std::pair<u64, u64>> own;
                    for (int i = 0; i < 132 * waves; i++)
                        if (t[3 * i] == t[0]) own.push_back({t[3 * i + 1], t[3 * i + 2]});
                    std::sort(own.begin(), own.end());
                    printf("blocks threads=%d shared=%d waves=%d cycles=%d :", threads, shared, waves, cycles);
                    for (size_t i = 0; i < own.size() && i < 48; i++)
                        printf(" %llu %llu", own[i].first - own[0].first, own[i].second - own[0].first);
                    printf("\n");
                }
}
// How a multiprocessor's and all multiprocessors' loads of 16 bytes a lane come from L2: bytes in flight.
__global__ void __launch_bounds__(1024) stream(const char *memory, u64 *out, int rounds, int each, int lines) {
    u64 before = now();
    u32 sum = 0;
    const char *from = memory + (size_t)blockIdx.x * lines * 512 + threadIdx.x % 32 * 16;
    for (int round = 0; round < rounds; round++)
        for (int i = threadIdx.x / 32; i < lines; i += blockDim.x / 32) {
            uint4 v = __ldcg((const uint4 *)(from + i * 512));
            sum ^= v.x ^ v.y ^ v.z ^ v.w;
        }
    if (sum == 77) out[1] = sum;
    u64 after = now();
    if (!threadIdx.x) out[2 * blockIdx.x] = before, out[2 * blockIdx.x + 1] = after;
}
static void streams() {
    for (int grid : {1, 2, 8, 66, 132})
        for (int warps : {1, 2, 4, 8, 16, 32}) {
            for (int pass = 0; pass < 2; pass++) stream<<<grid, 32 * warps>>>(memory, out, 4, 1, 256);
            auto t = fetched(2);
            printf("stream grid=%d warps=%d : %.3f\n", grid, warps, 4 * 256 * 16.0 / (t[1] - t[0]));
        }
}

int main() {
    start();
    hops();
    sizes();
    for (int pass = 0; pass < 2; pass++) policy<<<1, 32>>>(memory + (4 << 20) * pass, out);
    auto t = fetched(64);
    for (int i = 0; i < 4; i++) {
        printf("policy try=%d :", i);
        for (int j = 0; j < 12; j++) printf(" %llu", t[16 * i + j]);
        printf("\n");
    }
    starts();
    streams();
}
