// Four floats of a row of a row-major matrix, one by one, for what a float4 cannot do: matrices whose row length is
// no multiple of 4 (their rows start at addresses that are not multiples of 16 bytes). Outside the matrix there are
// zeros to read and nothing to write. The aligned way, which is the one to look at, is in each kernel's own file.
#pragma once

#define LOAD4(x) (reinterpret_cast<const float4 &>(x))  // a 16-byte load of x and the three floats after it
#define STORE4(x) (reinterpret_cast<float4 &>(x))       // the same as the target of a store

__device__ inline float4 load4_edge(const float *matrix, int rows, int cols, int row, int col)
{
    float4 value = {0.0f, 0.0f, 0.0f, 0.0f};
    if (row >= rows) return value;
    const float *from = matrix + row * cols + col;
    if (col + 0 < cols) value.x = from[0];
    if (col + 1 < cols) value.y = from[1];
    if (col + 2 < cols) value.z = from[2];
    if (col + 3 < cols) value.w = from[3];
    return value;
}

__device__ inline void store4_edge(float *matrix, int rows, int cols, int row, int col, float4 value)
{
    if (row >= rows) return;
    float *to = matrix + row * cols + col;
    if (col + 0 < cols) to[0] = value.x;
    if (col + 1 < cols) to[1] = value.y;
    if (col + 2 < cols) to[2] = value.z;
    if (col + 3 < cols) to[3] = value.w;
}
