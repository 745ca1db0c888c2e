#pragma once
// What the programs that time instructions by a multiprocessor's clock share. They print lines:
// `NAME PARAMETER=VALUE ... : NUMBERS`, in cycles if nothing else is said.
#include <cstdio>
#include <cstdlib>
#include <algorithm>
#include <vector>
#include <string>
#include <numeric>
#include <random>

typedef unsigned u32;
typedef unsigned long long u64;
#define DEV static __device__ __forceinline__
#define CHECK(call)                                                                                        \
    do {                                                                                                   \
        cudaError_t error = (call);                                                                        \
        if (error != cudaSuccess) printf("error %s line=%d : %s\n", #call, __LINE__, cudaGetErrorString(error)); \
    } while (0)

DEV u64 now() {
    u64 t;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(t)::"memory");
    return t;
}

static char *memory;
static u64 *out;
static const size_t BYTES = size_t(1) << 30;

static void start() {
    CHECK(cudaMalloc(&memory, BYTES));
    CHECK(cudaMemset(memory, 0, BYTES));
    CHECK(cudaMalloc(&out, 1 << 24));
    CHECK(cudaMemset(out, 0, 1 << 24));
}
static std::vector<u64> fetched(size_t count) {
    CHECK(cudaDeviceSynchronize());
    std::vector<u64> found(count);
    CHECK(cudaMemcpy(found.data(), out, count * 8, cudaMemcpyDeviceToHost));
    return found;
}
