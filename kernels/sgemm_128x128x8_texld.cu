// C = alpha * A * B + beta * C, row-major with leading dimensions, float32. sgemm_128x128x8 with A and B read as 1-D
// textures of float4: 16 bytes a thread, and zeros beyond the end of the array without a predicate.
//
// Only the way into shared memory is another one. Two threads bring a row of the A tile and a warp a row of the B
// tile:
//   blocks_a[a_k + i][a_m]        lanes 2j and 2j+1 write row j, 4 lines apart: 4 * 132 floats are 16 banks. Even lanes
//                                 take 16 banks, odd lanes the other 16: clean
//   blocks_b[b_k][b_n ...]        32 neighbouring float4: clean
// Fetches go through the texture pipe: they are not among the requests for global memory.
//
// The article does not say which thread fetches what. Beyond its last column a row goes on with the next one: B's
// columns there make columns of C that nobody stores, and A's meet rows beyond the end of B, which are zeros. Here A's
// are made zeros too, for the sake of a NaN or an infinity in the next row.
//
// Block 256 x 1; grid.x covers N, grid.y covers M. lda and ldb are multiples of 4, A and B whole rows of lda and ldb
// floats, at most 2^27 float4; else any M, N, K, and ldc >= N. C is not read if beta is 0.

#include "edge.cuh"
#include "sgemm_ptx.cuh"

constexpr int BM = 128, BN = 128, BK = 8;         // the block's tile
constexpr int LDA = BM + 4;                       // floats from one line of the A tile to the next
constexpr int SWITCH_A = 8192, SWITCH_B = 4096;   // bytes: the XOR that goes from one buffer to the other, and back
constexpr int FLOAT = 4;                          // bytes

extern "C" __global__ void sgemm_128x128x8_texld(int M, int N, int K, float alpha, cudaTextureObject_t A, int lda,
                                                 cudaTextureObject_t B, int ldb, float beta, float *C, int ldc)
{
    __shared__ __align__(16) float blocks_a[2 * SWITCH_A / FLOAT];  // a tile takes 4224 bytes of each half
    __shared__ __align__(16) float blocks_b[2 * SWITCH_B / FLOAT];  // and here 4096, which is all
    const unsigned shared_a = shared_address(blocks_a), shared_b = shared_address(blocks_b);

    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int block_m = blockIdx.y * BM, block_n = blockIdx.x * BN;

    // What this thread brings: 4 floats of a row of the A tile, and 4 of a row of the B tile. Offsets in shared memory
    // (sts: of stores, lds: of loads) are bytes from the start of blocks_a or blocks_b.
    const int a_m = tid / 2, a_k = tid % 2 * 4;
    const int b_k = warp, b_n = lane * 4;
    int from_a = ((block_m + a_m) * lda + a_k) / 4;  // texels: a texel is 4 floats
    int from_b = (b_k * ldb + block_n + b_n) / 4;
    unsigned sts_a = (a_k * LDA + a_m) * FLOAT;
    unsigned sts_b = (b_k * BN + b_n) * FLOAT;

    // What it makes: rows m .. m+3 and 16 further on, columns n .. n+3 and 32 further on.
    const int warp_m = warp / 2 * 32, warp_n = warp % 2 * 64;
    const int lane_m = lane / 16 * 2 + lane % 2, lane_n = lane / 2 % 8;
    const int m = warp_m + lane_m * 4, n = warp_n + lane_n * 4;
    unsigned lds_a = m * FLOAT;
    unsigned lds_b = n * FLOAT;

    __align__(16) float a[4], b[4];  // the tile that is on its way
    auto fetch = [&](int k0) {
        STORE4(a[0]) = tex1Dfetch<float4>(A, from_a);
        STORE4(b[0]) = tex1Dfetch<float4>(B, from_b);
        from_a += BK / 4;
        from_b += BK * ldb / 4;
        if (k0 + BK <= K) return;
        for (int i = 0; i < 4; ++i)
            if (k0 + a_k + i >= K) a[i] = 0.0f;
    };
    auto put = [&] {
        for (int i = 0; i < 4; ++i) STS1(shared_a + sts_a + i * LDA * FLOAT, a[i]);
        STS4(shared_b + sts_b, b[0]);
        sts_a ^= SWITCH_A;
        sts_b ^= SWITCH_B;
    };

    float r_a[2][8], r_b[2][8];  // fragments: the one in use and the next one
    auto load_fragment = [&](int k) {
        LDS4(r_a[k % 2][0], shared_a + lds_a + (k * LDA) * FLOAT);
        LDS4(r_a[k % 2][4], shared_a + lds_a + (k * LDA + 16) * FLOAT);
        LDS4(r_b[k % 2][0], shared_b + lds_b + (k * BN) * FLOAT);
        LDS4(r_b[k % 2][4], shared_b + lds_b + (k * BN + 32) * FLOAT);
    };

    fetch(0);
    put();
    __syncthreads();
    load_fragment(0);

    float sum[8][8] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        const bool more = k0 + BK < K;
        if (more) fetch(k0 + BK);

#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 < BK) load_fragment(k + 1);
            for (int i = 0; i < 8; ++i)
                for (int j = 0; j < 8; ++j) sum[i][j] += r_a[k % 2][i] * r_b[k % 2][j];
        }

        if (more) {
            put();
            lds_a ^= SWITCH_A;
            lds_b ^= SWITCH_B;
            __syncthreads();
            load_fragment(0);
        }
    }

    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) sum[i][j] *= alpha;

    // C through shared memory: 16 x 32 floats of each warp at a time, one of its lanes' four accumulators.
    __syncthreads();  // nobody reads an A tile any more: blocks_a is 2048 bytes for each warp
    const unsigned stage = shared_a + warp * (16 * 32) * FLOAT;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
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
