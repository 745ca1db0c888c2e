// C = A * B, row-major, float32. opt_2_naive with x and y exchanged: x of the thread is the row of C, y the column.
//
// A warp is one column (ty) of 32 threads, so it has 32 elements of one column of C. In each step of k it reads
//   A[row][k]   32 rows, K floats apart: each lane has a sector of its own, 32 where 4 would do
//   B[k][col]   one address for the whole warp: a broadcast, 1 sector
// and in the end it stores C[row][col], scattered like A. That is 33 sectors in each step instead of 5.
//
// Block 32 x 32; grid.x covers M, grid.y covers N. Any M, N, K.

constexpr int BLOCK = 32;

extern "C" __global__ void opt_2_naive_swapped(const float *A, const float *B, float *C, int M, int N, int K)
{
    const int row = blockIdx.x * BLOCK + threadIdx.x;
    const int col = blockIdx.y * BLOCK + threadIdx.y;
    if (row >= M || col >= N) return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
        const float a = A[row * K + k];
        const float b = B[k * N + col];
        sum += a * b;
    }
    C[row * N + col] = sum;
}
