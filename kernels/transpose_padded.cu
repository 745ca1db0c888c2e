// C = A^T for a row-major A (M x N): transpose_naive with one float of padding after each line of the tile.
//
// A warp is one row: the lanes have tx = 0..31 and the same ty.
//   tile[ty][tx]        written along a line: clean
//   tile[tx][ty]        read along a column: lines are 33 words apart, so each lane is one bank further on: clean
// It costs 128 bytes of shared memory, and lines no longer start at multiples of 16 bytes.
//
// Block 32 x 32; grid.x covers N, grid.y covers M. Any M, N.

extern "C" __global__ void transpose_padded(const float *A, float *C, int M, int N)
{
    __shared__ float tile[32][33];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * 32, col = blockIdx.x * 32;  // of the tile in A

    if (row + ty < M && col + tx < N) {
        tile[ty][tx] = A[(row + ty) * N + col + tx];
    }
    __syncthreads();

    if (col + ty < N && row + tx < M) {
        C[(col + ty) * M + row + tx] = tile[tx][ty];
    }
}
