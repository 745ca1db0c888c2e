// C = A * B, row-major, float32. A block makes a 32 x 32 tile of C in steps of 32 along K; a thread brings one element
// of each tile and makes one element of C.
//
// A warp is one row (ty) of 32 threads: it fills a line of both tiles, and while it multiplies, it reads
//   s_a[ty][k]   one word: a broadcast. The compiler unrolls the loop and joins four k into one 16-byte read, which
//                takes 2 wavefronts (halves of the warp)
//   s_b[k][tx]   32 neighbours
// Nothing collides. Global memory is asked 32 times less often than in opt_2_naive.
//
// The published text gives no sizes; these make a warp one row. The tiles are aligned to show the joining in the PTX.
// Without, it is only done later, in the machine code.
//
// Block 32 x 32; grid.x covers N, grid.y covers M. Any M, N, K.

constexpr int BM = 32, BN = 32, BK = 32;

extern "C" __global__ void opt_3_shared(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ __align__(16) float s_a[BM][BK];
    __shared__ __align__(16) float s_b[BK][BN];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * BM + ty;
    const int col = blockIdx.x * BN + tx;

    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += BK) {
        float a = 0.0f, b = 0.0f;
        if (row < M && k0 + tx < K) a = A[row * K + k0 + tx];
        if (k0 + ty < K && col < N) b = B[(k0 + ty) * N + col];

        s_a[ty][tx] = a;
        s_b[ty][tx] = b;
        __syncthreads();

        for (int k = 0; k < BK; ++k) {
            const float a = s_a[ty][k];
            const float b = s_b[k][tx];
            sum += a * b;
        }
        __syncthreads();
    }
    if (row < M && col < N) C[row * N + col] = sum;
}
