// C = A * B, row-major, float32. guide_v5 with its 256 threads numbered in one dimension, so that a thread can stand in
// one place while it brings and in another while it multiplies.
//
// Bringing, a warp is half a row of a tile: 32 neighbouring floats are 4 sectors of global memory, and 32 banks:
//   s_a[i][x], s_b[i][x]   clean, where guide_v5 has 4 ways and 16 sectors
// Multiplying, it is 2 rows (ty) of 16 threads as before, and reads the same:
//   s_a[ty*4 + i][k]       four k in 16 bytes, 4 lines apart: halves of the warp are served one by one, 2 wavefronts
//   s_b[k][tx*4 + j]       four j in 16 bytes, 16 neighbours, read by both rows: 4 wavefronts of 8 lanes each
// Nothing collides. C is stored with one float out of four, as before.
//
// The published guide gives the number of threads and that they are numbered in one dimension; the rest is ours.
//
// Block 256 x 1; grid.x covers N, grid.y covers M. Any M, N, K.

constexpr int THREADS = 256;
constexpr int BLOCK = 16;             // 16 x 16 threads multiply
constexpr int STRIDE = 4;             // a thread's patch is STRIDE x STRIDE
constexpr int STEP = BLOCK * STRIDE;  // and a tile STEP x STEP

extern "C" __global__ void guide_v7(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ __align__(16) float s_a[STEP][STEP];
    __shared__ __align__(16) float s_b[STEP][STEP];

    const int tid = threadIdx.x;
    const int tx = tid % BLOCK, ty = tid / BLOCK;  // where the thread multiplies
    const int x = tid % STEP, y = tid / STEP;      // what it brings: column x of the rows y, y + 4, ...
    const int row0 = blockIdx.y * STEP, col0 = blockIdx.x * STEP;

    float sum[STRIDE][STRIDE] = {};
    for (int k0 = 0; k0 < K; k0 += STEP) {
        for (int i = y; i < STEP; i += THREADS / STEP) {
            float a = 0.0f, b = 0.0f;
            if (row0 + i < M && k0 + x < K) a = A[(row0 + i) * K + k0 + x];
            if (k0 + i < K && col0 + x < N) b = B[(k0 + i) * N + col0 + x];
            s_a[i][x] = a;
            s_b[i][x] = b;
        }
        __syncthreads();

#pragma unroll 1
        for (int piece = 0; piece < STEP; piece += 4) {  // of k: what is read at once
            for (int i = 0; i < STRIDE; ++i) {
                for (int j = 0; j < STRIDE; ++j) {
                    for (int k = piece; k < piece + 4; ++k) {
                        const float a = s_a[ty * STRIDE + i][k];
                        const float b = s_b[k][tx * STRIDE + j];
                        sum[i][j] += a * b;
                    }
                }
            }
        }
        __syncthreads();
    }

    for (int i = 0; i < STRIDE; ++i) {
        const int row = row0 + ty * STRIDE + i;
        for (int j = 0; j < STRIDE; ++j) {
            const int col = col0 + tx * STRIDE + j;
            if (row < M && col < N) C[row * N + col] = sum[i][j];
        }
    }
}
