// What only Hopper has: mbarriers, bulk copies, products of warpgroups, clusters.
#include "mbarriers.cuh"

DEV bool try_wait(u32 barrier, u32 parity) {
    u32 done;
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    return done;
}
DEV void wait(u32 barrier, u32 parity) {
    while (!try_wait(barrier, parity)) {}
}

const int ROUNDS = 32;
// All warps of a block (`pairs` = 0) or warps in pairs meet at an mbarrier, round after round.
__global__ void meet(u64 *out, int count) {
    __shared__ u64 barriers[1];
    u32 b = shared_address(barriers);
    if (!threadIdx.x) init(b, count);
    __syncthreads();
    u64 before = 0;
#pragma unroll 1
    for (int i = 0; i < ROUNDS + 2; i++) {
        if (i == 2) before = now();
        if (count == blockDim.x || threadIdx.x % 32 == 0) arrive(b);
        wait(b, i & 1);
    }
    u64 after = now();
    if (!threadIdx.x) out[0] = after - before;
}
// A thread waits at a phase that is over.
__global__ void over(u64 *out) {
    __shared__ u64 barriers[1];
    u32 b = shared_address(barriers), sum = 0;
    if (!threadIdx.x) { init(b, 1); arrive(b); }
    __syncthreads();
    u64 before = 0;
#pragma unroll 1
    for (int i = 0; i < ROUNDS + 2; i++) {
        if (i == 2) before = now();
        sum += try_wait(b, 0);
    }
    u64 after = now();
    if (!threadIdx.x) out[0] = after - before, out[1] = sum;
}
// Bulk copies to shared memory: `count` of `bytes`, until all have come; and the issue alone.
__global__ void bulk(char *memory, u64 *out, int bytes, int count) {
    extern __shared__ __align__(128) char tile[];
    __shared__ u64 barriers[1];
    u32 b = shared_address(barriers), to = shared_address(tile);
    if (!threadIdx.x) init(b, 1);
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
        __syncthreads();
        u64 before = now(), issued = 0;
        if (!threadIdx.x) {
            asm volatile("{.reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], %1;}" ::"r"(b), "r"(bytes * count) : "memory");
            for (int c = 0; c < count; c++)
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                             ::"r"(to + c * bytes), "l"(memory + c * bytes), "r"(bytes), "r"(b) : "memory");
            issued = now();
        }
        wait(b, i & 1);
        u64 after = now();
        if (!threadIdx.x) out[2 * i] = issued - before, out[2 * i + 1] = after - before;
    }
}
// Bulk copies from shared memory, until they have been read and until they are done.
__global__ void bulk_store(char *memory, u64 *out, int bytes) {
    extern __shared__ __align__(128) char tile[];
    if (threadIdx.x) return;
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
        u64 before = now();
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(memory), "r"(shared_address(tile)), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        u64 read = now();
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        u64 after = now();
        out[2 * i] = read - before, out[2 * i + 1] = after - before;
    }
}
template <int N> struct Product {};
#define R8(c, o) "+f"(c[o]), "+f"(c[o + 1]), "+f"(c[o + 2]), "+f"(c[o + 3]), "+f"(c[o + 4]), "+f"(c[o + 5]), "+f"(c[o + 6]), "+f"(c[o + 7])
template <> struct Product<8> {
    DEV void step(float *c, u64 d) {
        asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3},%4,%4,1,1,1,0,0;" : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "l"(d));
    }
};
template <> struct Product<64> {
    DEV void step(float *c, u64 d) {
        asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31},%32,%32,1,1,1,0,0;"
                     : R8(c, 0), R8(c, 8), R8(c, 16), R8(c, 24) : "l"(d));
    }
};
template <> struct Product<128> {
    DEV void step(float *c, u64 d) {
        asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63},%64,%64,1,1,1,0,0;"
                     : R8(c, 0), R8(c, 8), R8(c, 16), R8(c, 24), R8(c, 32), R8(c, 40), R8(c, 48), R8(c, 56) : "l"(d));
    }
};
// K products in one group of each warpgroup: until all are issued, and until all are done.
template <int N, int K> __global__ void __launch_bounds__(512) product(u64 *out) {
    __shared__ __align__(1024) char tile[32768];
    for (int i = threadIdx.x; i < 8192; i += blockDim.x) ((u32 *)tile)[i] = 0;
    asm volatile("fence.proxy.async;" ::: "memory");
    u64 at = shared_address(tile) >> 4 & 0x3fff;
    u64 d = at | 1ull << 16 | 64ull << 32 | 1ull << 62;
    float c[N / 2] = {};
    u64 before, issued, after;
#pragma unroll 1
    for (int i = 0; i < 3; i++) {
        __syncthreads();
        before = now();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < K; k++) Product<N>::step(c, d);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        issued = now();
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        after = now();
    }
    float sum = 0;
    for (int i = 0; i < N / 2; i++) sum += c[i];
    if (sum == 77) out[99] = 1;
    if (!threadIdx.x) out[0] = issued - before, out[1] = after - before;
}
template <int N, int K> void products() {
    for (int groups : {1, 2, 4}) {
        product<N, K><<<1, 128 * groups>>>(out);
        auto t = fetched(2);
        printf("wgmma n=%d k=%d groups=%d : %llu %llu\n", N, K, groups, t[0], t[1]);
    }
}
// Blocks of a cluster meet; a thread follows a pointer in its neighbour's shared memory.
__global__ void cluster(u64 *out, int size) {
    __shared__ u32 own[32];
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    u32 peer = peer_of(shared_address(own), (rank + 1) % size);
    own[threadIdx.x % 32] = peer;
    u64 before = 0;
#pragma unroll 1
    for (int i = 0; i < ROUNDS + 2; i++) {
        if (i == 2) before = now();
        asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    }
    u64 after = now();
    u32 back = 0, at = peer;
    if (!threadIdx.x) out[2 * blockIdx.x] = after - before;
    // The peer's place holds an address of its own neighbour: with two blocks, one's own again.
    u64 start = now();
#pragma unroll 1
    for (int i = 0; i < ROUNDS; i++) {
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(back) : "r"(at) : "memory");
        at = back == 77 ? back : peer;
        at += back & 0;
    }
    u64 end = now();
    if (!threadIdx.x) out[2 * blockIdx.x + 1] = end - start;
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

int main() {
    start();
    for (int threads : {32, 64, 128, 256, 512, 1024})
        for (int all = 0; all < 2; all++) {
            meet<<<1, threads>>>(out, all ? threads : threads / 32);
            printf("meet threads=%d arrive_all=%d : %.2f\n", threads, all, fetched(1)[0] / double(ROUNDS));
        }
    over<<<1, 32>>>(out);
    printf("over threads=32 : %.2f\n", fetched(1)[0] / double(ROUNDS));
    CHECK(cudaFuncSetAttribute(bulk, cudaFuncAttributeMaxDynamicSharedMemorySize, 131072));
    for (int bytes : {16, 128, 512, 1024, 2048, 4096, 8192, 16384, 32768})
        for (int count : {1, 2, 4, 8, 16})
            if (bytes * count <= 131072) {
                bulk<<<1, 128, 131072>>>(memory, out, bytes, count);
                auto t = fetched(8);
                printf("bulk bytes=%d count=%d : %llu %llu %llu %llu\n", bytes, count, t[6], t[7], t[0], t[1]);
            }
    for (int bytes : {16, 128, 1024, 4096, 16384}) {
        bulk_store<<<1, 32, 32768>>>(memory, out, bytes);
        auto t = fetched(8);
        printf("bulk_store bytes=%d : %llu %llu\n", bytes, t[6], t[7]);
    }
    products<8, 1>(); products<8, 2>(); products<8, 4>(); products<8, 8>();
    products<64, 1>(); products<64, 2>(); products<64, 4>(); products<64, 8>();
    products<128, 1>(); products<128, 2>(); products<128, 4>(); products<128, 8>();
    for (int size : {1, 2, 4, 8})
        for (int threads : {32, 128, 512}) {
            launch_in_clusters(cluster, size, threads, out, size);
            auto t = fetched(2);
            printf("cluster size=%d threads=%d : %.2f %.2f\n", size, threads, t[0] / double(ROUNDS), t[1] / double(ROUNDS));
        }
}
