// Transposes of a tile, with and without bank conflicts.
// Copyright the memsim authors. Apache-2.0.

// Without shared memory: reads of rows, writes of columns.
extern "C" __global__ void transpose_direct(const float *in, float *out, int width, int height)
{
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x < width && y < height)
        out[x * height + y] = in[y * width + x];
}

// Columns of the tile are in one bank.
extern "C" __global__ void transpose_conflicts(const float *in, float *out, int width, int height)
{
    __shared__ float s[32][32];
    const int tx = threadIdx.x, ty = threadIdx.y;
    int x = blockIdx.x * 32 + tx, y = blockIdx.y * 32 + ty;
    for (int k = 0; k < 32; k += 8)
        s[ty + k][tx] = in[(y + k) * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + tx;
    y = blockIdx.x * 32 + ty;
    for (int k = 0; k < 32; k += 8)
        out[(y + k) * height + x] = s[tx][ty + k];
}

// A column of padding.
extern "C" __global__ void transpose_column(const float *in, float *out, int width, int height)
{
    __shared__ float s[32][33];
    const int tx = threadIdx.x, ty = threadIdx.y;
    int x = blockIdx.x * 32 + tx, y = blockIdx.y * 32 + ty;
    for (int k = 0; k < 32; k += 8)
        if (x < width && y + k < height)
            s[ty + k][tx] = in[(y + k) * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + tx;
    y = blockIdx.x * 32 + ty;
    for (int k = 0; k < 32; k += 8)
        if (x < height && y + k < width)
            out[(y + k) * height + x] = s[tx][ty + k];
}

// A swizzle instead of padding.
extern "C" __global__ void transpose_swizzle(const float *in, float *out, int width, int height)
{
    __shared__ float s[32][32];
    const int tx = threadIdx.x, ty = threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        s[ty + k][tx ^ (ty + k)] = in[(blockIdx.y * 32 + ty + k) * width + blockIdx.x * 32 + tx];
    __syncthreads();
    for (int k = 0; k < 32; k += 8)
        out[(blockIdx.x * 32 + ty + k) * height + blockIdx.y * 32 + tx] = s[tx][tx ^ (ty + k)];
}

// Vectors of 16 bytes in global memory, words in shared memory.
extern "C" __global__ void transpose_vectors(const float4 *in, float4 *out, int width, int height)
{
    __shared__ float s[32][36];
    const int t = threadIdx.x, row = t / 8, column = t % 8;
    const float4 v = in[((blockIdx.y * 32 + row) * width + blockIdx.x * 32) / 4 + column];
    s[column * 4][row] = v.x;
    s[column * 4 + 1][row] = v.y;
    s[column * 4 + 2][row] = v.z;
    s[column * 4 + 3][row] = v.w;
    __syncthreads();
    out[((blockIdx.x * 32 + row) * height + blockIdx.y * 32) / 4 + column] = *(const float4 *)&s[row][column * 4];
}

// Bytes, and doubles: other widths, other conflicts.
extern "C" __global__ void transpose_widths(const unsigned char *bytes, const double *doubles, unsigned char *obytes, double *odoubles)
{
    __shared__ unsigned char sb[32][36];
    __shared__ double sd[32][33];
    const int tx = threadIdx.x;
    for (int y = threadIdx.y; y < 32; y += 8) {
        sb[y][tx] = bytes[blockIdx.x * 1024 + y * 32 + tx];
        sd[y][tx] = doubles[blockIdx.x * 1024 + y * 32 + tx];
    }
    __syncthreads();
    for (int y = threadIdx.y; y < 32; y += 8) {
        obytes[blockIdx.x * 1024 + y * 32 + tx] = sb[tx][y];
        odoubles[blockIdx.x * 1024 + y * 32 + tx] = sd[tx][y];
    }
}
