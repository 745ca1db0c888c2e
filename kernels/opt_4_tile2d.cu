// C = A * B, row-major, float32. A block makes a 128 x 128 tile of C in steps of 8 along K; a thread makes 8 x 8
// elements of it. k is the outermost loop: each step adds the outer product of 8 elements of A and 8 of B.
//
// A warp is 2 rows (ty) of 16 threads. Filling is clean, in whole sectors of global memory. While it multiplies, it
// reads
//   s_a[ty*8 + m][k]   two words, 8 rows * 8 floats = 64 words apart: the same bank, 2 ways
//   s_b[k][tx*8 + n]   16 words, 8 apart, read by both rows: 4 ways, word by word. The compiler joins four n into one
//                      16-byte read, and of each 8 lanes (one wavefront if clean) lanes 0 and 4, 1 and 5, ... meet in
//                      the same banks: 2 ways, 8 wavefronts
// and it stores C one float at a time, 32 bytes apart: each lane writes to a sector of its own.
//
// As written, each product reads two words. The compiler sees that those of A do not depend on n, nor those of B on m,
// and reads 16 words for 64 products: what opt_4_tile2d_register spells out.
//
// Block 16 x 16; grid.x covers N, grid.y covers M. Any M, N, K.

constexpr int BM = 128, BN = 128, BK = 8;  // the block's tile
constexpr int TM = 8, TN = 8;              // the thread's part of it
constexpr int THREADS = (BM / TM) * (BN / TN);

extern "C" __global__ void opt_4_tile2d(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ __align__(16) float s_a[BM][BK];
    __shared__ __align__(16) float s_b[BK][BN];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int tid = ty * (BN / TN) + tx;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;

    float sum[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        for (int i = 0; i < BM * BK; i += THREADS) {
            const int m = (i + tid) / BK, k = (i + tid) % BK;
            float a = 0.0f;
            if (row0 + m < M && k0 + k < K) a = A[(row0 + m) * K + k0 + k];
            s_a[m][k] = a;
        }
        for (int i = 0; i < BK * BN; i += THREADS) {
            const int k = (i + tid) / BN, n = (i + tid) % BN;
            float b = 0.0f;
            if (k0 + k < K && col0 + n < N) b = B[(k0 + k) * N + col0 + n];
            s_b[k][n] = b;
        }
        __syncthreads();

        for (int k = 0; k < BK; ++k) {
            for (int m = 0; m < TM; ++m) {
                for (int n = 0; n < TN; ++n) {
                    sum[m][n] += s_a[ty * TM + m][k] * s_b[k][tx * TN + n];
                }
            }
        }
        __syncthreads();
    }

    for (int i = 0; i < TM; ++i) {
        const int row = row0 + ty * TM + i;
        for (int j = 0; j < TN; ++j) {
            const int col = col0 + tx * TN + j;
            if (row < M && col < N) C[row * N + col] = sum[i][j];
        }
    }
}
