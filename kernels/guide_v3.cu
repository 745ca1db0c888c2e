// C = A * B, row-major, float32. A block makes a 16 x 16 tile of C from 16 x 16 tiles of A and B in shared memory; a
// thread brings one element of each tile and makes one element of C.
//
// A warp is 2 rows (ty) of 16 threads, which are 32 neighbouring words of a tile, so filling is clean. While it
// multiplies, it reads
//   s_a[ty][k]   two words, 16 words apart. The compiler unrolls the loop and joins four k into one 16-byte read, of
//                which each half of the warp is served by itself: 2 wavefronts
//   s_b[k][tx]   16 neighbours, read by both rows: clean
// The tiles are aligned to show the joining in the PTX. Without, it is only done later, in the machine code.
//
// Block 16 x 16; grid.x covers N, grid.y covers M. Any M, N, K.

constexpr int BLOCK = 16;

extern "C" __global__ void guide_v3(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ __align__(16) float s_a[BLOCK][BLOCK];
    __shared__ __align__(16) float s_b[BLOCK][BLOCK];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * BLOCK + ty;
    const int col = blockIdx.x * BLOCK + tx;

    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += BLOCK) {
        float a = 0.0f, b = 0.0f;
        if (row < M && k0 + tx < K) a = A[row * K + k0 + tx];
        if (k0 + ty < K && col < N) b = B[(k0 + ty) * N + col];

        s_a[ty][tx] = a;
        s_b[ty][tx] = b;
        __syncthreads();

        for (int k = 0; k < BLOCK; ++k) {
            const float a = s_a[ty][k];
            const float b = s_b[k][tx];
            sum += a * b;
        }
        __syncthreads();
    }
    if (row < M && col < N) C[row * N + col] = sum;
}
