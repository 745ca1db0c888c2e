__global__ void k(int *o) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = t;
    o[t] = t >= 32 ? s[t - 32] : s[t];
}
