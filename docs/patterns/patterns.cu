// One line for each way to use the banks; docs/reading-the-heatmap.md shows them. A warp is one row of threads (y).
extern "C" __global__ void patterns(float *out)
{
    __shared__ __align__(16) float tile[32][32];
    __shared__ float padded[32][33];
    const int x = threadIdx.x, y = threadIdx.y;
    const float *flat = &tile[y / 2][0];
    const float4 *flat4 = reinterpret_cast<const float4 *>(flat);
    float sum = out[y * 32 + x];

    tile[y][x] = sum;                       // clean: neighbours side by side
    padded[y][x] = sum;
    __syncthreads();
    sum += tile[y][2 * (x % 16) + x / 16];  // clean: another order, and still 32 different banks
    sum += flat[2 * x];                     // 2-way: every second word
    sum += tile[x][y];                      // 32-way: down a column
    sum += tile[y][7];                      // broadcast: one word for all
    sum += padded[x][y];                    // padding: down a column, rows 33 words apart
    sum += tile[x][y ^ x];                  // XOR: down a column that is turned by the row
    float4 rows = flat4[x % 16];            // 16 bytes, lanes in rows of 16: no conflict
    const int z = (x & 1) | (x >> 1 & 2) | (x >> 2 & 4);
    float4 order = flat4[z];                // 16 bytes, lanes in z-order: half as many wavefronts

    out[y * 32 + x] = sum + rows.x + rows.y + rows.z + rows.w + order.x + order.y + order.z + order.w;
}
