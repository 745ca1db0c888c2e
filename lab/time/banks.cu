// A loop of 128 instructions; `register_banks.py` puts others into their place.
typedef unsigned long long u64;
extern "C"
__global__ void __launch_bounds__(1024) banks(u64 *out, int rounds, float zero) {
    float a[16];
    for (int i = 0; i < 16; i++) a[i] = zero + i;
    u64 before = 0, after;
#pragma unroll 1
    for (int i = -1; i < rounds; i++) {
        if (!i) asm volatile("mov.u64 %0, %%clock64;" : "=l"(before)::"memory");
#pragma unroll
        for (int k = 0; k < 128; k++) asm volatile("fma.rn.f32 %0, %1, %2, %0;" : "+f"(a[k % 16]) : "f"(zero), "f"(zero));
    }
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(after)::"memory");
    float s = 0;
    for (int i = 0; i < 16; i++) s += a[i];
    if (s == 77) out[99] = 1;
    if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = after - before;
}
