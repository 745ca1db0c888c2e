// A libcudart.so.12 or .13 on top of memsim's libcuda.so.1: the functions of cuda_runtime_api.h that need no GPU to
// have a meaning, and the registration functions that nvcc's crt/host_runtime.h and crt/device_functions.h declare.
// What is not here is a refusal that says its name (memsim/driver/native_build.py).
#define _GNU_SOURCE
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "error_texts.h"

#if CUDART_VERSION < 12010
typedef struct CUkern_st *cudaKernel_t;
#endif
#define API __attribute__((visibility("default"))) cudaError_t
#define EXPORTED __attribute__((visibility("default")))
#define DEVICE(pointer) ((CUdeviceptr)(uintptr_t)(pointer))
#define ANSWER(result) return remember((int)(result))  // errors of the driver have the same numbers

int memsim_refuse(const char *name);

static __thread int last_error;
static cudaError_t remember(int error) {
  if (error) last_error = error;
  return (cudaError_t)error;
}
static int start(void) {  // the runtime initializes itself on first use
  static __thread int is_started;
  CUcontext context;
  if (is_started) return 0;
  int failed = (int)cuInit(0);
  if (failed) return failed;
  if ((failed = (int)cuDevicePrimaryCtxRetain(&context, 0)) || (failed = (int)cuCtxSetCurrent(context))) return failed;
  is_started = 1;
  return 0;
}
#define START do { int failed = start(); if (failed) ANSWER(failed); } while (0)

// --- what nvcc's host code registers

struct module { const void *image; CUmodule loaded; int has_no_code; };
struct symbol {
  const void *host;
  const char *name;
  struct module *module;
  CUfunction function;
  size_t size;
  void **managed;
  struct symbol *next;
};
enum { BUCKETS = 4096 };
static struct symbol *symbols[BUCKETS], *managed_symbols;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct symbol **bucket(const void *host) { return &symbols[((uintptr_t)host >> 4) % BUCKETS]; }

EXPORTED void **__cudaRegisterFatBinary(void *image) {
  struct module *made = calloc(1, sizeof *made);
  made->image = image;
  return (void **)made;
}
EXPORTED void __cudaRegisterFatBinaryEnd(void **module) {}
EXPORTED void __cudaUnregisterFatBinary(void **module) {}
static struct symbol *add(void **module, const void *host, const char *name) {
  struct symbol *made = calloc(1, sizeof *made), **place = bucket(host);
  made->host = host;
  made->name = name;
  made->module = (struct module *)module;
  pthread_mutex_lock(&lock);
  made->next = *place;
  *place = made;
  pthread_mutex_unlock(&lock);
  return made;
}
EXPORTED void __cudaRegisterFunction(void **module, const char *host, char *device, const char *name, int limit, uint3 *tid,
                                     uint3 *bid, dim3 *block, dim3 *grid, int *warp) {
  add(module, host, name);
}
EXPORTED void __cudaRegisterVar(void **module, char *host, char *device, const char *name, int ext, size_t size, int constant,
                                int global) {
  add(module, host, name)->size = size;
}
EXPORTED void __cudaRegisterManagedVar(void **module, void **host, char *device, const char *name, int ext, size_t size,
                                       int constant, int global) {
  struct symbol *made = calloc(1, sizeof *made);
  *made = (struct symbol){host, name, (struct module *)module, NULL, size, host, managed_symbols};
  managed_symbols = made;
  add(module, host, name)->size = size;
}
EXPORTED void __cudaRegisterTexture(void **module, const void *host, const void **device, const char *name,
                                    int dim, int norm, int ext) {}
EXPORTED void __cudaRegisterSurface(void **module, const void *host, const void **device, const char *name,
                                    int dim, int ext) {}

static int load(struct module *module) {
  int failed = start();
  if (failed || module->loaded) return failed;
  if (module->has_no_code) return module->has_no_code;
  if ((failed = (int)cuModuleLoadData(&module->loaded, module->image))) {
    if (failed == CUDA_ERROR_NO_BINARY_FOR_GPU || failed == CUDA_ERROR_INVALID_IMAGE) module->has_no_code = failed;  // told once
    return failed;
  }
  for (struct symbol *each = managed_symbols; each; each = each->next) {
    CUdeviceptr address;
    if (each->module == module && !cuModuleGetGlobal(&address, NULL, module->loaded, each->name))
      *each->managed = (void *)(uintptr_t)address;
  }
  return 0;
}
EXPORTED char __cudaInitModule(void **module) { return !load((struct module *)module); }
static int find(const void *host, struct symbol **found) {
  for (struct symbol *each = *bucket(host); each; each = each->next)
    if (each->host == host) {
      *found = each;
      return load(each->module);
    }
  return cudaErrorInvalidDeviceFunction;
}
// A handle that cudaGetKernel and the like gave is a function of the driver's, and stands for itself.
static CUfunction *given;
static size_t givens;
static int function_of(const void *host, CUfunction *function) {
  struct symbol *symbol;
  int failed = find(host, &symbol);
  if (failed == cudaErrorInvalidDeviceFunction) {
    for (size_t i = 0; i < givens; i++)
      if (given[i] == (CUfunction)host) { *function = given[i]; return 0; }
    return failed;
  }
  if (failed) return failed;
  if (!symbol->function) {
    failed = (int)cuModuleGetFunction(&symbol->function, symbol->module->loaded, symbol->name);
    if (failed) return failed == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidDeviceFunction : failed;
    pthread_mutex_lock(&lock);
    given = realloc(given, (givens + 1) * sizeof *given);
    given[givens++] = symbol->function;
    pthread_mutex_unlock(&lock);
  }
  *function = symbol->function;
  return 0;
}

// --- launches

static __thread struct { dim3 grid, block; size_t shared; void *stream; } pushed[32];
static __thread int depth;
EXPORTED unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream) {
  if (depth >= 32) return cudaErrorInvalidConfiguration;
  pushed[depth].grid = grid;
  pushed[depth].block = block;
  pushed[depth].shared = shared;
  pushed[depth++].stream = stream;
  return 0;
}
API __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
  if (!depth) return cudaErrorMissingConfiguration;
  depth--;
  *grid = pushed[depth].grid;
  *block = pushed[depth].block;
  *shared = pushed[depth].shared;
  *(void **)stream = pushed[depth].stream;
  return cudaSuccess;
}
static int launch(CUfunction f, dim3 g, dim3 b, void **arguments, size_t shared, cudaStream_t stream, int cooperative) {
  if (!g.x || !g.y || !g.z || !b.x || !b.y || !b.z || g.x > 2147483647u || g.y > 65535 || g.z > 65535 || b.x > 1024 ||
      b.y > 1024 || b.z > 64 || (size_t)b.x * b.y * b.z > 1024)
    return cudaErrorInvalidConfiguration;
  if (shared > 1u << 30) return cudaErrorInvalidValue;
  return (int)(cooperative ? cuLaunchCooperativeKernel(f, g.x, g.y, g.z, b.x, b.y, b.z, (unsigned)shared, stream, arguments)
                           : cuLaunchKernel(f, g.x, g.y, g.z, b.x, b.y, b.z, (unsigned)shared, stream, arguments, NULL));
}
static int launch_host(const void *host, dim3 g, dim3 b, void **arguments, size_t shared, cudaStream_t stream, int cooperative) {
  CUfunction f;
  int failed = function_of(host, &f);
  return failed ? failed : launch(f, g, b, arguments, shared, stream, cooperative);
}
API cudaLaunchKernel(const void *host, dim3 g, dim3 b, void **arguments, size_t shared, cudaStream_t stream) {
  ANSWER(launch_host(host, g, b, arguments, shared, stream, 0));
}
API cudaLaunchCooperativeKernel(const void *host, dim3 g, dim3 b, void **arguments, size_t shared, cudaStream_t stream) {
  ANSWER(launch_host(host, g, b, arguments, shared, stream, 1));
}
API cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *host, void **arguments) {
  CUfunction f;
  int failed = function_of(host, &f);
  if (failed) ANSWER(failed);
  CUlaunchConfig config = {c->gridDim.x, c->gridDim.y, c->gridDim.z, c->blockDim.x, c->blockDim.y, c->blockDim.z,
                           (unsigned)c->dynamicSmemBytes, c->stream, (CUlaunchAttribute *)c->attrs, c->numAttrs};
  ANSWER(cuLaunchKernelEx(&config, f, arguments, NULL));
}
// A program keeps what it gets here for good, and looks at no error: the launch looks the function up, and tells why there is none.
API __cudaGetKernel(cudaKernel_t *kernel, const void *host) {
  *kernel = (cudaKernel_t)host;
  return cudaSuccess;
}
API __cudaLaunchKernel(cudaKernel_t kernel, dim3 g, dim3 b, void **arguments, size_t shared, cudaStream_t stream) {
  ANSWER(launch_host(kernel, g, b, arguments, shared, stream, 0));
}
API cudaGetKernel(cudaKernel_t *kernel, const void *host) { ANSWER(function_of(host, (CUfunction *)kernel)); }
API cudaGetFuncBySymbol(cudaFunction_t *function, const void *host) { ANSWER(function_of(host, (CUfunction *)function)); }

API cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *host) {
  CUfunction f;
  int value, failed = function_of(host, &f);
  if (failed) ANSWER(failed);
  memset(a, 0, sizeof *a);
#define GET(field, which) cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_##which, f); a->field = value;
  GET(sharedSizeBytes, SHARED_SIZE_BYTES)
  GET(constSizeBytes, CONST_SIZE_BYTES)
  GET(localSizeBytes, LOCAL_SIZE_BYTES)
  GET(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK)
  GET(numRegs, NUM_REGS)
  GET(ptxVersion, PTX_VERSION)
  GET(binaryVersion, BINARY_VERSION)
  GET(maxDynamicSharedSizeBytes, MAX_DYNAMIC_SHARED_SIZE_BYTES)
  GET(clusterDimMustBeSet, CLUSTER_SIZE_MUST_BE_SET)
  GET(requiredClusterWidth, REQUIRED_CLUSTER_WIDTH)
  GET(requiredClusterHeight, REQUIRED_CLUSTER_HEIGHT)
  GET(requiredClusterDepth, REQUIRED_CLUSTER_DEPTH)
  GET(nonPortableClusterSizeAllowed, NON_PORTABLE_CLUSTER_SIZE_ALLOWED)
  a->preferredShmemCarveout = -1;
  return cudaSuccess;
}
API cudaFuncSetAttribute(const void *host, enum cudaFuncAttribute attribute, int value) {
  CUfunction f;
  int failed = function_of(host, &f);
  ANSWER(failed ? failed : (int)cuFuncSetAttribute(f, (CUfunction_attribute)attribute, value));
}
API cudaFuncSetCacheConfig(const void *host, enum cudaFuncCache config) { return cudaSuccess; }
API cudaFuncSetSharedMemConfig(const void *host, enum cudaSharedMemConfig config) { return cudaSuccess; }
API cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *host, int threads, size_t shared) {
  CUfunction f;
  int failed = function_of(host, &f);
  ANSWER(failed ? failed : (int)cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, threads, shared));
}
API cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *host, int threads, size_t shared,
                                                           unsigned flags) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, host, threads, shared);
}

// --- errors and devices

static const struct { int number; const char *name; } errors[] = {
#include "runtime_errors.h"
};
API cudaGetLastError(void) {
  int found = last_error;
  last_error = 0;
  return (cudaError_t)found;
}
API cudaPeekAtLastError(void) { return (cudaError_t)last_error; }
EXPORTED const char *cudaGetErrorName(cudaError_t error) {
  for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].number == (int)error) return errors[i].name;
  return "unrecognized error code";
}
EXPORTED const char *cudaGetErrorString(cudaError_t error) {
  const char *text = memsim_error_text((int)error);
  return text ? text : cudaGetErrorName(error);
}
API cudaGetDeviceCount(int *count) { *count = 0; START; *count = 1; return cudaSuccess; }
API cudaGetDevice(int *device) { START; *device = 0; return cudaSuccess; }
API cudaSetDevice(int device) { START; ANSWER(device ? cudaErrorInvalidDevice : 0); }
API cudaInitDevice(int device, unsigned flags, unsigned more) { START; ANSWER(device ? cudaErrorInvalidDevice : 0); }
API cudaChooseDevice(int *device, const struct cudaDeviceProp *wanted) { START; *device = 0; return cudaSuccess; }
API cudaSetValidDevices(int *devices, int count) { return cudaSuccess; }
API cudaSetDeviceFlags(unsigned flags) { return cudaSuccess; }
API cudaGetDeviceFlags(unsigned *flags) { *flags = cudaDeviceMapHost; return cudaSuccess; }
API cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
  START;
  ANSWER(device ? cudaErrorInvalidDevice : (int)cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, 0));
}
#undef cudaGetDeviceProperties
API cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
  START;
  if (device) ANSWER(cudaErrorInvalidDevice);
  memset(p, 0, sizeof *p);
  cuDeviceGetName(p->name, sizeof p->name, 0);
  memcpy(&p->uuid, "memsim: no GPU  ", 16);
  cuDeviceTotalMem(&p->totalGlobalMem, 0);
  int value;
#define FILL(field, attribute) cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_##attribute, 0); p->field = value;
#include "properties.h"
#if CUDART_VERSION < 13000
  FILL(clockRate, CLOCK_RATE)
  FILL(memoryClockRate, MEMORY_CLOCK_RATE)
  FILL(deviceOverlap, GPU_OVERLAP)
  FILL(kernelExecTimeoutEnabled, KERNEL_EXEC_TIMEOUT)
  FILL(computeMode, COMPUTE_MODE)
  FILL(cooperativeMultiDeviceLaunch, COOPERATIVE_MULTI_DEVICE_LAUNCH)
  FILL(singleToDoublePrecisionPerfRatio, SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO)
  FILL(maxTexture1DLinear, MAXIMUM_TEXTURE1D_LINEAR_WIDTH)
#endif
  return cudaSuccess;
}
#if CUDART_VERSION >= 12000 && CUDART_VERSION < 13000
API cudaGetDeviceProperties_v2(struct cudaDeviceProp *p, int device) { return cudaGetDeviceProperties(p, device); }
#endif
API cudaDeviceSynchronize(void) { START; ANSWER(cuCtxSynchronize()); }
API cudaDeviceReset(void) { START; last_error = 0; ANSWER(cuDevicePrimaryCtxReset(0)); }
API cudaDeviceSetCacheConfig(enum cudaFuncCache config) { return cudaSuccess; }
API cudaDeviceGetCacheConfig(enum cudaFuncCache *config) { *config = cudaFuncCachePreferNone; return cudaSuccess; }
API cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config) { return cudaSuccess; }
API cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *config) { *config = cudaSharedMemBankSizeFourByte; return cudaSuccess; }
API cudaDeviceSetLimit(enum cudaLimit limit, size_t value) { START; ANSWER(cuCtxSetLimit((CUlimit)limit, value)); }
API cudaDeviceGetLimit(size_t *value, enum cudaLimit limit) { START; ANSWER(cuCtxGetLimit(value, (CUlimit)limit)); }
API cudaDeviceGetStreamPriorityRange(int *least, int *greatest) { START; ANSWER(cuCtxGetStreamPriorityRange(least, greatest)); }
API cudaDeviceCanAccessPeer(int *can, int a, int b) { *can = 0; return cudaSuccess; }
API cudaDeviceGetPCIBusId(char *text, int size, int device) { START; ANSWER(cuDeviceGetPCIBusId(text, size, device)); }
API cudaCtxResetPersistingL2Cache(void) { return cudaSuccess; }
API cudaDriverGetVersion(int *version) { *version = CUDA_VERSION; return cudaSuccess; }
API cudaRuntimeGetVersion(int *version) { *version = CUDART_VERSION; return cudaSuccess; }
API cudaProfilerStart(void) { return cudaSuccess; }
API cudaProfilerStop(void) { return cudaSuccess; }
#if CUDART_VERSION >= 12050
API cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version, unsigned long long flags,
                                     enum cudaDriverEntryPointQueryResult *status) {
  START;
  CUresult failed = cuGetProcAddress(name, function, (int)version, flags, NULL);
  if (status) *status = failed ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
#endif
#undef cudaGetDriverEntryPoint
API cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags,
                            enum cudaDriverEntryPointQueryResult *status) {
  START;
  CUresult failed = cuGetProcAddress(name, function, CUDART_VERSION, flags, NULL);
  if (status) *status = failed ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

// --- streams and events

API cudaStreamCreate(cudaStream_t *stream) { START; ANSWER(stream ? (int)cuStreamCreate(stream, 0) : cudaErrorInvalidValue); }
API cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) { START; ANSWER(cuStreamCreate(stream, flags)); }
API cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
  START;
  ANSWER(cuStreamCreateWithPriority(stream, flags, priority));
}
API cudaStreamDestroy(cudaStream_t stream) { ANSWER(cuStreamDestroy(stream)); }
API cudaStreamSynchronize(cudaStream_t stream) { START; ANSWER(cuStreamSynchronize(stream)); }
API cudaStreamQuery(cudaStream_t stream) { START; ANSWER(cuStreamQuery(stream)); }
API cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) { START; ANSWER(cuStreamWaitEvent(stream, event, flags)); }
API cudaStreamGetPriority(cudaStream_t stream, int *priority) { ANSWER(cuStreamGetPriority(stream, priority)); }
API cudaStreamGetFlags(cudaStream_t stream, unsigned *flags) { ANSWER(cuStreamGetFlags(stream, flags)); }
API cudaStreamGetId(cudaStream_t stream, unsigned long long *number) { ANSWER(cuStreamGetId(stream, number)); }
API cudaStreamGetDevice(cudaStream_t stream, int *device) { *device = 0; return cudaSuccess; }
API cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) { *mode = cudaStreamCaptureModeGlobal; return cudaSuccess; }
API cudaStreamAttachMemAsync(cudaStream_t stream, void *at, size_t bytes, unsigned flags) { return cudaSuccess; }
API cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID attribute, const cudaStreamAttrValue *value) { return cudaSuccess; }
API cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned flags) {
  START;
  function(stream, cudaSuccess, data);
  return cudaSuccess;
}
API cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) { START; ANSWER(cuLaunchHostFunc(stream, function, data)); }
API cudaEventCreate(cudaEvent_t *event) { START; ANSWER(cuEventCreate(event, 0)); }
API cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) { START; ANSWER(cuEventCreate(event, flags)); }
API cudaEventDestroy(cudaEvent_t event) { ANSWER(cuEventDestroy(event)); }
API cudaEventRecord(cudaEvent_t event, cudaStream_t stream) { START; ANSWER(cuEventRecord(event, stream)); }
API cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) { START; ANSWER(cuEventRecord(event, stream)); }
API cudaEventSynchronize(cudaEvent_t event) { START; ANSWER(cuEventSynchronize(event)); }
API cudaEventQuery(cudaEvent_t event) { START; ANSWER(cuEventQuery(event)); }
#undef cudaEventElapsedTime
API cudaEventElapsedTime(float *milliseconds, cudaEvent_t a, cudaEvent_t b) { START; ANSWER(cuEventElapsedTime(milliseconds, a, b)); }

#include "runtime_memory.h"
#include "runtime_arrays.h"
#include "runtime_graphs.h"
