// Launches that do next to nothing, for a profiler: what a launch costs by its blocks and warps, and what its first constant,
// load, store, barrier and line of code cost. Each is launched twice, for `ncu --cache-control all` and `none`
// (docs/validation/small_launches.json).
#include "clocked.cuh"

extern "C" {
__global__ void empty(u32 *, int) {}
__global__ void store(u32 *to, int) { to[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }
__global__ void store_of_one(u32 *to, int) {
    if (!threadIdx.x) to[blockIdx.x] = 1;
}
__global__ void store_byte(u32 *to, int) { ((unsigned char *)to)[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }
__global__ void store_apart(u32 *to, int) { to[8 * (blockIdx.x * blockDim.x + threadIdx.x)] = threadIdx.x; }
__global__ void load(u32 *to, int) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (to[i] == 77) to[i] = 1;
}
__global__ void load_same(u32 *to, int) {
    u32 i = threadIdx.x;
    if (to[i] == 77) to[i] = 1;
}
__global__ void load_store(u32 *to, int) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i + 4194304] = to[i] + 1;
}
__global__ void two_loads(u32 *to, int) {  // the second depends on the first
    u32 i = blockIdx.x * blockDim.x + threadIdx.x, x = to[i];
    if (to[i + 4194304 + x] == 77) to[i] = 1;
}
__global__ void barrier(u32 *to, int n) {
    __shared__ u32 part[1024];
    part[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (part[(threadIdx.x + n) & 1023] == 7777) *to = 1;
}
__constant__ u32 table[4096];
__global__ void constant(u32 *to, int n) {
    if (table[n] == 77) *to = 1;
}
__global__ void two_constants(u32 *to, int n) {
    if (table[table[n] + 1024] == 77) *to = 1;
}
__global__ void reduction(u32 *to, int) {
    asm volatile("red.global.add.u32 [%0], 1;" ::"l"(to + threadIdx.x % 32) : "memory");
}
#define F(i) a = a * b + i##.5f;
#define F8(i) F(i##0) F(i##1) F(i##2) F(i##3) F(i##4) F(i##5) F(i##6) F(i##7)
#define F64(i) F8(i##0) F8(i##1) F8(i##2) F8(i##3) F8(i##4) F8(i##5) F8(i##6) F8(i##7)
__global__ void code64(u32 *to, int n) {
    float a = n, b = n;
    F64(1) if (a == 77) *to = 1;
}
__global__ void code128(u32 *to, int n) {
    float a = n, b = n;
    F64(1) F64(2) if (a == 77) *to = 1;
}
__global__ void code256(u32 *to, int n) {
    float a = n, b = n;
    F64(1) F64(2) F64(3) F64(4) if (a == 77) *to = 1;
}
__global__ void code1024(u32 *to, int n) {
    float a = n, b = n;
    F64(1) F64(2) F64(3) F64(4) F64(5) F64(6) F64(7) F64(8) F64(9) F64(11) F64(12) F64(13) F64(14) F64(15) F64(16) F64(17)
    if (a == 77) *to = 1;
}
__global__ void branches16(u32 *to, int n) {  // that are taken, over code that is not executed
    u32 x = n;
#define J(i)                                                                   \
    if (x == i) {                                                              \
        for (u32 k = 0; k < x; k++) to[k * i] = x + k, to[k + i * 77] = i * k; \
    }                                                                          \
    asm volatile("add.u32 %0, %0, 1;" : "+r"(x));
    J(101) J(102) J(103) J(104) J(105) J(106) J(107) J(108) J(109) J(110) J(111) J(112) J(113) J(114) J(115) J(116)
    if (x == 77) *to = x;
}
}

int main() {
    start();
    u32 *to = (u32 *)memory;
    struct Named { const char *name; void (*kernel)(u32 *, int); };
#define N(name) {#name, name}
    const Named all[] = {N(empty), N(store), N(store_of_one), N(load), N(load_same), N(load_store)};
    const Named few[] = {N(store_byte), N(store_apart), N(two_loads), N(barrier), N(constant), N(two_constants), N(reduction), N(code64), N(code128), N(code256), N(code1024), N(branches16)};
    auto twice = [&](const Named &one, int blocks, int threads) {
        for (int pass = 0; pass < 2; pass++) one.kernel<<<blocks, threads>>>(to, 0);
        CHECK(cudaDeviceSynchronize());
    };
    for (auto &one : all)
        for (int threads : {32, 256, 1024})
            for (int blocks : {1, 2, 4, 8, 16, 33, 66, 100, 132, 133, 198, 264, 396, 528, 792, 1000}) twice(one, blocks, threads);
    for (auto &one : few)
        for (int threads : {32, 256})
            for (int blocks : {1, 16, 132, 264, 1000}) twice(one, blocks, threads);
}
