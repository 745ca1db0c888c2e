// C = A * B, row-major, float32. Naive: one thread makes one element of C and reads everything from global memory.
//
// A warp is 2 rows (ty) of 16 threads. In each step of k it reads
//   A[row][k]   two addresses, K floats apart, each for 16 lanes: a broadcast, 2 sectors
//   B[k][col]   16 neighbours, read by both rows: 2 sectors
// and in the end it stores C[row][col], 16 neighbours in each of two rows: 4 sectors. This is coalesced; what is lost
// is that every element of A is asked for N times, and every element of B M times.
//
// The published guide has a name and a figure for this version, and no code.
//
// Block 16 x 16; grid.x covers N, grid.y covers M. Any M, N, K.

constexpr int BLOCK = 16;

extern "C" __global__ void guide_v2(const float *A, const float *B, float *C, int M, int N, int K)
{
    const int row = blockIdx.y * BLOCK + threadIdx.y;
    const int col = blockIdx.x * BLOCK + threadIdx.x;
    if (row >= M || col >= N) return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
        const float a = A[row * K + k];
        const float b = B[k * N + col];
        sum += a * b;
    }
    C[row * N + col] = sum;
}
