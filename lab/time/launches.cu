// Small launches whose cycles say what a launch itself costs, and how fast caches and DRAM serve many blocks.
typedef unsigned u32;
typedef unsigned long long u64;
extern "C" {
__global__ void empty() {}
__global__ void one_store(u32 *to) { to[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }
__global__ void one_load(const u32 *from, u32 *to) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x, x = from[i];
    if (x == 77) to[i] = x;
}
__global__ void add(const float *a, const float *b, float *c) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    c[i] = a[i] + b[i];
}
__global__ void add4(const float4 *a, const float4 *b, float4 *c) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 x = a[i], y = b[i];
    c[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}
// Loads that depend on each other, `steps` of them; all lanes side by side.
__global__ void dependent(const u32 *from, u32 *to, int steps, int apart) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x, x = 0;
    for (int s = 0; s < steps; s++) x = from[i + (s * apart) + __float_as_uint(__uint_as_float(x) * 0.0f)];
    to[i] = x;
}
__global__ void row_each(const float *from, float *to, int length) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < length; k++) sum += from[i * length + k];
    to[i] = sum;
}
__global__ void stencil(const float *from, float *to, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    const float *at = from + y * width + x;
    to[y * width + x] = 0.2f * (at[0] + at[-1] + at[1] + at[-width] + at[width]);
}
__global__ void sum(const float *from, float *to, int count) {
    __shared__ float part[256];
    float x = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) x += from[i];
    part[threadIdx.x] = x;
    for (int step = 128; step; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    }
    if (!threadIdx.x) atomicAdd(to, part[0]);
}
__global__ void histogram(const u32 *from, u32 *to, int count) {
    __shared__ u32 bins[256];
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) atomicAdd(&bins[from[i] >> 9 & 255], 1);
    __syncthreads();
    atomicAdd(&to[threadIdx.x], bins[threadIdx.x]);
}
#define F(i) a = a * b + i##.5f;
#define F8(i) F(i##0) F(i##1) F(i##2) F(i##3) F(i##4) F(i##5) F(i##6) F(i##7)
#define F64(i) F8(i##0) F8(i##1) F8(i##2) F8(i##3) F8(i##4) F8(i##5) F8(i##6) F8(i##7)
#define F512(i) F64(i##0) F64(i##1) F64(i##2) F64(i##3) F64(i##4) F64(i##5) F64(i##6) F64(i##7)
// Code that is executed `rounds` times, of 512, 2,048 and 8,192 instructions in a row.
__global__ void code512(float *to, float a, float b, int rounds) {
#pragma unroll 1
    for (int i = 0; i < rounds; i++) { F512(1) }
    to[threadIdx.x + blockIdx.x * blockDim.x] = a;
}
__global__ void code2048(float *to, float a, float b, int rounds) {
#pragma unroll 1
    for (int i = 0; i < rounds; i++) { F512(1) F512(2) F512(3) F512(4) }
    to[threadIdx.x + blockIdx.x * blockDim.x] = a;
}
__global__ void code8192(float *to, float a, float b, int rounds) {
#pragma unroll 1
    for (int i = 0; i < rounds; i++) {
        F512(1) F512(2) F512(3) F512(4) F512(5) F512(6) F512(7) F512(8) F512(9) F512(11) F512(12) F512(13) F512(14) F512(15) F512(16) F512(17)
    }
    to[threadIdx.x + blockIdx.x * blockDim.x] = a;
}
}
