// What a program does wrong, and what it gets for it: the errors of an H200 with CUDA 13.0, but for what memsim refuses. A part of programs.cu.
#define GIVES(error, call) do { cudaError_t e = call; if (e != error) { printf("%d: %s: %d\n", __LINE__, #call, e); return 3; } } while (0)
#define LAUNCH_GIVES(error, ...) do { __VA_ARGS__; GIVES(error, cudaGetLastError()); } while (0)

static int copies() {
  const size_t LARGE = 64 << 20;
  int *a, *b, *pinned, *managed, host[64] = {};
  std::vector<char> large(LARGE);
  CHECK(cudaMalloc(&a, 256));
  CHECK(cudaMalloc(&b, 256));
  CHECK(cudaMallocHost(&pinned, 256));
  CHECK(cudaMallocManaged(&managed, 256));
  for (auto kind : {cudaMemcpyHostToDevice, cudaMemcpyHostToHost, cudaMemcpyDefault}) CHECK(cudaMemcpy(a, host, 256, kind));
  for (auto kind : {cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice}) GIVES(cudaErrorInvalidValue, cudaMemcpy(a, host, 256, kind));
  for (auto kind : {cudaMemcpyHostToDevice, cudaMemcpyDeviceToDevice}) GIVES(cudaErrorInvalidValue, cudaMemcpy(host, a, 256, kind));
  for (auto kind : {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice}) {
    CHECK(cudaMemcpy(a, b, 256, kind));
    CHECK(cudaMemcpy(pinned, managed, 256, kind));
    GIVES(cudaErrorInvalidValue, cudaMemcpy(host, host + 32, 16, kind));
  }
  GIVES(cudaErrorInvalidMemcpyDirection, cudaMemcpy(a, host, 256, (cudaMemcpyKind)7));
  for (size_t bytes : {size_t(257), LARGE}) {
    GIVES(cudaErrorInvalidValue, cudaMemcpy(a, large.data(), bytes, cudaMemcpyHostToDevice));
    GIVES(cudaErrorInvalidValue, cudaMemcpyAsync(large.data(), a, bytes, cudaMemcpyDeviceToHost));
    GIVES(cudaErrorInvalidValue, cudaMemset(a, 0, bytes));
    GIVES(cudaErrorInvalidValue, cudaMemset2D(a, 16, 0, 16, bytes / 16 + 1));
    GIVES(cudaErrorInvalidValue, cudaMemcpy2D(a, 16, large.data(), 0 + 16, 16, bytes / 16 + 1, cudaMemcpyHostToDevice));
  }
  CHECK(cudaMemcpy(a + 32, host, 128, cudaMemcpyHostToDevice));
  CHECK(cudaMemset2D(a, 64, 0, 16, 4));
  CHECK(cudaMemset(pinned, 0, 256));
  CHECK(cudaMemset(nullptr, 0, 0));
  GIVES(cudaErrorInvalidValue, cudaMemset(nullptr, 0, 4));
  GIVES(cudaErrorInvalidValue, cudaMemset(host, 0, 4));
  GIVES(cudaErrorInvalidValue, cudaMemcpy(nullptr, host, 4, cudaMemcpyHostToDevice));
  GIVES(cudaErrorInvalidValue, cudaMemcpy(a, nullptr, 4, cudaMemcpyHostToDevice));
  GIVES(cudaErrorInvalidValue, cudaMalloc((void **)nullptr, 4));
  GIVES(cudaErrorInvalidValue, cudaFree(pinned));
  GIVES(cudaErrorInvalidValue, cudaFreeHost(a));
  GIVES(cudaErrorInvalidValue, cudaFreeHost(managed));
  GIVES(cudaErrorInvalidValue, cudaFree(a + 1));
  CHECK(cudaFree(managed));
  CHECK(cudaFreeHost(pinned));
  CHECK(cudaFree(a));
  GIVES(cudaErrorInvalidValue, cudaFree(a));
  GIVES(cudaErrorInvalidValue, cudaMemset(a, 0, 4));
  GIVES(cudaErrorInvalidValue, cudaMemcpy(a, host, 4, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(b, host, 256, cudaMemcpyHostToDevice));
  GIVES(cudaErrorInvalidMemcpyDirection, cudaMemcpyToSymbol(both, host, 4, 0, cudaMemcpyDeviceToHost));
  GIVES(cudaErrorInvalidMemcpyDirection, cudaMemcpyFromSymbol(host, counter, 4, 0, cudaMemcpyHostToDevice));
  cudaMemcpy3DParms box = {};
  CHECK(cudaMemcpy3D(&box));
  box.srcPtr = make_cudaPitchedPtr(host, 16, 16, 4);
  box.dstPtr = make_cudaPitchedPtr(b, 16, 16, 4);
  box.extent = make_cudaExtent(16, 4, 1);
  box.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&box));
  box.kind = cudaMemcpyDeviceToHost;
  GIVES(cudaErrorInvalidValue, cudaMemcpy3D(&box));
  box.kind = cudaMemcpyHostToDevice, box.srcPtr.pitch = 8;
  GIVES(cudaErrorInvalidPitchValue, cudaMemcpy3D(&box));
  CHECK(cudaMemcpyToSymbol(both, host, 4));
  return both == host[0] ? 0 : 2;
}

static int handles() {
  cudaEvent_t timed, untimed;
  float ms;
  GIVES(cudaErrorInvalidResourceHandle, cudaStreamDestroy(0));
  GIVES(cudaErrorInvalidResourceHandle, cudaEventDestroy(0));
  CHECK(cudaEventCreate(&timed));
  CHECK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  CHECK(cudaEventRecord(timed));
  CHECK(cudaEventRecord(untimed));
  CHECK(cudaEventElapsedTime(&ms, timed, timed));
  GIVES(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, timed, untimed));
  cudaDeviceProp device;
  cudaFuncAttributes found;
  CHECK(cudaGetDeviceProperties(&device, 0));
  CHECK(cudaFuncGetAttributes(&found, fill));
  if (!device.clusterLaunch || device.maxTexture2DLayered[2] != 2048 || found.clusterDimMustBeSet) return 1;
  return strcmp(cudaGetErrorString(cudaErrorIllegalAddress), "an illegal memory access was encountered") ? 2 : 0;
}

__global__ void __cluster_dims__(2, 1, 1) pairs(float *a) { a[blockIdx.x] = 1; }
template <class K> static cudaError_t in_clusters(K *kernel, int blocks, int threads, unsigned of, float *a) {
  cudaLaunchAttribute how;
  how.id = cudaLaunchAttributeClusterDimension;
  how.val.clusterDim = {of, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.attrs = &how;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, a);
}
__global__ void one(float *a) { *a = 1; }
// No launch that is refused is the end: the next one is made.
static int refused_launches() {
  float *a;
  cudaFuncAttributes found;
  CHECK(cudaMalloc(&a, 1024));
  LAUNCH_GIVES(cudaErrorInvalidClusterSize, pairs<<<3, 32>>>(a));
  LAUNCH_GIVES(cudaSuccess, pairs<<<4, 32>>>(a));
  LAUNCH_GIVES(cudaErrorInvalidValue, reversed<<<1, 257>>>(a, 257));
  CHECK(cudaFuncGetAttributes(&found, pairs));
  if (!found.clusterDimMustBeSet || found.requiredClusterWidth != 2 || found.requiredClusterDepth != 1) return 1;
  for (int threads : {0, 2048}) GIVES(cudaErrorInvalidValue, in_clusters(one, 4, threads, 1, a));
  for (unsigned of : {0, 3, 16}) GIVES(cudaErrorInvalidClusterSize, in_clusters(one, 32, 32, of, a));
  CHECK(cudaFuncSetAttribute(one, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  CHECK(in_clusters(one, 32, 32, 16, a));
  GIVES(cudaErrorInvalidClusterSize, in_clusters(one, 64, 32, 32, a));
  for (unsigned of : {1, 4}) GIVES(cudaErrorInvalidClusterSize, in_clusters(pairs, 4, 32, of, a));
  CHECK(in_clusters(pairs, 4, 32, 2, a));
  void *arguments[] = {&a};
  CHECK(cudaLaunchCooperativeKernel((void *)one, 264, 1024, arguments, 0, 0));
  GIVES(cudaErrorCooperativeLaunchTooLarge, cudaLaunchCooperativeKernel((void *)one, 265, 1024, arguments, 0, 0));
  CHECK(cudaDeviceSynchronize());
  return 0;
}

__global__ void allocate(size_t bytes, void **out) { *out = malloc(bytes); }
static int limits() {
  void **made;
  size_t size;
  CHECK(cudaMallocManaged(&made, 8));
  CHECK(cudaDeviceGetLimit(&size, cudaLimitMallocHeapSize));
  if (size != 8 << 20) return 1;
  CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20));
  CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
  allocate<<<1, 1>>>(32 << 20, made);
  CHECK(cudaDeviceSynchronize());
  if (!*made) return 2;
  allocate<<<1, 1>>>(32 << 20, made);  // what the heap keeps for itself is not there any more
  allocate<<<1, 1>>>(1, made);
  CHECK(cudaDeviceSynchronize());
  if (*made) return 4;
  GIVES(cudaErrorInvalidValue, cudaDeviceSetLimit(cudaLimitMallocHeapSize, 128 << 20));
  GIVES(cudaErrorInvalidValue, cudaDeviceSetLimit((cudaLimit)99, 1));
  GIVES(cudaErrorUnsupportedLimit, cudaDeviceGetLimit(&size, cudaLimitDevRuntimeSyncDepth));
  CHECK(cudaDeviceGetLimit(&size, cudaLimitMallocHeapSize));
  if (size != 64 << 20) return 5;
  CHECK(cudaDeviceGetLimit(&size, cudaLimitStackSize));
  return size == 4096 ? 0 : 6;
}

static int no_code() {
  for (int k = 0; k < 3; k++) LAUNCH_GIVES(cudaErrorNoKernelImageForDevice, fill<<<1, 1>>>(nullptr, 0));
  return 0;
}

// A device that is reset has nothing but its code.
static int resets() {
  int count = 7;
  float *a;
  CHECK(cudaMemcpyToSymbol(counter, &count, 4));
  CHECK(cudaMalloc(&a, 128));
  CHECK(cudaDeviceReset());
  CHECK(cudaMemcpyFromSymbol(&count, counter, 4));
  if (count != 40) return 1;
  GIVES(cudaErrorInvalidValue, cudaFree(a));
  CHECK(cudaMalloc(&a, 128));
  fill<<<1, 32>>>(a, 1);
  CHECK(cudaDeviceSynchronize());
  return 0;
}

__global__ void says_more() {
  char own[8] = "local";
  __shared__ char shared[8];
  own[threadIdx.x] = 'L';
  shared[0] = 's', shared[1] = 0;
  int count = printf("%s %s %5s|\n", own, shared, "a");
  printf("%d %a %#o %hd %hhd %e\n", count, 1.5, 8, 70000, 300, 2.0);
  printf("%p %p %5.1f %zu %+d\n", (void *)0x1234, (void *)nullptr, 2.25, ~(size_t)0, 5);
}
static int says_all() {
  says_more<<<1, 1>>>();
  return cudaDeviceSynchronize();
}

static int allocates_in_a_graph() {
  cudaStream_t stream;
  cudaGraph_t graph;
  void *a, *before;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMallocAsync(&before, 128, stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  GIVES(cudaErrorNotSupported, cudaMallocAsync(&a, 128, stream));
  GIVES(cudaErrorNotSupported, cudaFreeAsync(before, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaFreeAsync(before, stream));
  return 0;
}
