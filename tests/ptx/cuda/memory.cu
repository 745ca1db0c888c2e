// Loads and stores of every space, width and cache hint; variables of every kind with initial values.
struct __attribute__((packed)) Packed { char tag; int *pointer; };
struct Big { double weights[4]; int numbers[3]; char name; };
struct Node { int value; Node *next; };

__device__ int counters[4] = {1, 2, 3};
__device__ int *cursor = counters + 2;
__device__ Packed packed[2] = {{1, counters + 1}, {2, nullptr}};
__device__ Node last = {8, nullptr};
__device__ Node list[2] = {{7, &last}, {9, nullptr}};
__device__ float uninitialised[8][3];
__device__ __managed__ int managed = 5;
__device__ float4 quad = {1.5f, -2.0f, 0.25f, 1e-3f};
__device__ double precise[2] = {3.25, -1e300};
__constant__ float table[3][2] = {{1, 2}, {3}, {5, 6}};
__constant__ char text[] = "a \"quoted\" text; with { braces } // and slashes";
__constant__ unsigned short shorts[] = {1, 65535, 3};
extern __shared__ float4 dynamic[];
__shared__ int module_shared[16];

__global__ void loads(float *out, const float *__restrict__ in, const float4 *vectors, Big big, int n) {
  __shared__ float tile[32][33];
  __shared__ volatile int flag;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  tile[threadIdx.x][threadIdx.y] = in[i];
  flag = i;
  __syncthreads();
  float4 v = vectors[i];
  float2 w = reinterpret_cast<const float2 *>(out)[i + 50];
  dynamic[i] = v;
  float2 half = reinterpret_cast<float2 *>(tile[4])[i & 15];
  reinterpret_cast<float2 *>(out)[99] = make_float2(half.y, half.x);
  out[0] = tile[threadIdx.y][threadIdx.x] + v.x + w.x * w.y + table[i % 3][1] + text[i & 7] + shorts[i & 1] + flag;
  out[1] = big.weights[i & 3] + big.numbers[1] + big.name + quad.y + precise[i & 1] + uninitialised[i & 7][2];
  out[2] = *cursor + *packed[i & 1].pointer + list[i & 1].next->value + managed + module_shared[i & 15];
  reinterpret_cast<float4 *>(out)[8] = dynamic[i + 1];
  reinterpret_cast<short4 *>(out)[9] = make_short4(1, 2, 3, 4);
  reinterpret_cast<char *>(out)[77] = 'x';
}

__global__ void hints(float *out, const float *in, int *flag) {
  int i = threadIdx.x;
  __stcs(out + i, __ldcs(in + i));
  __stcg(out + 32 + i, __ldcg(in + 32 + i));
  __stwt(out + 64 + i, __ldca(in + 64 + i) + __ldlu(in + 65 + i) + __ldcv(in + 66 + i));
  out[96 + i] = __ldg(in + 96 + i);
  int seen;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(flag));
  asm volatile("st.release.gpu.global.s32 [%0+4], %1;" ::"l"(flag), "r"(seen));
  asm volatile("ld.relaxed.sys.global.s32 %0, [%1+-4];" : "=r"(seen) : "l"(flag));
  asm volatile("ld.global.L1::no_allocate.L2::128B.v2.f32 {%0, %1}, [%2];" : "=f"(out[1]), "=f"(out[2]) : "l"(in));
  asm volatile("prefetch.global.L2 [%0];\n\tprefetchu.L1 [%0];" ::"l"(in));
  asm volatile("discard.global.L2 [%0], 128;" ::"l"(out));
  flag[1] = seen;
}

__global__ void local_array(int *out, int n) {
  int stack[40];
  for (int i = 0; i < 40; i++) stack[i] = i * n;
  for (int i = 0; i < n; i++) stack[(i * 7) % 40] += stack[i % 40];
  out[threadIdx.x] = stack[n % 40];
}

__global__ void generic(int **pointers, int which) {
  __shared__ int here;
  int mine = which;
  int *p = which == 0 ? &here : which == 1 ? &mine : pointers[0];
  *p = 3;
  if (__isShared(p)) here = 4;
  pointers[1] = reinterpret_cast<int *>(__cvta_generic_to_shared(&here));
  pointers[2] = p;
}
