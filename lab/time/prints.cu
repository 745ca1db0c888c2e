// What a call of printf asks of L1 and L2, for a profiler that counts its sectors (docs/validation/prints.json): by so
// many lanes of a warp, one after the other, so many times.
#include "clocked.cuh"

#define PRINT(name, ...)                                  \
    __global__ void name(int lanes, int times) {          \
        for (int k = 0; k < times; k++) {                 \
            if (threadIdx.x % 32 < lanes) printf(__VA_ARGS__); \
            __syncwarp();                                 \
        }                                                 \
    }
PRINT(print1, "\n")
PRINT(print16, "P23456789012345\n")
PRINT(print64, "P23456789012345678901234567890123456789012345678901234567890123\n")
PRINT(print_int, "P %d\n", k)
PRINT(print_4_ints, "P %d %d %d %d\n", k, k, k, k)
PRINT(print_8_ints, "P %d %d %d %d %d %d %d %d\n", k, k, k, k, k, k, k, k)
PRINT(print_double, "P %f\n", k * 0.5)
PRINT(print_text, "P %s\n", "234567890123456789012345")

int main() {
    struct { const char *name; void (*kernel)(int, int); } kernels[] = {
        {"print1", print1}, {"print16", print16}, {"print64", print64}, {"print_int", print_int}, {"print_4_ints", print_4_ints},
        {"print_8_ints", print_8_ints}, {"print_double", print_double}, {"print_text", print_text},
    };
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
