// Own kernels, launched by a program as programs do it: structs, pointers in memory, symbols, dynamic shared memory, templates.
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
#include <vector>
namespace cg = cooperative_groups;
#define CHECK(x) do { cudaError_t e = (x); if (e) { printf("%s: %s\n", #x, cudaGetErrorString(e)); exit(3); } } while (0)
template <class T> T *host(size_t n) { T *p; CHECK(cudaMallocHost(&p, n * sizeof(T))); return p; }
template <class T> T *device(const std::vector<T> &v) { T *p; CHECK(cudaMalloc(&p, v.size() * sizeof(T))); CHECK(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice)); return p; }
template <class T> T *zeros(size_t n) { T *p; CHECK(cudaMalloc(&p, n * sizeof(T))); CHECK(cudaMemset(p, 0, n * sizeof(T))); return p; }
static int failed;
static void expect(bool ok, const char *what) { if (!ok) { failed++; printf("%s FAILED\n", what); } }

__global__ void saxpy(int n, float a, const float *x, float *y) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = a * x[i] + y[i]; }
__global__ void strided(int n, int s, const float *x, float *y) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i * s < n) y[i] = x[i * s]; }
__global__ void offset_copy(int n, int o, const float *x, float *y) { int i = blockIdx.x * blockDim.x + threadIdx.x + o; if (i < n) y[i] = x[i]; }
__global__ void vectorized(const float4 *x, float4 *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { float4 v = x[i]; v.x += v.w; y[i] = v; } }
template <int PAD> __global__ void transpose(const float *a, float *b, int n) {
  __shared__ float t[32][32 + PAD];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) t[threadIdx.y + j][threadIdx.x] = a[(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) b[(y + j) * n + x] = t[threadIdx.x][threadIdx.y + j];
}
__global__ void transpose_naive(const float *a, float *b, int n) { int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y; b[x * n + y] = a[y * n + x]; }
template <int T> __global__ void matmul(const float *a, const float *b, float *c, int n) {
  __shared__ float sa[T][T], sb[T][T];
  int r = blockIdx.y * T + threadIdx.y, k = blockIdx.x * T + threadIdx.x; float s = 0;
  for (int m = 0; m < n; m += T) { sa[threadIdx.y][threadIdx.x] = a[r * n + m + threadIdx.x]; sb[threadIdx.y][threadIdx.x] = b[(m + threadIdx.y) * n + k]; __syncthreads();
    for (int j = 0; j < T; j++) s += sa[threadIdx.y][j] * sb[j][threadIdx.x]; __syncthreads(); }
  c[r * n + k] = s;
}
extern __shared__ float dyn[];
__global__ void reduce_interleaved(const float *x, float *out) { int t = threadIdx.x; dyn[t] = x[blockIdx.x * blockDim.x + t]; __syncthreads();
  for (unsigned s = 1; s < blockDim.x; s *= 2) { unsigned i = 2 * s * t; if (i < blockDim.x) dyn[i] += dyn[i + s]; __syncthreads(); } if (!t) out[blockIdx.x] = dyn[0]; }
__global__ void reduce_sequential(const float *x, float *out) { int t = threadIdx.x; dyn[t] = x[blockIdx.x * blockDim.x + t]; __syncthreads();
  for (unsigned s = blockDim.x / 2; s; s >>= 1) { if (t < s) dyn[t] += dyn[t + s]; __syncthreads(); } if (!t) out[blockIdx.x] = dyn[0]; }
__global__ void reduce_shuffle(const float *x, float *out, int n) { float s = 0; for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) s += x[i];
  for (int o = 16; o; o /= 2) s += __shfl_down_sync(~0u, s, o); if (!(threadIdx.x & 31)) atomicAdd(out, s); }
__global__ void histogram(const unsigned char *x, int n, int *out) { __shared__ int h[256]; h[threadIdx.x] = 0; __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&h[x[i]], 1); __syncthreads(); atomicAdd(&out[threadIdx.x], h[threadIdx.x]); }
__global__ void histogram_global(const unsigned char *x, int n, int *out) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) atomicAdd(&out[x[i]], 1); }
__global__ void gather(const int *index, const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[index[i]]; }
__global__ void scatter(const int *index, const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[index[i]] = x[i]; }
struct Csr { const int *start, *column; const float *value; int rows; };
__global__ void spmv_scalar(Csr a, const float *x, float *y) { int r = blockIdx.x * blockDim.x + threadIdx.x; if (r >= a.rows) return; float s = 0; for (int k = a.start[r]; k < a.start[r + 1]; k++) s += a.value[k] * x[a.column[k]]; y[r] = s; }
__global__ void spmv_vector(Csr a, const float *x, float *y) { int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32, l = threadIdx.x & 31; if (r >= a.rows) return; float s = 0;
  for (int k = a.start[r] + l; k < a.start[r + 1]; k += 32) s += a.value[k] * x[a.column[k]]; for (int o = 16; o; o /= 2) s += __shfl_down_sync(~0u, s, o); if (!l) y[r] = s; }
__constant__ float weights[9];
__constant__ int table[32];
__global__ void stencil(const float *a, float *b, int w, int h) { int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y; if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
  float s = 0; for (int j = 0; j < 9; j++) s += weights[j] * a[(y + j / 3 - 1) * w + x + j % 3 - 1]; b[y * w + x] = s; }
__global__ void looked_up(int *out, int step) { out[threadIdx.x] = table[threadIdx.x * step % 32]; }
__global__ void scan_block(const int *x, int *y) { __shared__ int s[2][256]; int t = threadIdx.x, p = 0; s[0][t] = x[blockIdx.x * 256 + t]; __syncthreads();
  for (int o = 1; o < 256; o *= 2) { p ^= 1; s[p][t] = t >= o ? s[p ^ 1][t] + s[p ^ 1][t - o] : s[p ^ 1][t]; __syncthreads(); } y[blockIdx.x * 256 + t] = s[p][t]; }
__global__ void bitonic(int *x) { __shared__ int s[512]; int t = threadIdx.x; s[t] = x[t]; s[t + 256] = x[t + 256];
  for (int k = 2; k <= 512; k *= 2) for (int j = k / 2; j; j /= 2) { __syncthreads(); int i = 2 * t - (t & (j - 1)), o = i + j; bool up = !(i & k); if ((s[i] > s[o]) == up) { int v = s[i]; s[i] = s[o]; s[o] = v; } }
  __syncthreads(); x[t] = s[t]; x[t + 256] = s[t + 256]; }
struct Node { Node *next; int value; int pad; };
__global__ void lists(Node *const *heads, int *sums) { int s = 0; for (const Node *n = heads[threadIdx.x]; n; n = n->next) s += n->value; sums[threadIdx.x] = s; }
struct Particle { float x, y, z, m; float vx, vy, vz, pad; };
__global__ void move(Particle *p, int n, float dt) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { p[i].x += dt * p[i].vx; p[i].y += dt * p[i].vy; p[i].z += dt * p[i].vz; } }
__global__ void nbody(const float4 *p, float4 *f, int n) { __shared__ float4 s[64]; int i = blockIdx.x * 64 + threadIdx.x; float4 a = p[i]; float3 r = {0, 0, 0};
  for (int m = 0; m < n; m += 64) { s[threadIdx.x] = p[m + threadIdx.x]; __syncthreads(); for (int j = 0; j < 64; j++) { float dx = s[j].x - a.x, dy = s[j].y - a.y, dz = s[j].z - a.z, d = dx * dx + dy * dy + dz * dz + 1; r.x += dx / d; r.y += dy / d; r.z += dz / d; } __syncthreads(); } f[i] = {r.x, r.y, r.z, 0}; }
__device__ int counter;
__device__ float results[64];
__global__ void count_odd(const int *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n && (x[i] & 1)) atomicAdd(&counter, 1); }
__global__ void to_symbol() { results[threadIdx.x] = threadIdx.x * 2.f; }
__global__ void cooperative(const int *x, int *partial, int *out) { cg::grid_group g = cg::this_grid(); int i = blockIdx.x * blockDim.x + threadIdx.x; atomicAdd(&partial[blockIdx.x], x[i]); g.sync(); if (!i) { int s = 0; for (unsigned b = 0; b < gridDim.x; b++) s += partial[b]; *out = s; } }
__global__ void doubles(const double *x, double *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[n - 1 - i] = 2 * x[i]; }
__global__ void bytes(const unsigned char *x, unsigned char *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 255 - x[i]; }
__global__ void spills(const float *x, float *y, int k) { float a[32]; for (int j = 0; j < 32; j++) a[j] = x[threadIdx.x * 32 + j]; y[threadIdx.x] = a[(k + threadIdx.x) & 31]; }
__global__ void divergent(const int *x, int *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; int v = x[i], c = 0; while (v > 1) { v = v & 1 ? 3 * v + 1 : v / 2; c++; } y[i] = c; }
__global__ void columns(const float *a, float *s, int n) { int c = blockIdx.x * blockDim.x + threadIdx.x; float t = 0; for (int r = 0; r < n; r++) t += a[r * n + c]; s[c] = t; }
__global__ void rows(const float *a, float *s, int n) { int r = blockIdx.x * blockDim.x + threadIdx.x; float t = 0; for (int c = 0; c < n; c++) t += a[r * n + c]; s[r] = t; }

int main() {
  const int n = 4096, w = 128;
  std::vector<float> x(n * 4); std::vector<int> xi(n), index(n); std::vector<unsigned char> xb(n); std::vector<double> xd(n);
  unsigned seed = 1; for (int i = 0; i < n * 4; i++) x[i] = float(i % 61) - 30; for (int i = 0; i < n; i++) { seed = seed * 1664525 + 1013904223; xi[i] = seed >> 20; index[i] = (i * 2531) % n; xb[i] = seed >> 24; xd[i] = i; }
  float *dx = device(x), *dy = zeros<float>(n * 4), *dz = zeros<float>(n * 4); int *di = device(xi), *dindex = device(index), *dout = zeros<int>(n); unsigned char *db = device(xb), *dc = zeros<unsigned char>(n); double *dd = device(xd), *de = zeros<double>(n);
  saxpy<<<n / 256, 256>>>(n - 5, 2.f, dx, dy);
  for (int s : {2, 7}) strided<<<4, 128>>>(n, s, dx, dz);
  offset_copy<<<n / 128, 128>>>(n, 3, dx, dz);
  vectorized<<<4, 256>>>((float4 *)dx, (float4 *)dz, n);
  transpose<0><<<dim3(w / 32, w / 32), dim3(32, 8)>>>(dx, dz, w);
  transpose<1><<<dim3(w / 32, w / 32), dim3(32, 8)>>>(dx, dz, w);
  transpose_naive<<<dim3(w / 32, w / 8), dim3(32, 8)>>>(dx, dz, w);
  float t01; CHECK(cudaMemcpy(&t01, dz + w, 4, cudaMemcpyDeviceToHost)); expect(t01 == x[1], "transpose");
  matmul<16><<<dim3(4, 4), dim3(16, 16)>>>(dx, dx, dz, 64);
  matmul<8><<<dim3(8, 8), dim3(8, 8)>>>(dx, dx, dz, 64);
  float *sums = zeros<float>(64);
  reduce_interleaved<<<8, 256, 1024>>>(dx, sums); reduce_sequential<<<8, 128, 512>>>(dx, sums); reduce_shuffle<<<4, 128>>>(dx, sums, n);
  histogram<<<4, 256>>>(db, n, dout); histogram_global<<<16, 256>>>(db, n, dout);
  gather<<<16, 256>>>(dindex, dx, dz, n); scatter<<<16, 256>>>(dindex, dx, dz, n);
  std::vector<int> start(257), column; std::vector<float> value; for (int r = 0; r < 256; r++) { start[r] = column.size(); for (int k = 0; k < 3 + r % 37; k++) { column.push_back((r * 31 + k * k * 7) % 256); value.push_back(k); } } start[256] = column.size();
  Csr a{device(start), device(column), device(value), 256};
  spmv_scalar<<<2, 128>>>(a, dx, dz); spmv_vector<<<64, 128>>>(a, dx, dz);
  float weight[9] = {1, 2, 1, 2, 4, 2, 1, 2, 1}; int tab[32]; for (int i = 0; i < 32; i++) tab[i] = i * i; CHECK(cudaMemcpyToSymbol(weights, weight, sizeof weight)); CHECK(cudaMemcpyToSymbol(table, tab, sizeof tab));
  stencil<<<dim3(4, 16), dim3(32, 8)>>>(dx, dz, w, w);
  for (int s : {0, 1, 5}) looked_up<<<1, 64>>>(dout, s);
  scan_block<<<4, 256>>>(di, dout); bitonic<<<1, 256>>>(di);
  std::vector<int> sorted(512); CHECK(cudaMemcpy(sorted.data(), di, 2048, cudaMemcpyDeviceToHost)); bool up = true; for (int i = 1; i < 512; i++) up &= sorted[i - 1] <= sorted[i]; expect(up, "bitonic");
  Node *nodes; Node **heads; CHECK(cudaMallocManaged(&nodes, 500 * sizeof(Node))); CHECK(cudaMallocManaged(&heads, 32 * sizeof(Node *)));
  for (int i = 0; i < 32; i++) heads[i] = nullptr; for (int i = 0; i < 500; i++) { int h = i * 7 % 32; nodes[i] = {heads[h], i, 0}; heads[h] = nodes + i; }
  lists<<<1, 32>>>(heads, dout);
  std::vector<Particle> ps(512, Particle{1, 2, 3, 4, 5, 6, 7, 0}); Particle *dp = device(ps); move<<<4, 128>>>(dp, 500, .5f);
  nbody<<<4, 64>>>((float4 *)dx, (float4 *)dz, 256);
  count_odd<<<8, 256>>>(di, 2000); to_symbol<<<1, 64>>>();
  int *partial = zeros<int>(8), *total = zeros<int>(1); void *args[] = {&di, &partial, &total}; CHECK(cudaLaunchCooperativeKernel((void *)cooperative, 8, 64, args, 0, 0));
  doubles<<<8, 128>>>(dd, de, 1000); bytes<<<8, 128>>>(db, dc, 1000);
  spills<<<1, 64>>>(dx, dz, 3); divergent<<<2, 128>>>(di + 1000, dout, 200);
  columns<<<1, 128>>>(dx, dz, w); rows<<<1, 128>>>(dx, dz, w);
  CHECK(cudaDeviceSynchronize()); int c; CHECK(cudaMemcpyFromSymbol(&c, counter, 4)); expect(c > 0, "counter");
  float r; CHECK(cudaMemcpyFromSymbol(&r, results, 4, 63 * 4)); expect(r == 126, "results");
  puts(failed ? "FAILED" : "PASSED"); return failed;
}
