// C = alpha * (P[0] + P[1] + ...) + beta * C: adds what blocks of sgemm_tile.cu that divide K have left, each part a
// matrix of M x N floats. The order of the sum is always the same, so that the result is.
//
// Block 32 x 8; grid.x covers N, grid.y covers M; a thread makes one element. C is not read if beta is 0.

extern "C" __global__ void __launch_bounds__(256)
sum_of_parts(int M, int N, int parts, float alpha, const float *__restrict__ P, float beta, float *__restrict__ C)
{
    const int row = blockIdx.y * 8 + threadIdx.y, col = blockIdx.x * 32 + threadIdx.x;
    if (row >= M || col >= N) return;
    const size_t at = (size_t)row * N + col;

    float sum = 0.0f;
#pragma unroll 8
    for (int part = 0; part < parts; ++part) sum += P[(size_t)part * M * N + at];
    C[at] = beta != 0.0f ? alpha * sum + beta * C[at] : alpha * sum;
}
