// C = alpha * A * B + beta * C, row-major, float32: as fast as cuBLAS on an H100, and no shared conflict on any line.
// docs/tuning.md tells how it came about and what each decision is worth.
//
// A block of 4 warps makes 128 x 128 of C, a warp 64 x 64, a thread 8 x 16: 2 x 4 pieces of 4 x 4. The 8 x 4 threads of
// a warp stand in z-order: x is made of the bits 0 and 3 of the lane, y of the bits 1, 2 and 4.
//   s_a[k][m ...]     lanes l, l^1 and l^8 read the same: 2 wavefronts of 16 lanes each, not 4
//   s_b[k][n ...]     lanes l, l^2 and l^4 read the same: 2 wavefronts. It makes 12 for 64 x 64 of C, where opt_7_zorder
//                     takes 8 for half as much
//   s_a[a_k + i][a_m] 16 neighbouring rows of A, from both halves of a line of the tile; the XOR with 16 in lines 4 to 7
//                     keeps the halves in banks of their own: clean
//   s_b[b_k][b_n]     a warp copies 512 bytes on end: clean
//
// What is not about memory: the loops over a thread's elements go down one column and up the next, so that an FFMA takes
// one of its operands over from the FFMA before it; and C leaves through a multiplication by alpha, which lets the
// compiler choose the registers of the sums freely. Both spare the register file, which gives two operands a cycle.
//
// Block 128 x 1, two of them to a multiprocessor; grid.x covers N, grid.y covers M. M and N are multiples of 128, K of 8.
// C is not read if beta is 0.

constexpr int BM = 128, BN = 128, BK = 8;  // the block's tile
constexpr int TM = 8, TN = 16;             // the thread's part of it

#define LOAD4(x) (*reinterpret_cast<const float4 *>(&(x)))
#define STORE4(x) (*reinterpret_cast<float4 *>(&(x)))

extern "C" __global__ void __launch_bounds__(128, 2)
sgemm_tuned(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
            float *__restrict__ C)
{
    __shared__ __align__(16) float s_a[2][BK][BM];  // in lines 4 to 7, the column is m ^ 16
    __shared__ __align__(16) float s_b[2][BK][BN];

    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int block_m = blockIdx.y * BM, block_n = blockIdx.x * BN;

    // Where this thread multiplies: rows m .. m+3 and 32 further on, columns n .. n+3 and 16, 32 and 48 further on.
    const int x = lane % 2 + lane / 8 % 2 * 2;
    const int y = lane / 2 % 4 + lane / 16 * 4;
    const int m = warp % 2 * 64 + y * 4;
    const int n = warp / 2 * 64 + x * 4;

    // What it brings: 4 floats of the rows a_m and a_m + 64 of the A tile, and of the lines b_k and b_k + 4 of the B tile.
    const int a_m = tid / 2, a_k = tid % 2 * 4;
    const int b_k = warp, b_n = lane * 4;
    const float *from_a = A + (size_t)(block_m + a_m) * K + a_k;
    const float *from_b = B + (size_t)b_k * N + block_n + b_n;

    float4 a[2];  // of the A tile that is on its way, which is transposed; the B tile goes by cp.async
    auto fetch_a = [&] {
        a[0] = LOAD4(from_a[0]);
        a[1] = LOAD4(from_a[(size_t)64 * K]);
    };
    auto store_a = [&](int buffer) {
        for (int i = 0; i < 2; ++i) {
            float *const to = &s_a[buffer][a_k][(a_m ^ (a_k * 4)) + 64 * i];
            to[0 * BM] = a[i].x;
            to[1 * BM] = a[i].y;
            to[2 * BM] = a[i].z;
            to[3 * BM] = a[i].w;
        }
    };
    auto copy_b = [&](int buffer) {
        for (int i = 0; i < 2; ++i) {
            const unsigned to = __cvta_generic_to_shared(&s_b[buffer][b_k + 4 * i][b_n]);
            const float *const from = from_b + (size_t)4 * i * N;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(to), "l"(from) : "memory");
        }
    };
    auto arrive = [&] {
        asm volatile("cp.async.wait_all;" : : : "memory");
        __syncthreads();
    };

    float r_a[2][TM], r_b[2][TN];  // the operands of this step of k, and of the next one
    auto load_operands = [&](int buffer, int k) {
        for (int i = 0; i < TM; i += 4) STORE4(r_a[k % 2][i]) = LOAD4(s_a[buffer][k][(m ^ (k / 4 * 16)) + 8 * i]);
        for (int j = 0; j < TN; j += 4) STORE4(r_b[k % 2][j]) = LOAD4(s_b[buffer][k][n + 4 * j]);
    };

    fetch_a();
    copy_b(0);
    store_a(0);
    arrive();
    load_operands(0, 0);
    if (K > BK) {
        from_a += BK;
        from_b += (size_t)BK * N;
    }

    // While a tile is multiplied, the next one is brought. The last time round that is the last one again, to nobody's
    // use: cheaper than a question in every round.
    float sum[TM][TN] = {};
    int buffer = 0;
#pragma unroll 1
    for (int k0 = 0; k0 < K; k0 += BK) {
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k == 0) fetch_a();
            if (k == 1) copy_b(buffer ^ 1);
            if (k == 5) store_a(buffer ^ 1);
            if (k == 6 && k0 + 2 * BK < K) {
                from_a += BK;
                from_b += (size_t)BK * N;
            }
            if (k == 7) {
                arrive();
                buffer ^= 1;
            }
            load_operands(buffer, (k + 1) % BK);
#pragma unroll
            for (int j = 0; j < TN; ++j) {
#pragma unroll
                for (int step = 0; step < TM; ++step) {
                    const int i = j % 2 == 0 ? step : TM - 1 - step;
                    sum[i][j] += r_a[k % 2][i] * r_b[k % 2][j];
                }
            }
        }
    }

#pragma unroll
    for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            float *const to = C + (size_t)(block_m + m + i / 4 * 32 + i % 4) * N + block_n + n + 4 * j;
            float4 c = {0.0f, 0.0f, 0.0f, 0.0f};
            if (beta != 0.0f) c = LOAD4(to[0]);
            c.x = alpha * sum[i][j + 0] + beta * c.x;
            c.y = alpha * sum[i][j + 1] + beta * c.y;
            c.z = alpha * sum[i][j + 2] + beta * c.z;
            c.w = alpha * sum[i][j + 3] + beta * c.w;
            STORE4(to[0]) = c;
        }
    }
}
