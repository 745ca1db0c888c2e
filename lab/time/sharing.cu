// How fast L2 serves data that one multiprocessor reads, and that many read, by its size; how long a hop through it takes
// after one multiprocessor or all of them have read it; and what stores and atomics of a part of a sector cost
// (docs/validation/small_launches.json).
#include "clocked.cuh"

// All multiprocessors read `bytes` (a power of two), `rounds` times: the same, from different places on, or each its own.
template <class T>
__global__ void __launch_bounds__(1024) rate(const char *memory, u64 *out, u32 bytes, int rounds, u32 base, u32 ahead) {
    u64 before = now();
    u32 sum = 0, start = blockIdx.x * ahead;
    const char *from = memory + (size_t)(blockIdx.x & 127) * base;
    for (int round = 0; round < rounds; round++)
#pragma unroll 4
        for (u32 i = threadIdx.x * sizeof(T); i < bytes; i += 1024 * sizeof(T)) {
            T v = __ldcg((const T *)(from + ((i + start) & (bytes - 1))));
            sum ^= *(u32 *)&v;
        }
    if (sum == 77) out[1 << 16] = sum;
    __syncthreads();
    u64 after = now();
    if (!threadIdx.x) out[blockIdx.x] = after - before;
}
template <class T>
static void rates(const char *width) {
    for (u32 kilobytes = 64; kilobytes <= 32768; kilobytes *= 2)
        for (int grid : {1, 2, 8, 33, 66, 132})
            for (const char *mode : {"same", "rotated", "apart"}) {
                u32 total = kilobytes << 10, bytes = *mode == 'a' ? total / 128 : total;
                if (bytes < 4096) continue;
                u32 base = *mode == 'a' ? bytes : 0, ahead = *mode == 'r' ? total / 132 / 512 * 512 : 0;
                int rounds = std::max(1u, (1u << 20) / bytes);
                for (int pass = 0; pass < 3; pass++) rate<T><<<grid, 1024>>>(memory, out, bytes, rounds, base, ahead);
                auto t = fetched(grid);
                double mean = 0, moved = (double)bytes * rounds;
                for (u64 one : t) mean += moved / one / grid;
                printf("rate width=%s kilobytes=%u grid=%d mode=%s : %.2f %.2f\n", width, kilobytes, grid, mode, mean,
                       moved / *std::max_element(t.begin(), t.end()));
            }
}

// One thread of a block on one multiprocessor follows pointers.
const int TAKEN = 1 << 20;
static u64 launches = 0;
__global__ void follow(u64 first, u64 *out, int hops, u32 multiprocessor, u64 launch) {
    extern __shared__ u32 took[];
    u32 sm;
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    if (sm != multiprocessor || threadIdx.x || atomicMax(out + TAKEN, launch) == launch) return;
    u64 at = first;
    for (int i = 0; i < hops; i++) {
        u64 before = now();
        asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(at) : "l"(at) : "memory");
        if (at == 1) took[0] = 0;
        took[i] = u32(now() - before);
    }
    for (int i = 0; i < hops; i++) out[i] = took[i];
}
static void make_chain(size_t bytes, int count) {
    size_t stride = bytes / count;
    std::vector<u32> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::mt19937 random(1);
    std::shuffle(order.begin() + 1, order.end(), random);
    std::vector<char> host(bytes, 0);
    for (int i = 0; i < count; i++) *(u64 *)&host[order[i] * stride] = (u64)(memory + order[(i + 1) % count] * stride);
    CHECK(cudaMemcpy(memory, host.data(), bytes, cudaMemcpyHostToDevice));
}
static void tell(const char *text, std::vector<u64> took) {
    double sum = 0;
    for (u64 t : took) sum += t;
    std::sort(took.begin(), took.end());
    size_t n = took.size();
    printf("%s : %.1f %llu %llu %llu %llu %llu %llu %llu\n", text, sum / n, took[0], took[n / 10], took[n / 4], took[n / 2],
           took[3 * n / 4], took[9 * n / 10], took[n - 1]);
}
static void flush() {
    CHECK(cudaMemset(memory + BYTES / 2, 1, BYTES / 2));
    CHECK(cudaMemset(memory + BYTES / 2, 0, BYTES / 2));
}
static void hops() {
    const int N = 2048;
    CHECK(cudaFuncSetAttribute(follow, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
    char text[200];
    auto one = [&](u32 sm) { follow<<<1024, 32, 100 << 10>>>((u64)memory, out, N, sm, ++launches); };
    for (u32 kilobytes = 64; kilobytes <= 32768; kilobytes *= 8)
        for (u32 sm : {0, 40, 100}) {
            make_chain(kilobytes << 10, N);
            flush();
            one(sm);  // from DRAM
            sprintf(text, "hops kilobytes=%u sm=%u after=flush", kilobytes, sm), tell(text, fetched(N));
            one(sm);
            sprintf(text, "hops kilobytes=%u sm=%u after=own", kilobytes, sm), tell(text, fetched(N));
            for (int pass = 0; pass < 2; pass++) rate<uint4><<<132, 1024>>>(memory, out, kilobytes << 10, 4, 0, 0);
            one(sm);
            sprintf(text, "hops kilobytes=%u sm=%u after=all", kilobytes, sm), tell(text, fetched(N));
        }
    for (u32 other = 0; other < 132; other += 3) {  // who else has read it, once, and nobody else
        make_chain(1 << 20, N);
        flush();
        one(other);
        one(0);
        sprintf(text, "hops kilobytes=1024 sm=0 after=%u", other), tell(text, fetched(N));
    }
}

// Stores and reductions of W bytes by each lane, `apart` bytes from the next lane's, and as many warps' sectors apart.
template <class T>
__global__ void __launch_bounds__(256) stores(char *to, u64 *out, int rounds, u32 apart, u32 step) {
    u64 before = now();
    char *at = to + (size_t)(blockIdx.x * blockDim.x + threadIdx.x) * apart;
    for (int i = 0; i < rounds; i++) *(volatile T *)(at + (size_t)i * step) = T(i);
    __threadfence();
    __syncthreads();
    if (!threadIdx.x) out[blockIdx.x] = now() - before;
}
__global__ void __launch_bounds__(256) reductions(char *to, u64 *out, int rounds, u32 apart, u32 of_warp, u32 step) {
    u64 before = now();
    u32 warp = blockIdx.x * blockDim.x / 32 + threadIdx.x / 32;
    char *at = to + (size_t)warp * of_warp + threadIdx.x % 32 * apart;
    for (int i = 0; i < rounds; i++) asm volatile("red.global.add.u32 [%0], 1;" ::"l"(at + (size_t)i * step) : "memory");
    __threadfence();
    __syncthreads();
    if (!threadIdx.x) out[blockIdx.x] = now() - before;
}
__global__ void __launch_bounds__(256) atomics(char *to, u64 *out, int rounds, u32 apart, u32 of_warp, u32 step) {
    u64 before = now();
    u32 warp = blockIdx.x * blockDim.x / 32 + threadIdx.x / 32, found = 0;
    char *at = to + (size_t)warp * of_warp + threadIdx.x % 32 * apart;
    for (int i = 0; i < rounds; i++) {
        u32 one;
        asm volatile("atom.global.add.u32 %0, [%1], 1;" : "=r"(one) : "l"(at + (size_t)i * step + (found == 77777)) : "memory");
        found = one;
    }
    __syncthreads();
    if (!threadIdx.x) out[blockIdx.x] = now() - before;
}
template <class T>
static void stores_of(const char *width) {
    for (int grid : {1, 132, 528})
        for (u32 apart : {(u32)sizeof(T), 8u, 32u, 64u}) {
            if (apart < sizeof(T)) continue;
            for (int rounds : {4, 32}) {
                u32 step = (u32)grid * 256 * apart;
                for (int again = 0; again < 2; again++) {
                    for (int pass = 0; pass < 2; pass++) stores<T><<<grid, 256>>>(memory, out, rounds, apart, again ? 0 : step);
                    auto t = fetched(grid);
                    printf("stores width=%s grid=%d apart=%u rounds=%d again=%d : %llu\n", width, grid, apart, rounds, again,
                           *std::max_element(t.begin(), t.end()));
                }
            }
        }
}
static void at_l2() {
    stores_of<unsigned char>("1");
    stores_of<u32>("4");
    stores_of<u64>("8");
    for (int grid : {1, 8, 132, 528})
        for (u32 apart : {0, 4, 32})
            for (u32 of_warp : {0, 1024})
                for (int rounds : {4, 32}) {
                    for (int pass = 0; pass < 2; pass++) reductions<<<grid, 256>>>(memory, out, rounds, apart, of_warp, 0);
                    auto t = fetched(grid);
                    u64 red = *std::max_element(t.begin(), t.end());
                    for (int pass = 0; pass < 2; pass++) atomics<<<grid, 256>>>(memory, out, rounds, apart, of_warp, 0);
                    t = fetched(grid);
                    printf("atomics grid=%d apart=%u of_warp=%u rounds=%d : %llu %llu\n", grid, apart, of_warp, rounds, red,
                           *std::max_element(t.begin(), t.end()));
                }
}

int main() {
    start();
    hops();
    rates<uint4>("16");
    rates<u32>("4");
    at_l2();
}
