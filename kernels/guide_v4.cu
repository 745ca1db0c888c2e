// C = A * B, row-major, float32. guide_v3 with more work for a thread: it makes a 2 x 2 patch of C, and the tiles are
// 32 x 32. It brings the same patch of both tiles.
//
// A warp is 2 rows (ty) of 16 threads. A line of a tile is 32 words, which is all banks once, so two words collide
// where they stand in the same column:
//   filling, [ty*2 + i][tx*2 + j]   16 words, every second bank, in each of two lines: 2 ways
// The reads of A would collide too, word by word. But the compiler unrolls the loops, reads no word twice, and joins:
//   s_a[ty*2 + i][k]   four k in 16 bytes, 2 lines apart: halves of the warp are served one by one, 2 wavefronts
//   s_b[k][tx*2 + j]   both j in 8 bytes, 16 neighbours, read by both rows: 2 wavefronts of 16 lanes each
// Global memory is read and written with every second float left out: 8 sectors where 4 would do.
//
// Block 16 x 16; grid.x covers N, grid.y covers M. Any M, N, K.

constexpr int BLOCK = 16;             // threads of a block in x and in y
constexpr int STRIDE = 2;             // a thread's patch is STRIDE x STRIDE
constexpr int STEP = BLOCK * STRIDE;  // and a tile STEP x STEP

extern "C" __global__ void guide_v4(const float *A, const float *B, float *C, int M, int N, int K)
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

        for (int i = 0; i < STRIDE; ++i) {
            for (int j = 0; j < STRIDE; ++j) {
                for (int k = 0; k < STEP; ++k) {
                    const float a = s_a[ty * STRIDE + i][k];
                    const float b = s_b[k][tx * STRIDE + j];
                    sum[i][j] += a * b;
                }
            }
        }
        __syncthreads();
    }

    for (int i = 0; i < STRIDE; ++i)
        for (int j = 0; j < STRIDE; ++j)
            if (row + i < M && col + j < N) C[(row + i) * N + col + j] = sum[i][j];
}
