// C = A * B, row-major, float32. opt_7_no_bank_conflict with the threads of a warp in z-order: no shared conflict on
// any line, and as few wavefronts as the loads can have.
//
// A warp is 8 x 4 threads, 64 x 32 elements of C. x is made of the bits 0, 2 and 4 of the lane, y of the bits 1 and 3:
//    0  1  4  5 16 17 20 21
//    2  3  6  7 18 19 22 23
//    8  9 12 13 24 25 28 29
//   10 11 14 15 26 27 30 31
// A thread's 8 x 8 elements are 2 x 2 pieces of 4 x 4, so that neighbours in x read neighbouring float4:
//   s_b[k][n0 ...]   lanes i and i^2 read the same: the hardware serves 16 lanes at a time, 2 wavefronts and not 4
//   s_a[k][m0 ...]   lanes i and i^1 read the same: 2 wavefronts
// In each half of the warp there are 4 different float4, side by side: clean.
//
// The published text names the order, shows a picture, and says which lanes read the same; this is the order that does.
//
// Block 256 x 1; grid.x covers N, grid.y covers M. Any M, N, K; 16-byte loads and stores of global memory where K (for
// A) and N (for B and C) are multiples of 4.

#include "edge.cuh"

constexpr int BM = 128, BN = 128, BK = 8;  // the block's tile
constexpr int TM = 8, TN = 8;              // the thread's part of it
constexpr int LDA = BM + 4;                // floats from one line of the A tile to the next

extern "C" __global__ void opt_7_zorder(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ __align__(16) float s_a[2][BK][LDA];
    __shared__ __align__(16) float s_b[2][BK][BN];

    const int tid = threadIdx.x;
    const int lane = tid % 32, warp = tid / 32;

    // Where this thread multiplies. A warp has 8 x 4 threads in z-order: even bits of the lane are x, odd ones y.
    const int x = lane % 2 + lane / 4 % 2 * 2 + lane / 16 * 4;
    const int y = lane / 2 % 2 + lane / 8 * 2 % 4;
    const int m0 = warp / 2 * 32 + y * 4;  // rows m0 .. m0 + 3 of the tile, and those 16 further on
    const int n0 = warp % 2 * 64 + x * 4;  // columns n0 .. n0 + 3, and those 32 further on

    // What this thread brings: 2 threads to a row of the A tile, 32 (a warp) to a row of the B tile.
    const int a_m = tid / 2, a_k = tid % 2 * 4;
    const int b_k = tid / 32, b_n = tid % 32 * 4;
    const int a_row = blockIdx.y * BM + a_m;
    const int b_col = blockIdx.x * BN + b_n;

    float4 a, b;  // the tile that is on its way
    auto fetch = [&](int k0) {
        a = b = {0.0f, 0.0f, 0.0f, 0.0f};
        if (K % 4 != 0) a = load4_edge(A, M, K, a_row, k0 + a_k);
        else if (a_row < M && k0 + a_k < K) a = LOAD4(A[a_row * K + k0 + a_k]);
        if (N % 4 != 0) b = load4_edge(B, K, N, k0 + b_k, b_col);
        else if (k0 + b_k < K && b_col < N) b = LOAD4(B[(k0 + b_k) * N + b_col]);
    };
    auto put = [&](int buffer) {
        s_a[buffer][a_k + 0][a_m] = a.x;
        s_a[buffer][a_k + 1][a_m] = a.y;
        s_a[buffer][a_k + 2][a_m] = a.z;
        s_a[buffer][a_k + 3][a_m] = a.w;
        STORE4(s_b[buffer][b_k][b_n]) = b;
    };

    fetch(0);
    put(0);
    __syncthreads();

    float sum[TM][TN] = {};
    int buffer = 0;
    for (int k0 = 0; k0 < K; k0 += BK) {
        const bool more = k0 + BK < K;
        if (more) fetch(k0 + BK);

#pragma unroll
        for (int k = 0; k < BK; ++k) {
            __align__(16) float r_a[TM], r_b[TN];
            STORE4(r_a[0]) = LOAD4(s_a[buffer][k][m0]);
            STORE4(r_a[4]) = LOAD4(s_a[buffer][k][m0 + 16]);
            STORE4(r_b[0]) = LOAD4(s_b[buffer][k][n0]);
            STORE4(r_b[4]) = LOAD4(s_b[buffer][k][n0 + 32]);

            for (int i = 0; i < TM; ++i)
                for (int j = 0; j < TN; ++j) sum[i][j] += r_a[i] * r_b[j];
        }

        buffer ^= 1;
        if (more) put(buffer);
        __syncthreads();
    }

    for (int i = 0; i < TM; ++i) {
        const int row = blockIdx.y * BM + m0 + i % 4 + i / 4 * 16;
        for (int j = 0; j < TN; j += 4) {
            const int col = blockIdx.x * BN + n0 + j / 4 * 32;
            if (N % 4 != 0) store4_edge(C, M, N, row, col, LOAD4(sum[i][j]));
            else if (row < M && col < N) STORE4(C[row * N + col]) = LOAD4(sum[i][j]);
        }
    }
}
