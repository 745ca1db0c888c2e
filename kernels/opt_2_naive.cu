// C = A * B, row-major, float32. Naive: one thread makes one element of C and reads everything from global memory. The
// good way to give out the elements: x of the thread is the column of C, y the row.
//
// A warp is one row (ty) of 32 threads, so it has one row of C. In each step of k it reads
//   A[row][k]   one address for the whole warp: a broadcast, 1 sector
//   B[k][col]   32 neighbours: 4 sectors, one line
// and in the end it stores C[row][col], 32 neighbours: 4 sectors. opt_2_naive_swapped is the bad way.
//
// The published text gives the finding and neither code nor block shape.
//
// Block 32 x 32; grid.x covers N, grid.y covers M. Any M, N, K.

constexpr int BLOCK = 32;

extern "C" __global__ void opt_2_naive(const float *A, const float *B, float *C, int M, int N, int K)
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
