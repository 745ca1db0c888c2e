// C = A * B, row-major, float32. A block of 256 threads makes a 128 x 128 tile of C in steps of 8 along K, and a
// thread's number means one thing while tiles are brought and another while they are multiplied.
//
// The loader: a float4 of each tile to a thread.
//   A[load_a_row][load_a_col ...] two threads to a row of 32 bytes. A warp reads 16 rows: 16 sectors, none in vain, but
//                                 in 16 lines
//   B[load_b_row][load_b_col ...] a warp to a row: 512 bytes on end, 16 sectors in 4 lines
//   s_a[128][8], s_b[8][128]      the tiles are kept as they come, 16 bytes after 16 bytes: clean
// The computer: 16 x 16 threads, each with 8 x 8 elements of C. A warp is two rows of 16.
//   s_a[8*thread_row + i][k]      two words, 64 words apart: the same bank, 2 ways on every one
//   s_b[k][8*thread_col ...]      16-byte reads 32 bytes apart: of each 8 lanes, lanes 0 and 4, 1 and 5, ... meet in
//                                 the same banks, 2 ways
//   C[...][8*thread_col ...]      16-byte stores 32 bytes apart: half of each sector
//
// The reads of s_a and s_b are those of kernel_v3. The article says that this layout, "transposed implicitly via the
// loading pattern", minimizes conflicts while computing. Its loader transposes nothing, and half of the wavefronts of
// those reads are conflicts.
//
// The article gives the two mappings and no kernel: barriers, edges and the float4 stores of C are ours.
//
// Block 256 x 1; grid.x covers N, grid.y covers M. Any M, N, K; 16-byte loads and stores of global memory where K (for
// A) and N (for B and C) are multiples of 4.

#include "edge.cuh"

constexpr int BM = 128, BN = 128, BK = 8;  // the block's tile
constexpr int TM = 8, TN = 8;              // the thread's part of it

extern "C" __global__ void ada_decoupled(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ __align__(16) float s_a[BM][BK];
    __shared__ __align__(16) float s_b[BK][BN];

    const int tid = threadIdx.x;

    // The loader.
    const int load_a_row = tid / 2, load_a_col = tid % 2 * 4;
    const int load_b_row = tid / 32, load_b_col = tid % 32 * 4;
    const int a_row = blockIdx.y * BM + load_a_row;
    const int b_col = blockIdx.x * BN + load_b_col;

    // The computer.
    const int thread_row = tid / 16, thread_col = tid % 16;

    float sum[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        const int a_col = k0 + load_a_col, b_row = k0 + load_b_row;
        float4 a = {0.0f, 0.0f, 0.0f, 0.0f}, b = a;
        if (K % 4 != 0) a = load4_edge(A, M, K, a_row, a_col);
        else if (a_row < M && a_col < K) a = LOAD4(A[a_row * K + a_col]);
        if (N % 4 != 0) b = load4_edge(B, K, N, b_row, b_col);
        else if (b_row < K && b_col < N) b = LOAD4(B[b_row * N + b_col]);

        STORE4(s_a[load_a_row][load_a_col]) = a;
        STORE4(s_b[load_b_row][load_b_col]) = b;
        __syncthreads();

#pragma unroll 1  // unrolled, the compiler would join the reads of s_a along k into 16-byte ones
        for (int k = 0; k < BK; ++k) {
            __align__(16) float r_a[TM], r_b[TN];
            for (int i = 0; i < TM; ++i) {
                r_a[i] = s_a[thread_row * TM + i][k];
            }
            STORE4(r_b[0]) = LOAD4(s_b[k][thread_col * TN]);
            STORE4(r_b[4]) = LOAD4(s_b[k][thread_col * TN + 4]);

            for (int i = 0; i < TM; ++i)
                for (int j = 0; j < TN; ++j) sum[i][j] += r_a[i] * r_b[j];
        }
        __syncthreads();
    }

    for (int i = 0; i < TM; ++i) {
        const int row = blockIdx.y * BM + thread_row * TM + i;
        for (int j = 0; j < TN; j += 4) {
            const int col = blockIdx.x * BN + thread_col * TN + j;
            if (N % 4 != 0) store4_edge(C, M, N, row, col, LOAD4(sum[i][j]));
            else if (row < M && col < N) STORE4(C[row * N + col]) = LOAD4(sum[i][j]);
        }
    }
}
