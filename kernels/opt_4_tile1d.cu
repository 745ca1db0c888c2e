// C = A * B, row-major, float32. opt_3_shared with 8 elements to a thread: 8 rows of one column of C.
//
// So that a thread brings as many elements of each tile as it makes of C, the tiles are square. A warp is one row (ty)
// of 32 threads; while it multiplies, it reads
//   s_a[ty*8 + m][k]   one word for each m: a broadcast, four k joined to 16 bytes, 2 wavefronts
//   s_b[k][tx]         32 neighbours. The compiler reads them once for all 8 m
// Nothing collides. 8 products of a warp take 5 wavefronts; in opt_3_shared they take 12.
//
// The published text gives no sizes.
//
// Block 32 x 4; grid.x covers N, grid.y covers M. Any M, N, K.

constexpr int BM = 32, BN = 32, BK = 32;  // the block's tile
constexpr int TM = 8;                     // the thread's part of it: TM rows of one column

extern "C" __global__ void opt_4_tile1d(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ __align__(16) float s_a[BM][BK];
    __shared__ __align__(16) float s_b[BK][BN];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * BM + ty * TM;
    const int col = blockIdx.x * BN + tx;

    float sum[TM] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        for (int i = 0; i < TM; ++i) {
            const int y = ty * TM + i;  // the row of both tiles that this warp fills
            float a = 0.0f, b = 0.0f;
            if (row + i < M && k0 + tx < K) a = A[(row + i) * K + k0 + tx];
            if (k0 + y < K && col < N) b = B[(k0 + y) * N + col];
            s_a[y][tx] = a;
            s_b[y][tx] = b;
        }
        __syncthreads();

#pragma unroll 4  // and the reads of s_a are joined along k
        for (int k = 0; k < BK; ++k)
            for (int m = 0; m < TM; ++m) sum[m] += s_a[ty * TM + m][k] * s_b[k][tx];
        __syncthreads();
    }

    for (int i = 0; i < TM; ++i)
        if (row + i < M && col < N) C[(row + i) * N + col] = sum[i];
}
