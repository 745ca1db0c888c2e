// How fast the engine of bulk copies (TMA) is, alone and on all multiprocessors, by the shape of its boxes and where the data
// are; how long warps take to hand something over at mbarriers, in a block and in a cluster (docs/validation/bulk_copies.json).
#include <cuda.h>
#include "mbarriers.cuh"

DEV void expect(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
DEV void wait(u32 barrier, u32 parity) {
    asm volatile("{.reg .pred p;\nAGAIN: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@!p bra AGAIN;}" ::"r"(barrier), "r"(parity) : "memory");
}
DEV void load_box(u32 to, const CUtensorMap *map, int x, int y, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(barrier) : "memory");
}
DEV void load_bytes(u32 to, const char *from, u32 bytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

// One thread copies `steps` boxes of `bytes` through `stages` places, another one waits for each and gives its place back. Box i
// of a block is at row (its number / sharing * apart + i % wrap) * rows. Cycles until the last one is there; and of the first one.
__global__ void __launch_bounds__(64) ring(const __grid_constant__ CUtensorMap map, const char *memory, u64 *out, int bytes, int rows,
                                           int steps, int stages, int apart, int wrap, int plain, int sharing) {
    const int place = (bytes + 127) / 128 * 128;
    extern __shared__ __align__(1024) char tiles[];
    __shared__ u64 full[16], empty[16];
    if (!threadIdx.x) {
        for (int i = 0; i < stages; i++) init(shared_address(full + i), 1), init(shared_address(empty + i), 1);
        asm volatile("fence.proxy.async;" ::: "memory");
    }
    __syncthreads();
    u32 base = (shared_address(tiles) + 1023) / 1024 * 1024;
    if (threadIdx.x == 0) {
        u64 before = now();
        for (int i = 0, stage = 0, parity = 1; i < steps; i++) {
            wait(shared_address(empty + stage), parity);
            expect(shared_address(full + stage), bytes);
            int box = blockIdx.x / sharing * apart + i % wrap;
            if (plain) load_bytes(base + stage * place, memory + (size_t)box * bytes, bytes, shared_address(full + stage));
            else load_box(base + stage * place, &map, 0, box * rows, shared_address(full + stage));
            if (++stage == stages) stage = 0, parity ^= 1;
        }
        out[3 * blockIdx.x] = before;
    } else if (threadIdx.x == 32) {
        for (int i = 0, stage = 0, parity = 0; i < steps; i++) {
            wait(shared_address(full + stage), parity);
            if (!i) out[3 * blockIdx.x + 1] = now();
            arrive(shared_address(empty + stage));
            if (++stage == stages) stage = 0, parity ^= 1;
        }
        out[3 * blockIdx.x + 2] = now();
    }
}
// The same the other way: `steps` boxes of shared memory to global memory, `ahead` groups under way.
template <int AHEAD>
__global__ void store_ring(const __grid_constant__ CUtensorMap map, char *memory, u64 *out, int bytes, int rows, int steps, int apart, int wrap, int plain) {
    extern __shared__ __align__(1024) char tiles[];
    u32 base = (shared_address(tiles) + 1023) / 1024 * 1024;
    if (threadIdx.x) return;
    u64 before = now(), first = 0;
    for (int i = 0; i < steps; i++) {
        int box = blockIdx.x * apart + i % wrap;
        if (plain) asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(memory + (size_t)box * bytes), "r"(base), "r"(bytes) : "memory");
        else asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(0), "r"(box * rows), "r"(base) : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read %0;" ::"n"(AHEAD) : "memory");
        if (!i) first = now();
    }
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    u64 read = now();
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    out[3 * blockIdx.x] = first - before, out[3 * blockIdx.x + 1] = read - before, out[3 * blockIdx.x + 2] = now() - before;
}
// Two warps hand over to each other, `steps` times; with `pairs` pairs side by side.
__global__ void hand_over(u64 *out, int steps) {
    __shared__ u64 there[32], back[32];
    int pair = threadIdx.x / 64;
    if (threadIdx.x % 64 == 0) init(shared_address(there + pair), 1), init(shared_address(back + pair), 1);
    __syncthreads();
    u64 before = now();
    if (threadIdx.x % 64 == 0)
        for (int i = 0; i < steps; i++) arrive(shared_address(there + pair)), wait(shared_address(back + pair), i & 1);
    if (threadIdx.x % 64 == 32)
        for (int i = 0; i < steps; i++) wait(shared_address(there + pair), i & 1), arrive(shared_address(back + pair));
    u64 after = now();
    if (threadIdx.x % 64 == 0) out[pair] = after - before;
}
// What of it a thread alone takes: arrivals, and waits for phases that are over.
__global__ void alone(u64 *out, int steps, int waits) {
    __shared__ u64 b[1];
    if (!threadIdx.x) init(shared_address(b), 1 << 19);
    __syncthreads();
    u64 before = now();
#pragma unroll 1
    for (int i = 0; i < steps; i++)
        if (waits) wait(shared_address(b), 1);
        else if (threadIdx.x % 32 == 0) arrive(shared_address(b));
    u64 after = now();
    if (!threadIdx.x) out[0] = after - before;
}
// Two blocks of a cluster hand over to each other; and meet at the cluster's barrier, with and without release and acquire.
__global__ void clusters(u64 *out, int steps) {
    __shared__ u64 b[1];
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (!threadIdx.x) init(shared_address(b), 1);
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    u32 peer = peer_of(shared_address(b), rank ^ 1);
    u64 before = now();
    if (!threadIdx.x && rank < 2)
        for (int i = 0; i < steps; i++) {
            if (rank == 1) wait(shared_address(b), i & 1);
            asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(peer) : "memory");
            if (rank == 0) wait(shared_address(b), i & 1);
        }
    u64 handed = now();
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    u64 start = now();
    for (int i = 0; i < steps; i++) asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    u64 relaxed = now();
    for (int i = 0; i < steps; i++) asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    u64 after = now();
    if (!threadIdx.x) out[3 * blockIdx.x] = handed - before, out[3 * blockIdx.x + 1] = relaxed - start, out[3 * blockIdx.x + 2] = after - relaxed;
}

typedef decltype(&cuTensorMapEncodeTiled) Encode;
static CUtensorMap map_of(Encode encode, char *memory, int width, int rows, size_t all) {
    CUtensorMap map;
    cuuint64_t sizes[2] = {(cuuint64_t)width, all}, strides[1] = {(cuuint64_t)width};
    cuuint32_t box[2] = {(cuuint32_t)width, (cuuint32_t)rows}, steps[2] = {1, 1};
    auto swizzle = width == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : width == 64 ? CU_TENSOR_MAP_SWIZZLE_64B : width == 32 ? CU_TENSOR_MAP_SWIZZLE_32B : CU_TENSOR_MAP_SWIZZLE_NONE;
    CUresult failed = encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, memory, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                             CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (failed) printf("error map width=%d rows=%d : %d\n", width, rows, failed);
    return map;
}

int main() {
    start();
    Encode encode;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode, 12000, cudaEnableDefault, &found));
    const int room = 200 * 1024;
    CHECK(cudaFuncSetAttribute(ring, cudaFuncAttributeMaxDynamicSharedMemorySize, room + 1024));
    CHECK(cudaFuncSetAttribute(store_ring<0>, cudaFuncAttributeMaxDynamicSharedMemorySize, room + 1024));
    CHECK(cudaFuncSetAttribute(store_ring<4>, cudaFuncAttributeMaxDynamicSharedMemorySize, room + 1024));
    const int shapes[][2] = {{16, 1}, {128, 1}, {128, 8}, {128, 64}, {128, 128}, {64, 64}, {64, 256}, {32, 64}, {32, 256}, {16, 64}, {16, 256}, {256, 64}};
    for (auto shape : shapes)
        for (int plain = 0; plain < 2; plain++) {
            int width = shape[0], rows = shape[1], bytes = width * rows, apart = (1 << 17) / bytes;
            CUtensorMap map = map_of(encode, memory, width, rows, (size_t(1) << 30) / width);
            for (int grid : {1, 132})
                for (const char *where : {"same", "l2", "dram"})
                    for (int stages : {1, 2, 4, 8}) {
                        if (stages * bytes > room || (*where == 'd' && stages < 8 && stages * bytes < 65536)) continue;
                        int steps = *where == 'd' ? std::min(512, (4 << 20) / bytes) : 256;
                        int between = *where == 's' ? 0 : *where == 'l' ? apart : (4 << 20) / bytes, wrap = *where == 'd' ? steps : apart;
                        for (int warm = 0; warm < 2; warm++) {
                            if (*where == 'd') CHECK(cudaMemset(memory + (size_t(1) << 29) + (size_t(1) << 28), warm, size_t(1) << 28));
                            ring<<<grid, 64, stages * ((bytes + 127) / 128 * 128) + 1024>>>(map, memory, out, bytes, rows, steps, stages, between, wrap, plain, 1);
                            CHECK(cudaDeviceSynchronize());
                        }
                        auto t = fetched(3 * grid);
                        u64 longest = 0, first = 0;
                        for (int b = 0; b < grid; b++) longest = std::max(longest, t[3 * b + 2] - t[3 * b]), first += t[3 * b + 1] - t[3 * b];
                        printf("ring width=%d rows=%d plain=%d grid=%d where=%s stages=%d steps=%d : %llu %llu\n", width, rows, plain, grid, where, stages, steps, longest, first / grid);
                    }
            for (int grid : {1, 132})
                for (int ahead : {0, 4}) {
                    int steps = std::min(256, apart);
                    if (ahead) store_ring<4><<<grid, 32, bytes + 1024>>>(map, memory, out, bytes, rows, steps, apart, apart, plain);
                    else store_ring<0><<<grid, 32, bytes + 1024>>>(map, memory, out, bytes, rows, steps, apart, apart, plain);
                    auto t = fetched(3 * grid);
                    u64 most[3] = {};
                    for (int b = 0; b < grid; b++) for (int i = 0; i < 3; i++) most[i] = std::max(most[i], t[3 * b + i]);
                    printf("store width=%d rows=%d plain=%d grid=%d ahead=%d steps=%d : %llu %llu %llu\n", width, rows, plain, grid, ahead, steps, most[0], most[1], most[2]);
                }
        }
    for (auto shape : {std::pair<int, int>{128, 128}, {64, 256}})
        for (int sharing : {1, 2, 4, 8, 16, 33, 66, 132})
            for (int stages : {4, 8}) {
                int width = shape.first, rows = shape.second, bytes = width * rows, apart = (1 << 17) / bytes, steps = 256;
                CUtensorMap map = map_of(encode, memory, width, rows, (size_t(1) << 30) / width);
                for (int warm = 0; warm < 2; warm++)
                    ring<<<132, 64, stages * bytes + 1024>>>(map, memory, out, bytes, rows, steps, stages, apart, apart, 0, sharing);
                auto t = fetched(3 * 132);
                u64 longest = 0;
                for (int b = 0; b < 132; b++) longest = std::max(longest, t[3 * b + 2] - t[3 * b]);
                printf("share width=%d rows=%d sharing=%d stages=%d steps=%d : %llu\n", width, rows, sharing, stages, steps, longest);
            }
    for (int pairs : {1, 4, 16}) {
        hand_over<<<1, 64 * pairs>>>(out, 64);
        printf("hand_over pairs=%d steps=64 : %llu\n", pairs, fetched(1)[0]);
    }
    for (int warps : {1, 4, 16})
        for (int waits = 0; waits < 2; waits++) {
            alone<<<1, 32 * warps>>>(out, 64, waits);
            printf("alone warps=%d waits=%d steps=64 : %llu\n", warps, waits, fetched(1)[0]);
        }
    for (int size : {2, 4, 8})
        for (int threads : {32, 256}) {
            launch_in_clusters(clusters, size, threads, out, 32);
            auto t = fetched(3);
            printf("clusters size=%d threads=%d steps=32 : %llu %llu %llu\n", size, threads, t[0], t[1], t[2]);
        }
}
