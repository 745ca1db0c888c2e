// C = A^T for a row-major A (M x N), by way of a 32 x 32 tile in shared memory: permuted_write with a permutation that
// spreads the writes over the banks.
//
// A warp is one row of A: the lanes have tx = 0..31 and the same ty. The column is what chooses the bank, so the
// column is what has to be permuted, by the number of the line:
//   s_a[tx][ty ^ tx]         32 lines, 32 different columns: clean
//   s_a[ty][tx ^ ty]         read back: one line, its 32 columns in another order, clean
//
// Block 32 x 32; grid.x covers N, grid.y covers M. M and N are multiples of 32.

extern "C" __global__ void permuted_write_fixed(const float *A, float *C, int M, int N)
{
    __shared__ float s_a[32][32];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * 32, col = blockIdx.x * 32;  // of the tile in A

    s_a[tx][ty ^ tx] = A[(row + ty) * N + col + tx];
    __syncthreads();

    const float value = s_a[ty][tx ^ ty];
    C[(col + ty) * M + row + tx] = value;
}
