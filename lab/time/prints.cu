// What a call of printf asks of L1 and L2, for a profiler that counts its sectors (docs/validation/prints.json): by so
// many lanes of a warp, one after the other, so many times.
#include "clocked.cuh"
#include "printed_texts.cuh"

#define PRINT(name, ...)                                  \
    __global__ void name(int lanes, int times) {          \
        for (int k = 0; k < times; k++) {                 \
            if (threadIdx.x % 32 < lanes) printf(__VA_ARGS__); \
            __syncwarp();                                 \
        }                                                 \
    }
PRINTED_TEXTS(PRINT)

int main() {
#define NAMED(name, ...) {#name, name},
    struct { const char *name; void (*kernel)(int, int); } kernels[] = {PRINTED_TEXTS(NAMED)};
    for (auto &one : kernels)
        for (int warps : {1, 4})
            for (int lanes : {1, 2, 4, 8, 16, 32})
                for (int times : {1, 4}) {
                    one.kernel<<<1, 32 * warps>>>(lanes, times);
                    CHECK(cudaGetLastError());
                    CHECK(cudaDeviceSynchronize());
                    printf("\nprints kernel=%s warps=%d lanes=%d times=%d\n", one.name, warps, lanes, times);
                }
}
