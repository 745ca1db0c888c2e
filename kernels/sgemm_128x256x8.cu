// C = alpha * A * B + beta * C, row-major with leading dimensions, float32. sgemm_128x128x8 with a tile of 128 x 256
// for a block, and tiles that come by cp.async: from global into shared memory without a stop in registers, while the
// one before is multiplied.
//
// cp.async copies 4 bytes at a time, so that the A tile is still transposed on its way:
//   blocks_a[a_k][a_m + 4*i]      a warp copies four neighbouring rows at a time, to 8 lines, each 4 banks further on:
//                                 clean to write. With four rows to a thread, as in sgemm_128x128x8, four lanes would
//                                 meet in each of 8 banks: 4 ways
//   blocks_b[b_k][b_n + 32*i]     32 neighbouring floats: clean
// A warp makes 32 x 128 of C, a thread eight 4 x 4 accumulators; the patterns of lanes are those of sgemm_128x128x8:
//   blocks_a[k][m ...]            lanes l and l^2 read the same: 2 wavefronts of 16 lanes each
//   blocks_b[k][n ...]            lanes l and l^1 read the same: 2 wavefronts. It makes 12 of both for 32 x 128 of C,
//                                 where sgemm_128x128x8 takes 16
//   stage[4*lane_m + r][4*lane_n ...] 2 ways
//   stage[r][lane]                    clean, and 128 bytes of C on end
//
// The article says of this kernel only its tile and cp.async.ca; 256 threads, the warp's part and who copies what are
// ours. Elements outside A and B are copied as zeros, by a source size of 0.
//
// Block 256 x 1; grid.x covers N, grid.y covers M. Any M, N, K; lda >= K, ldb and ldc >= N. C is not read if beta is 0.

#include "sgemm_ptx.cuh"

constexpr int BM = 128, BN = 256, BK = 8;         // the block's tile
constexpr int LDA = BM + 4;                       // floats from one line of the A tile to the next
constexpr int SWITCH_A = 8192, SWITCH_B = 8192;   // bytes: the XOR that goes from one buffer to the other, and back
constexpr int FLOAT = 4;                          // bytes

extern "C" __global__ void sgemm_128x256x8(int M, int N, int K, float alpha, const float *A, int lda, const float *B,
                                           int ldb, float beta, float *C, int ldc)
{
    __shared__ __align__(16) float blocks_a[2 * SWITCH_A / FLOAT];  // a tile takes 4224 bytes of each half
    __shared__ __align__(16) float blocks_b[2 * SWITCH_B / FLOAT];  // and here 8192, which is all
    const unsigned shared_a = shared_address(blocks_a), shared_b = shared_address(blocks_b);

    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int block_m = blockIdx.y * BM, block_n = blockIdx.x * BN;

    // What this thread brings: 4 floats of a column of the A tile, 4 apart, and 8 of a row of the B tile, 32 apart.
    // Offsets in shared memory (sts: of copies, lds: of loads) are bytes from the start of blocks_a or blocks_b.
    const int a_k = lane % 8, a_m = warp * 16 + lane / 8;
    const int b_k = warp, b_n = lane;
    const float *from_a = A + (long long)(block_m + a_m) * lda + a_k;
    const float *from_b = B + (long long)b_k * ldb + block_n + b_n;
    unsigned sts_a = (a_k * LDA + a_m) * FLOAT;
    unsigned sts_b = (b_k * BN + b_n) * FLOAT;

    // What it makes: rows m .. m+3 and 16 further on, columns n .. n+3 and 32, 64 and 96 further on.
    const int warp_m = warp / 2 * 32, warp_n = warp % 2 * 128;
    const int lane_m = lane / 16 * 2 + lane % 2, lane_n = lane / 2 % 8;
    const int m = warp_m + lane_m * 4, n = warp_n + lane_n * 4;
    unsigned lds_a = m * FLOAT;
    unsigned lds_b = n * FLOAT;

    auto copy = [&](int k0) {
        for (int i = 0; i < 4; ++i) {
            const bool is_inside = block_m + a_m + 4 * i < M && k0 + a_k < K;
            CP_ASYNC_IF(shared_a + sts_a + 4 * i * FLOAT, &from_a[4 * i * (long long)lda], is_inside);
        }
        for (int i = 0; i < 8; ++i) {
            const bool is_inside = k0 + b_k < K && block_n + b_n + 32 * i < N;
            CP_ASYNC_IF(shared_b + sts_b + 32 * i * FLOAT, &from_b[32 * i], is_inside);
        }
        CP_ASYNC_COMMIT();
        from_a += BK;
        from_b += (long long)BK * ldb;
        sts_a ^= SWITCH_A;
        sts_b ^= SWITCH_B;
    };

    float r_a[2][8], r_b[2][16];  // fragments: the one in use and the next one
    auto load_fragment = [&](int k) {
        LDS4(r_a[k % 2][0], shared_a + lds_a + (k * LDA) * FLOAT);
        LDS4(r_a[k % 2][4], shared_a + lds_a + (k * LDA + 16) * FLOAT);
        for (int j = 0; j < 4; ++j) LDS4(r_b[k % 2][4 * j], shared_b + lds_b + (k * BN + 32 * j) * FLOAT);
    };

    copy(0);
    CP_ASYNC_WAIT();
    __syncthreads();
    load_fragment(0);

    float sum[8][16] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        const bool more = k0 + BK < K;
        if (more) copy(k0 + BK);

#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 < BK) load_fragment(k + 1);
            for (int i = 0; i < 8; ++i)
                for (int j = 0; j < 16; ++j) sum[i][j] += r_a[k % 2][i] * r_b[k % 2][j];
        }

        if (more) {
            CP_ASYNC_WAIT();
            lds_a ^= SWITCH_A;
            lds_b ^= SWITCH_B;
            __syncthreads();
            load_fragment(0);
        }
    }

    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 16; ++j) sum[i][j] *= alpha;

    // C through shared memory: 16 x 32 floats of each warp at a time, one of its lanes' eight accumulators.
    __syncthreads();  // nobody reads an A tile any more: blocks_a is 2048 bytes for each warp
    const unsigned stage = shared_a + warp * (16 * 32) * FLOAT;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            for (int r = 0; r < 4; ++r) {
                STS4(stage + ((4 * lane_m + r) * 32 + 4 * lane_n) * FLOAT, sum[4 * i + r][4 * j]);
            }
            __syncwarp();
            for (int r = 0; r < 16; ++r) {
                const int row = block_m + warp_m + 16 * i + r, col = block_n + warp_n + 32 * j + lane;
                const bool is_inside = row < M && col < N;
                float *const to = C + (long long)row * ldc + col;
                float c[2];  // what this makes, and what was there
                LDS1(c[0], stage + (32 * r + lane) * FLOAT);
                if (beta != 0.0f) {
                    LDG_IF(c[1], to, is_inside);
                    c[0] += beta * c[1];
                }
                STG_IF(to, c[0], is_inside);
            }
            __syncwarp();
        }
    }
}
