// The programs of the tests: one file, so that it is compiled once; the first argument says which runs.
#include <cooperative_groups.h>
#include <cstdio>
#include <cstring>
#include <vector>
#define CHECK(call) do { cudaError_t e = call; if (e) { printf("%s: %s\n", #call, cudaGetErrorName(e)); return 3; } } while (0)

__global__ void add(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
static int vector_add() {
  const int n = 1000;
  std::vector<float> a(n, 1.5f), b(n, 2.0f), c(n);
  float *da, *db, *dc;
  CHECK(cudaMalloc(&da, n * 4));
  CHECK(cudaMalloc(&db, n * 4));
  CHECK(cudaMalloc(&dc, n * 4));
  CHECK(cudaMemcpy(da, a.data(), n * 4, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpyAsync(db, b.data(), n * 4, cudaMemcpyHostToDevice, 0));
  add<<<4, 256>>>(da, db, dc, n);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(c.data(), dc, n * 4, cudaMemcpyDeviceToHost));
  for (float each : c)
    if (each != 3.5f) return 1;
  CHECK(cudaFree(da));
  return cudaFree(da) == cudaErrorInvalidValue && cudaGetLastError() == cudaErrorInvalidValue && !cudaGetLastError() ? 0 : 2;
}

__constant__ float scale[4] = {9, 9, 9, 9};
__device__ int counter = 40;
__device__ float table[8];
__managed__ int both = 5;
__global__ void scaled(float *out) {
  out[threadIdx.x] = scale[threadIdx.x & 3] * table[threadIdx.x & 7];
  atomicAdd(&counter, 1);
  if (!threadIdx.x) both += 2;
}
static int symbols() {
  float s[4] = {1, 2, 3, 4}, t[8], out[32], *d;
  int count;
  void *address;
  size_t size;
  for (int i = 0; i < 8; i++) t[i] = 10.f * i;
  CHECK(cudaMemcpyToSymbol(scale, s, 8));
  CHECK(cudaMemcpyToSymbol(scale, s + 2, 8, 8));
  CHECK(cudaGetSymbolAddress(&address, table));
  CHECK(cudaGetSymbolSize(&size, table));
  CHECK(cudaMemcpy(address, t, size, cudaMemcpyHostToDevice));
  CHECK(cudaMalloc(&d, sizeof out));
  both++;
  scaled<<<1, 32>>>(d);
  CHECK(cudaMemcpy(out, d, sizeof out, cudaMemcpyDefault));
  CHECK(cudaMemcpyFromSymbol(&count, counter, 4));
  for (int i = 0; i < 32; i++)
    if (out[i] != s[i & 3] * t[i & 7]) return 1;
  return count == 72 && both == 8 && size == 32 && cudaMemcpyToSymbol(scale, s, 16, 8) == cudaErrorInvalidValue ? 0 : 2;
}

struct Node { Node *next; int value; };
struct Rows { float **rows; int n; };
__global__ void follow(Rows rows, const Node *list, int *sum) {
  if (threadIdx.x < rows.n) rows.rows[threadIdx.x][threadIdx.x] = threadIdx.x;
  if (threadIdx.x) return;
  for (; list; list = list->next) *sum += list->value;
}
static int pointers() {
  float *rows[4], **table;
  Node *nodes;
  int *sum;
  for (auto &row : rows) CHECK(cudaMallocManaged(&row, 64));
  CHECK(cudaMallocHost(&table, sizeof rows));
  memcpy(table, rows, sizeof rows);
  CHECK(cudaMallocManaged(&nodes, 3 * sizeof(Node)));
  CHECK(cudaMallocManaged(&sum, 4));
  *sum = 0;
  for (int i = 0; i < 3; i++) nodes[i] = {i < 2 ? nodes + i + 1 : nullptr, i + 1};
  follow<<<1, 32>>>(Rows{table, 4}, nodes, sum);
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < 4; i++)
    if (rows[i][i] != i) return 1;
  cudaPointerAttributes managed, host;
  CHECK(cudaPointerGetAttributes(&managed, sum));
  CHECK(cudaPointerGetAttributes(&host, table));
  return *sum == 6 && managed.type == cudaMemoryTypeManaged && host.type == cudaMemoryTypeHost ? 0 : 2;
}

__global__ void past_the_end(int *a, int offset) { a[threadIdx.x + offset] = threadIdx.x; }
static int out_of_bounds() {
  int *a, *b;
  CHECK(cudaMalloc(&a, 128));
  past_the_end<<<1, 32>>>(a, 1);
  if (cudaDeviceSynchronize() != cudaErrorIllegalAddress) return 1;
  if (cudaGetLastError() != cudaErrorIllegalAddress || cudaMalloc(&b, 4) != cudaErrorIllegalAddress) return 2;
  if (cudaGetLastError() != cudaErrorIllegalAddress || cudaGetLastError()) return 3;  // programs take errors until there is none
  add<<<1, 32>>>(nullptr, nullptr, nullptr, 0);
  if (cudaGetLastError() != cudaErrorIllegalAddress) return 4;
  CHECK(cudaDeviceReset());
  CHECK(cudaMalloc(&a, 128));
  past_the_end<<<1, 32>>>(a, 0);
  CHECK(cudaDeviceSynchronize());
  return 0;
}
__global__ void misaligned_load(const char *a, int *out) { *out = *(const int *)(a + 2); }
static int misaligned() {
  int *a;
  CHECK(cudaMalloc(&a, 128));
  misaligned_load<<<1, 1>>>((char *)a, a);
  return cudaDeviceSynchronize() == cudaErrorMisalignedAddress ? 0 : 1;
}
__global__ void endless_loop(volatile int *a) { while (!*a) {} }
static int endless() {
  int *a;
  CHECK(cudaMallocManaged(&a, 4));
  *a = 0;
  endless_loop<<<1, 32>>>(a);
  return cudaGetLastError() == cudaErrorLaunchTimeout ? 0 : 1;
}

__global__ void grid_sum(const int *in, int *blocks, int *out) {
  atomicAdd(&blocks[blockIdx.x], in[blockIdx.x * blockDim.x + threadIdx.x]);
  cooperative_groups::this_grid().sync();
  if (!blockIdx.x && !threadIdx.x)
    for (unsigned i = 0; i < gridDim.x; i++) *out += blocks[i];
}
static int cooperative() {
  int *in, *blocks, *out;
  CHECK(cudaMallocManaged(&in, 512));
  CHECK(cudaMallocManaged(&blocks, 16));
  CHECK(cudaMallocManaged(&out, 4));
  for (int i = 0; i < 128; i++) in[i] = i;
  void *arguments[] = {&in, &blocks, &out};
  for (int k = 0; k < 2; k++) {
    CHECK(cudaMemset(blocks, 0, 16));
    *out = 0;
    CHECK(cudaLaunchCooperativeKernel((void *)grid_sum, 4, 32, arguments, 0, 0));
    if (*out != 127 * 64) return 1;
  }
  return 0;
}

extern __shared__ float tile[];
__global__ void __launch_bounds__(256) reversed(float *a, int n) {
  tile[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  a[threadIdx.x] = tile[n - 1 - threadIdx.x];
}
static int attributes() {
  cudaFuncAttributes found;
  cudaDeviceProp device;
  float *a;
  int blocks, grid, block;
  CHECK(cudaFuncGetAttributes(&found, reversed));
  CHECK(cudaGetDeviceProperties(&device, 0));
  printf("%s\n", device.name);
  if (found.maxThreadsPerBlock != 256 || found.maxDynamicSharedSizeBytes != 48 << 10 || device.major != 9) return 1;
  CHECK(cudaMallocManaged(&a, 1024));
  for (int i = 0; i < 256; i++) a[i] = i;
  reversed<<<1, 256, 1024>>>(a, 256);
  if (cudaDeviceSynchronize() || a[0] != 255) return 2;
  reversed<<<1, 256, 100 << 10>>>(a, 256);
  if (cudaGetLastError() != cudaErrorInvalidValue) return 4;
  CHECK(cudaFuncSetAttribute(reversed, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
  reversed<<<1, 256, 100 << 10>>>(a, 256);
  if (cudaDeviceSynchronize() || a[0] != 0) return 5;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reversed, 256, 100 << 10));
  CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, reversed, 0, 0));
  if (blocks != 2 || block != 256 || grid != 8 * 132) return 6;
  reversed<<<1, 2048>>>(a, 256);
  if (cudaGetLastError() != cudaErrorInvalidConfiguration) return 7;
  reversed<<<0, 32>>>(a, 256);
  return cudaGetLastError() == cudaErrorInvalidConfiguration ? 0 : 8;
}

static int streams() {
  cudaStream_t stream;
  cudaEvent_t a, b;
  float *d, ms, h[6] = {1, 2, 3, 4, 5, 6}, out[4];
  int called = 0;
  size_t pitch;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventCreate(&a));
  CHECK(cudaEventCreate(&b));
  if (cudaEventElapsedTime(&ms, a, b) != cudaErrorInvalidResourceHandle) return 1;
  CHECK(cudaEventRecord(a, stream));
  CHECK(cudaMallocPitch(&d, &pitch, 12, 2));
  CHECK(cudaMemcpy2DAsync(d, pitch, h, 12, 12, 2, cudaMemcpyHostToDevice, stream));
  CHECK(cudaMemcpy2D(out, 8, (char *)d + 4, pitch, 8, 2, cudaMemcpyDeviceToHost));
  CHECK(cudaLaunchHostFunc(stream, [](void *data) { ++*(int *)data; }, &called));
  CHECK(cudaEventRecord(b, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaEventElapsedTime(&ms, a, b));
  cudaGetLastError();
  return out[0] == 2 && out[3] == 6 && called == 1 && ms >= 0 ? 0 : 2;
}

__global__ void says(const char *format, float x) {
  if (threadIdx.x > 1) return;
  printf("lane %d of %s: %5.2f %llx %c %-4u| %%\n", threadIdx.x, "warp", x * threadIdx.x, 0x123456789abull, 'a' + threadIdx.x, 7u);
}
static int prints() {
  says<<<1, 32>>>(nullptr, 1.5f);
  return cudaDeviceSynchronize();
}
struct Item { Item *next; int value; };
__device__ Item *head;
__global__ void push() {
  Item *made = (Item *)malloc(sizeof(Item));
  made->value = threadIdx.x;
  made->next = (Item *)atomicExch((unsigned long long *)&head, (unsigned long long)made);
}
__global__ void pop_all(int *sum, int past) {
  for (Item *each = head, *next; each; each = next) {
    *sum += each[past].value;
    next = each->next;
    free(each);
  }
}
static int heap() {
  int *sum;
  CHECK(cudaMallocManaged(&sum, 4));
  for (int k = 1; k < 3; k++) {
    push<<<1, 32>>>();
    CHECK(cudaDeviceSynchronize());
    pop_all<<<1, 1>>>(sum, 0);
    CHECK(cudaDeviceSynchronize());
    if (*sum != k * 31 * 16) return 1;
    int *null = nullptr;
    CHECK(cudaMemcpyToSymbol(head, &null, 8));
  }
  push<<<1, 32>>>();
  pop_all<<<1, 1>>>(sum, 1);
  return cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 0 : 2;
}
__global__ void fill(float *a, float value) { a[threadIdx.x] = value; }
__global__ void grow(float *a, long long *when) {
  a[threadIdx.x] += 1;
  if (when) *when = clock64();
}
// Of an array that is too large to be copied: its first, its last and elements between.
__global__ void pick(float *out, const float *in, long count) { out[threadIdx.x] = in[threadIdx.x * (count - 1) / 31]; }
static int repeated() {
  const size_t LARGE = 4 << 20;
  float *a;
  CHECK(cudaMallocManaged(&a, 128));
  for (int k = 0; k < 9; k++) {
    fill<<<1, 32>>>(a, 3);
    grow<<<1, 32>>>(a, nullptr);
    CHECK(cudaDeviceSynchronize());
    if (a[31] != 4) return 1;
  }
  for (int k = 0; k < 4; k++) fill<<<1, 32>>>(a, 3), a[5] = k;
  fill<<<1, 32>>>(a, 3);
  float *other;
  CHECK(cudaMallocManaged(&other, 128));
  for (int k = 0; k < 3; k++) fill<<<1, 32>>>(a, 3), other[5] = k;
  float *device, back[32];
  CHECK(cudaMalloc(&device, 128));
  for (int k = 0; k < 6; k++) {
    if (k == 4) CHECK(cudaMemset(device, 0, 128));
    fill<<<1, 32>>>(device, 5);
    CHECK(cudaMemcpy(back, device, 128, cudaMemcpyDeviceToHost));
    if (back[31] != 5) return 3;
  }
  float *large, *rows;  // many writes, and zeros that are whole pages
  CHECK(cudaMalloc(&large, LARGE));
  CHECK(cudaMalloc(&rows, 64 * 128));
  CHECK(cudaMalloc(&other, 128));
  for (int k = 0; k < 6; k++) {
    CHECK(cudaMemset(rows, k, 128));
    for (int row = 63; row > 0; row -= 2) CHECK(cudaMemset(rows + 32 * row, k, 128));
    pick<<<1, 32>>>(device, large, LARGE / 4);
    CHECK(cudaMemcpy(back, device, 128, cudaMemcpyDeviceToHost));
    if (back[1] != (k < 4 ? 0 : 1)) return 4;
    pick<<<1, 32>>>(other, rows, 64 * 32);
    CHECK(cudaMemcpy(back, other, 128, cudaMemcpyDeviceToHost));
    if (*(char *)back != k || *((char *)(back + 31) + 3) != k) return 5;
    if (k == 3) {
      std::vector<float> ones(LARGE / 4, 1);
      CHECK(cudaMemcpy(large, ones.data(), LARGE, cudaMemcpyHostToDevice));
      CHECK(cudaMemset(large + 1, 0, LARGE - 8));
      pick<<<1, 32>>>(device, large, LARGE / 4);
      CHECK(cudaMemcpy(back, device, 128, cudaMemcpyDeviceToHost));
      if (back[0] != 1 || back[1] != 0 || back[30] != 0 || back[31] != 1) return 6;
      CHECK(cudaMemcpy(large, ones.data(), LARGE, cudaMemcpyHostToDevice));
    }
  }
  return a[5] == 3 && a[31] == 3 ? 0 : 2;
}

__global__ void waits(long long clocks, int *out) {
  unsigned began = clock();
  long long start = clock64();
  while (clock64() - start < clocks) {}
  out[threadIdx.x] = clock() - began >= clocks;
}
static int clocks() {
  int *out, host[32] = {};
  CHECK(cudaMalloc(&out, 128));
  CHECK(cudaHostRegister(host, sizeof host, 0));
  waits<<<1, 32>>>(200000, out);
  CHECK(cudaMemcpyAsync(host, out, 128, cudaMemcpyDeviceToHost));
  CHECK(cudaHostUnregister(host));
  for (int each : host)
    if (!each) return 1;
  return 0;
}

__global__ void exchanges(int *out) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = s[threadIdx.x ^ 32];
}
static int racy() {
  int *out;
  CHECK(cudaMalloc(&out, 256));
  exchanges<<<1, 64>>>(out);
  exchanges<<<1, 64>>>(out);
  return cudaDeviceSynchronize();
}

// Threads behind the end look values up that they have not loaded, and store none of what they find.
__global__ void ranks(const float *in, unsigned char *out, int n) {
  __shared__ float sorted[64];
  sorted[threadIdx.x] = threadIdx.x;
  float values[4];
  for (int i = 0; i < 4; i++)
    if (4 * threadIdx.x + i < n) values[i] = in[4 * threadIdx.x + i];
  __syncthreads();
  unsigned char found[4];
  for (int i = 0; i < 4; i++) {
    int at = 31;
    for (int step = 16; step; step /= 2) at += values[i] > sorted[at] ? step : -step;
    found[i] = values[i] > (sorted[at] + sorted[at + 1]) / 2 ? at + 1 : at;
  }
  for (int i = 0; i < 4; i++)
    if (4 * threadIdx.x + i < n) out[4 * threadIdx.x + i] = found[i];
}
static int unwritten() {
  float *in, host[32];
  unsigned char *out, found[32];
  for (int i = 0; i < 32; i++) host[i] = 16 + i;
  CHECK(cudaMalloc(&in, sizeof host));
  CHECK(cudaMalloc(&out, sizeof found));
  CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  ranks<<<1, 64>>>(in, out, 32);
  CHECK(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 32; i++)
    if (found[i] != host[i]) return 1;
  return 0;
}

static int refused() {
  cudaIpcMemHandle_t handle;
  int *a;
  CHECK(cudaMalloc(&a, 4));
  return cudaIpcGetMemHandle(&handle, a) == cudaErrorNotSupported ? 0 : 1;
}

#include "graph_programs.h"
#include "texture_programs.h"
#include "mistaken_programs.h"

int main(int count, char **arguments) {
  struct { const char *name; int (*run)(); } programs[] = {
    {"vector_add", vector_add}, {"symbols", symbols}, {"pointers", pointers}, {"out_of_bounds", out_of_bounds},
    {"misaligned", misaligned}, {"endless", endless}, {"cooperative", cooperative}, {"attributes", attributes},
    {"streams", streams}, {"refused", refused}, {"prints", prints}, {"heap", heap}, {"repeated", repeated}, {"clocks", clocks}, {"racy", racy}, {"unwritten", unwritten},
    {"textures", textures}, {"captured", captured}, {"graphs", graphs}, {"copies", copies}, {"handles", handles},
    {"refused_launches", refused_launches}, {"no_code", no_code}, {"limits", limits}, {"resets", resets}, {"says_all", says_all},
    {"allocates_in_a_graph", allocates_in_a_graph}};
  for (auto &each : programs)
    if (count > 1 && !strcmp(each.name, arguments[1])) {
      int result = each.run();
      printf("%s: %s\n", each.name, result ? "FAILED" : "PASSED");
      return result;
    }
  return 100;
}
