// C = A^T for a row-major A (M x N): transpose_naive with the columns of each line permuted by XOR with its number.
//
// A warp is one row: the lanes have tx = 0..31 and the same ty.
//   tile[ty][tx ^ ty]   written along a line, its 32 columns in another order: clean
//   tile[tx][ty ^ tx]   read from 32 lines in 32 different columns: clean
// It costs no memory.
//
// Block 32 x 32; grid.x covers N, grid.y covers M. Any M, N.

extern "C" __global__ void transpose_xor(const float *A, float *C, int M, int N)
{
    __shared__ float tile[32][32];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * 32, col = blockIdx.x * 32;  // of the tile in A

    if (row + ty < M && col + tx < N) {
        tile[ty][tx ^ ty] = A[(row + ty) * N + col + tx];
    }
    __syncthreads();

    if (col + ty < N && row + tx < M) {
        C[(col + ty) * M + row + tx] = tile[tx][ty ^ tx];
    }
}
