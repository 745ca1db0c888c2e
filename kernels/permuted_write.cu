// C = A^T for a row-major A (M x N), by way of a 32 x 32 tile in shared memory, with the permutation as published.
//
// The published example stops after the write. Here blocks cover the whole matrix, and the tile is written out.
// A warp is one row of A: the lanes have tx = 0..31 and the same ty.
//   s_a[tx ^ (ty & 1)][ty]   the XOR changes the line, and lines are 32 words = all banks apart: every lane writes to
//                            bank ty. 32 ways, as without the XOR; for even ty it does not even change a line
//   s_a[ty ^ (tx & 1)][tx]   read back: lane tx reads bank tx, clean
//
// Block 32 x 32; grid.x covers N, grid.y covers M. M and N are multiples of 32.

extern "C" __global__ void permuted_write(const float *A, float *C, int M, int N)
{
    __shared__ float s_a[32][32];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * 32, col = blockIdx.x * 32;  // of the tile in A

    const int permuted_tx = tx ^ (ty & 1);
    s_a[permuted_tx][ty] = A[(row + ty) * N + col + tx];
    __syncthreads();

    const float value = s_a[ty ^ (tx & 1)][tx];
    C[(col + ty) * M + row + tx] = value;
}
