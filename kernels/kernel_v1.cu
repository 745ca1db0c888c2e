// C = A * B, row-major, float32. One thread makes one element of C and reads everything from global memory.
//
// Lanes run down the rows: lane i of a warp has row i of a 32-row strip, all of them the same column.
//   A[row][k]   32 rows, K floats apart: each lane has a 32-byte sector of its own (32 sectors where 4 would do)
//   B[k][col]   one address for the whole warp: a broadcast
//   C[row][col] scattered like A
// Swapping x and y would make the reads of A a broadcast and those of B one contiguous line.
//
// Block 32 x 32; grid.x covers M, grid.y covers N. Any M, N, K.

extern "C" __global__ void kernel_v1(const float *A, const float *B, float *C, int M, int N, int K)
{
    const int row = blockIdx.x * 32 + threadIdx.x;
    const int col = blockIdx.y * 32 + threadIdx.y;
    if (row >= M || col >= N) return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
        const float a = A[row * K + k];
        const float b = B[k * N + col];
        sum += a * b;
    }
    C[row * N + col] = sum;
}
