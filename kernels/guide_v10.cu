// C = A * B, row-major, float32. A 128 x 128 tile of C in steps of 8 along K, 8 x 8 elements to a thread, with
// hand-written PTX for memory: 16 bytes at a time from and to shared memory.
//
// A thread brings 4 rows of one column of A. They are neighbours in the transposed tile, so they can be stored at once:
//   s_a[a_k][a_m ...]   8 lanes in a row have 8 different a_k, 128 words apart: the same 4 banks, 8 ways
//   s_b[b_k][b_n]       32 neighbours, 4 bytes each, four times: clean
// A warp is 2 rows (ty) of 16 threads while it multiplies:
//   s_a[k][ty*4 ...]    two addresses, each for 16 lanes: a broadcast, 2 wavefronts (halves of the warp)
//   s_b[k][tx*4 ...]    16 neighbouring float4, read by both rows: 4 wavefronts of 8 lanes each
// and the same 64 further on: the 8 x 8 elements are four quadrants of 4 x 4.
//
// The published guide shows the two loads; which thread brings what, and the quadrants' distance of 64, are ours.
//
// Block 256 x 1; grid.x covers N, grid.y covers M. Any M, N, K; 16-byte stores of C where N is a multiple of 4.

#include "edge.cuh"
#include "guide_asm.cuh"

constexpr int BM = 128, BN = 128, BK = 8;  // the block's tile
constexpr int LDA = BM, LDB = BN;          // floats from one line of a tile to the next
constexpr int WORD = sizeof(float);

extern "C" __global__ void guide_v10(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ __align__(16) float s_a[BK * LDA];  // transposed: [k * LDA + m]
    __shared__ __align__(16) float s_b[BK * LDB];

    const int tid = threadIdx.x;
    const int tx = tid % 16, ty = tid / 16;

    // What this thread brings: column a_k of the rows a_m .. a_m + 3 of A; of row b_k of B every 32nd column.
    const int a_k = tid % 8, a_m = tid / 8 * 4;
    const int b_k = tid / 32, b_n = tid % 32;
    const int a_row = blockIdx.y * BM + a_m;
    const int b_col = blockIdx.x * BN + b_n;

    const uint32_t a_sts_addr = shared_address(s_a) + (a_k * LDA + a_m) * WORD;
    const uint32_t b_sts_addr = shared_address(s_b) + (b_k * LDB + b_n) * WORD;
    const uint32_t a_lds_addr = shared_address(s_a) + ty * 4 * WORD;
    const uint32_t b_lds_addr = shared_address(s_b) + tx * 4 * WORD;

    float sum[8][8] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        float a[4], b[4];
        const int k_a = k0 + a_k, k_b = k0 + b_k;
        for (int i = 0; i < 4; ++i) {
            LDG32_NC_0(a[i], &A[(a_row + i) * K + k_a], a_row + i < M && k_a < K);
            LDG32_NC_0(b[i], &B[k_b * N + b_col + i * 32], k_b < K && b_col + i * 32 < N);
        }

        STS128(&a[0], a_sts_addr);
        for (int i = 0; i < 4; ++i) {
            STS32(b[i], b_sts_addr + i * 32 * WORD);
        }
        __syncthreads();

#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float r_a[8], r_b[8];
            LDS128(&r_a[0], a_lds_addr + k * LDA * WORD);
            LDS128(&r_a[4], a_lds_addr + (k * LDA + 64) * WORD);
            LDS128(&r_b[0], b_lds_addr + k * LDB * WORD);
            LDS128(&r_b[4], b_lds_addr + (k * LDB + 64) * WORD);

            for (int i = 0; i < 8; ++i)
                for (int j = 0; j < 8; ++j) sum[i][j] += r_a[i] * r_b[j];
        }
        __syncthreads();
    }

    for (int i = 0; i < 8; ++i) {  // four quadrants of 4 x 4, 64 rows and columns apart
        const int row = blockIdx.y * BM + ty * 4 + i % 4 + i / 4 * 64;
        for (int j = 0; j < 8; j += 4) {
            const int col = blockIdx.x * BN + tx * 4 + j / 4 * 64;
            if (N % 4 != 0) store4_edge(C, M, N, row, col, LOAD4(sum[i][j]));
            else if (row < M && col < N) STORE4(C[row * N + col]) = LOAD4(sum[i][j]);
        }
    }
}
