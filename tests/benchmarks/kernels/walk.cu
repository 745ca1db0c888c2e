// Each thread follows a permutation: each step of a warp is a request of 32 addresses that memory gives.
extern "C" __global__ void walk(const int* next, int* end, int mask, int steps) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    int at = thread & mask;
    for (int step = 0; step < steps; ++step) at = next[at];
    end[thread] = at;
}
