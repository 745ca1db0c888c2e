// Synchronizations of sm_90 as functions, and the frame of the kernels of test_shared_sync.py.
#include <cuda_pipeline.h>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
typedef unsigned u32; typedef unsigned long long u64;
__device__ u32 at(const void *p) { return (u32)__cvta_generic_to_shared(p); }
__device__ void init(u32 b, u32 n) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(b), "r"(n)
        : "memory"); }
__device__ void expect(u32 b, u32 n) {
    asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], %1; }" :: "r"(b), "r"(n)
        : "memory"); }
__device__ void arrive(u32 b) {
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" :: "r"(b)
        : "memory"); }
__device__ void wait(u32 b, u32 ph) {
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra W; }" :: "r"(b), "r"(ph)
        : "memory"); }
__device__ void bulk(u32 d, const void *s, u32 n, u32 b) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(d), "l"(s), "r"(n), "r"(b)
        : "memory"); }
__device__ u32 of(u32 a, u32 r) { u32 v;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(r)); return v; }
__device__ u32 rank() { u32 r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ void meet() {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory"); }
__device__ void put(u32 a, int v) {
    asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(a), "r"(v)
        : "memory"); }
__device__ int get(u32 a) { int v;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(a) : "memory"); return v; }
#define KERNEL(name, ...) extern "C" __global__ void name(int *out, const int *in) { \
    __shared__ alignas(128) int a[256]; __shared__ int b[256]; __shared__ alignas(8) u64 bars[8]; \
    volatile int *v = a;\
    int id = threadIdx.x, me = blockIdx.x * 128 + id, lane = id & 31;\
    (void)b; (void)me; (void)v; (void)lane; (void)bars; __VA_ARGS__ }
#define CLUSTER(name, ...) extern "C" __global__ void __cluster_dims__(2, 1, 1) name(int *out, const int *in) { \
    __shared__ alignas(128) int a[256]; __shared__ alignas(8) u64 bars[8]; \
    volatile int *v = a;\
    int id = threadIdx.x, me = blockIdx.x * 128 + id, lane = id & 31; \
    (void)me; (void)v; (void)lane; (void)bars; __VA_ARGS__ }
__device__ void remote_add(u32 a, int v) {
    asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], %1;" :: "r"(a), "r"(v)
        : "memory"); }
