// Kernels as textbooks warn of, each with one fault in how it uses memory.

struct Particle { float x, y, z, mass; };

// An array of structures: each thread moves one of its own.
extern "C" __global__ void move_particles(Particle *p, float dt, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        p[i].x += dt * p[i].mass;
        p[i].y -= dt * p[i].mass;
        p[i].z += dt;
    }
}

// Three bytes of each pixel, by one thread.
extern "C" __global__ void grey(const unsigned char *rgb, unsigned char *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = (unsigned char)(0.299f * rgb[3 * i] + 0.587f * rgb[3 * i + 1] + 0.114f * rgb[3 * i + 2]);
}

// A row by each thread.
extern "C" __global__ void row_sums(const float *m, float *out, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int c = 0; c < columns; ++c) sum += m[row * columns + c];
    out[row] = sum;
}

// x and y in the wrong order.
extern "C" __global__ void add_swapped(const float *a, const float *b, float *out, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x, column = blockIdx.y * blockDim.y + threadIdx.y;
    out[row * n + column] = a[row * n + column] + b[row * n + column];
}

// A reduction whose active threads lie apart, and so do their words.
extern "C" __global__ void interleaved_sum(const float *in, float *out) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    for (int apart = 1; apart < 256; apart *= 2) {
        int i = 2 * apart * t;
        if (i < 256) s[i] += s[i + apart];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}

// A row of shared memory by each thread.
extern "C" __global__ void smooth_rows(const float *in, float *out) {
    __shared__ float s[32][32];
    const float *from = in + blockIdx.x * 1024;
    for (int i = threadIdx.x; i < 1024; i += 32) s[i / 32][i % 32] = from[i];
    __syncthreads();
    float before = 0;
    for (int c = 0; c < 32; ++c) {
        before = 0.5f * before + 0.5f * s[threadIdx.x][c];
        s[threadIdx.x][c] = before;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 1024; i += 32) out[blockIdx.x * 1024 + i] = s[i / 32][i % 32];
}

// Bins of its own for each thread, one after the other.
extern "C" __global__ void private_bins(const unsigned char *in, int *out, int each) {
    __shared__ int bins[64 * 32];
    int t = threadIdx.x;
    for (int b = 0; b < 32; ++b) bins[t * 32 + b] = 0;
    for (int i = 0; i < each; ++i) bins[t * 32 + in[(blockIdx.x * each + i) * 64 + t] % 32] += 1;
    __syncthreads();
    if (t < 32) {
        int sum = 0;
        for (int other = 0; other < 64; ++other) sum += bins[other * 32 + t];
        out[blockIdx.x * 32 + t] = sum;
    }
}

// A product of tiles of 16 x 16, of which one is stored transposed.
extern "C" __global__ void tiled_product(const float *a, const float *b, float *c, int n) {
    __shared__ float as[16][16], bs[16][16];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        as[tx][ty] = a[row * n + k + tx];
        bs[ty][tx] = b[(k + ty) * n + column];
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += as[i][ty] * bs[i][tx];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
