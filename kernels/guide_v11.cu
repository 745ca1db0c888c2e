// C = A * B, row-major, float32. guide_v10 with two buffers for each tile, and lines of the A tile 132 floats apart.
//
// The 4 floats of padding cure the stores to the A tile:
//   s_a[a_k][a_m ...]   8 lanes in a row have 8 different a_k, 132 words apart: 4 banks further on each, clean
// The reads are those of guide_v10. A line of s_a is read by itself, so it does not matter where the next one starts.
//
// While one buffer is read, the next tile is fetched to registers and put in the other one. To go from one to the
// other, one bit of the address is flipped. 8 lines of 132 floats are 4224 bytes, so the A buffers have to be 8192
// bytes apart, and take 16 KiB where 8.25 would do. The published guide flips the bit in the address itself. That is
// right only where arrays start at multiples of their size, and on sm_90 they start at 1024, whatever alignment they
// ask for; so here the bit is flipped in the distance from the array's start.
//
// Block 256 x 1; grid.x covers N, grid.y covers M. Any M, N, K; 16-byte stores of C where N is a multiple of 4.

#include "edge.cuh"
#include "guide_asm.cuh"

constexpr int BM = 128, BN = 128, BK = 8;        // the block's tile
constexpr int LDA = BM + 4, LDB = BN;            // floats from one line of a tile to the next
constexpr int WORD = sizeof(float);
constexpr int A_FLIP = 0x2000, B_FLIP = 0x1000;  // bytes from one buffer to the other

extern "C" __global__ void guide_v11(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ __align__(16) float s_a[2 * A_FLIP / WORD];  // two buffers, transposed: [k * LDA + m]
    __shared__ __align__(16) float s_b[2 * B_FLIP / WORD];
    const uint32_t a_base = shared_address(s_a), b_base = shared_address(s_b);

    const int tid = threadIdx.x;
    const int tx = tid % 16, ty = tid / 16;

    // What this thread brings: column a_k of the rows a_m .. a_m + 3 of A; of row b_k of B every 32nd column.
    const int a_k = tid % 8, a_m = tid / 8 * 4;
    const int b_k = tid / 32, b_n = tid % 32;
    const int a_row = blockIdx.y * BM + a_m;
    const int b_col = blockIdx.x * BN + b_n;

    // Where it puts that and where it reads from, in bytes from the start of s_a and s_b.
    uint32_t a_sts_addr = (a_k * LDA + a_m) * WORD;
    uint32_t b_sts_addr = (b_k * LDB + b_n) * WORD;
    uint32_t a_lds_addr = ty * 4 * WORD;
    uint32_t b_lds_addr = tx * 4 * WORD;

    float a[4], b[4];  // the tile that is on its way
    auto fetch = [&](int k0) {
        const int k_a = k0 + a_k, k_b = k0 + b_k;
        for (int i = 0; i < 4; ++i) {
            LDG32_NC_0(a[i], &A[(a_row + i) * K + k_a], a_row + i < M && k_a < K);
            LDG32_NC_0(b[i], &B[k_b * N + b_col + i * 32], k_b < K && b_col + i * 32 < N);
        }
    };
    auto put = [&] {
        STS128(&a[0], a_base + a_sts_addr);
        for (int i = 0; i < 4; ++i) {
            STS32(b[i], b_base + b_sts_addr + i * 32 * WORD);
        }
        a_sts_addr ^= A_FLIP;
        b_sts_addr ^= B_FLIP;
    };

    fetch(0);
    put();
    __syncthreads();

    float sum[8][8] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        const bool more = k0 + BK < K;
        if (more) fetch(k0 + BK);

#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float r_a[8], r_b[8];
            LDS128(&r_a[0], a_base + a_lds_addr + k * LDA * WORD);
            LDS128(&r_a[4], a_base + a_lds_addr + (k * LDA + 64) * WORD);
            LDS128(&r_b[0], b_base + b_lds_addr + k * LDB * WORD);
            LDS128(&r_b[4], b_base + b_lds_addr + (k * LDB + 64) * WORD);

            for (int i = 0; i < 8; ++i)
                for (int j = 0; j < 8; ++j) sum[i][j] += r_a[i] * r_b[j];
        }

        if (more) put();
        __syncthreads();
        a_lds_addr ^= A_FLIP;
        b_lds_addr ^= B_FLIP;
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
