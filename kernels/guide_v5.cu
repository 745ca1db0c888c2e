// C = A * B, row-major, float32. guide_v4 with a 4 x 4 patch for a thread; the tiles are 64 x 64, together 32 KiB.
//
// A warp is 2 rows (ty) of 16 threads, and a line 64 words:
//   filling, [ty*4 + i][tx*4 + j]   16 words in every fourth bank, in each of two lines: 8 banks for 32 words, 4 ways
// The reads would be 2 ways each, word by word. They are joined, along k for A and along j for B:
//   s_a[ty*4 + i][k]   four k in 16 bytes, 4 lines apart: halves of the warp are served one by one, 2 wavefronts
//   s_b[k][tx*4 + j]   four j in 16 bytes, 16 neighbours, read by both rows: 4 wavefronts of 8 lanes each
// Global memory is read and written with one float out of four: 16 sectors where 4 would do.
//
// The guide has k innermost, over the whole tile. Here k is cut in pieces of 4: the same is read, and the PTX shows it.
//
// Block 16 x 16; grid.x covers N, grid.y covers M. Any M, N, K.

constexpr int BLOCK = 16;             // threads of a block in x and in y
constexpr int STRIDE = 4;             // a thread's patch is STRIDE x STRIDE
constexpr int STEP = BLOCK * STRIDE;  // and a tile STEP x STEP

extern "C" __global__ void guide_v5(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ __align__(16) float s_a[STEP][STEP];
    __shared__ __align__(16) float s_b[STEP][STEP];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * STEP + ty * STRIDE;  // of the thread's patch of C
    const int col = blockIdx.x * STEP + tx * STRIDE;

    float sum[STRIDE][STRIDE] = {};
    for (int k0 = 0; k0 < K; k0 += STEP) {
        for (int i = 0; i < STRIDE; ++i) {
            for (int j = 0; j < STRIDE; ++j) {
                const int y = ty * STRIDE + i, x = tx * STRIDE + j;  // in the tiles
                float a = 0.0f, b = 0.0f;
                if (row + i < M && k0 + x < K) a = A[(row + i) * K + k0 + x];
                if (k0 + y < K && col + j < N) b = B[(k0 + y) * N + col + j];
                s_a[y][x] = a;
                s_b[y][x] = b;
            }
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

    for (int i = 0; i < STRIDE; ++i)
        for (int j = 0; j < STRIDE; ++j)
            if (row + i < M && col + j < N) C[(row + i) * N + col + j] = sum[i][j];
}
