// C = A * B, row-major, float32. guide_v4 with tiles of double width: s_a[32][64] and s_b[64][32], both halves brought
// before the block meets at a barrier. That is half as many barriers, and four loads on their way instead of two.
//
// The accesses are those of guide_v4:
//   filling            16 words, every second bank, in each of two lines: 2 ways
//   s_a[ty*2 + i][k]   four k in 16 bytes, 2 lines apart: halves of the warp are served one by one, 2 wavefronts
//   s_b[k][tx*2 + j]   both j in 8 bytes, 16 neighbours, read by both rows: 2 wavefronts of 16 lanes each
//
// The published snippet brings one element of each half, for blocks that are as wide as half a tile; here it is a 2 x 2
// patch of each. With the 4 x 4 patches of guide_v5 the tiles would be 64 KiB, and 48 may be declared. k is cut in
// pieces of 4 as in guide_v5.
//
// Block 16 x 16; grid.x covers N, grid.y covers M. Any M, N, K.

constexpr int BLOCK = 16;             // threads of a block in x and in y
constexpr int STRIDE = 2;             // a thread's patch is STRIDE x STRIDE
constexpr int STEP = BLOCK * STRIDE;  // half a tile is STEP x STEP

extern "C" __global__ void guide_v6(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ __align__(16) float s_a[STEP][2 * STEP];
    __shared__ __align__(16) float s_b[2 * STEP][STEP];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * STEP + ty * STRIDE;  // of the thread's patch of C
    const int col = blockIdx.x * STEP + tx * STRIDE;

    float sum[STRIDE][STRIDE] = {};
    for (int k0 = 0; k0 < K; k0 += 2 * STEP) {
        for (int i = 0; i < STRIDE; ++i) {
            for (int j = 0; j < STRIDE; ++j) {
                const int y = ty * STRIDE + i, x = tx * STRIDE + j;  // in the first half of each tile
                const int a_k = k0 + x, b_k = k0 + y;
                float a0 = 0.0f, a1 = 0.0f, b0 = 0.0f, b1 = 0.0f;
                if (row + i < M && a_k < K) a0 = A[(row + i) * K + a_k];
                if (row + i < M && a_k + STEP < K) a1 = A[(row + i) * K + a_k + STEP];
                if (b_k < K && col + j < N) b0 = B[b_k * N + col + j];
                if (b_k + STEP < K && col + j < N) b1 = B[(b_k + STEP) * N + col + j];
                s_a[y][x] = a0;
                s_a[y][x + STEP] = a1;
                s_b[y][x] = b0;
                s_b[y + STEP][x] = b1;
            }
        }
        __syncthreads();

#pragma unroll 1
        for (int piece = 0; piece < 2 * STEP; piece += 4) {  // of k: what is read at once
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
