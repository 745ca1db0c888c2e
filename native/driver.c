// A libcuda.so.1 whose device is memsim: the functions of cuda.h that need no GPU to have a meaning.
//
// It knows nothing: allocations, code, launches and occupancy are questions over the channel. Device memory is
// mapped here at its own addresses, so copies are memmove. Everything is done when it is asked for, so streams and
// events are empty. What is not here is a refusal that says its name (memsim/driver/native_build.py).
#define _GNU_SOURCE
#include "channel.h"
#include "error_texts.h"

#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default"))) CUresult
#define OK CUDA_SUCCESS
#define HOST(address) ((void *)(uintptr_t)(address))

static int is_initialized;
static CUresult broken;  // after a fault in a kernel every call fails, as on a GPU
static struct stretch written[WRITTEN];  // of the device's memory, by calls, since a launch was sent
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER, launching = PTHREAD_MUTEX_INITIALIZER;
static char the_context, the_pool;
static __thread int depth;  // of this thread's stack of contexts, which are all the same
static void forget_ranges(void);

#define READY do { if (!is_initialized) return CUDA_ERROR_NOT_INITIALIZED; if (broken) return broken; } while (0)

struct graph;  // native/graphs.h: what is asked for on a stream that is captured becomes a node
static struct graph *captured_by(CUstream stream);
static CUresult capture_copy(struct graph *graph, const CUDA_MEMCPY3D *box);
static CUresult capture_fill(struct graph *graph, CUDA_MEMSET_NODE_PARAMS fill);

// --- the device and its context: there is one of each

API cuInit(unsigned flags) {
  int failed = memsim_connect();
  if (failed) return failed == 100 ? CUDA_ERROR_NO_DEVICE : (CUresult)failed;
  is_initialized = 1;
  return OK;
}
API cuDriverGetVersion(int *version) { *version = CUDA_VERSION; return OK; }
API cuDeviceGetCount(int *count) { *count = is_initialized; return is_initialized ? OK : CUDA_ERROR_NOT_INITIALIZED; }
API cuDeviceGet(CUdevice *device, int number) {
  READY;
  *device = 0;
  return number ? CUDA_ERROR_INVALID_DEVICE : OK;
}
API cuDeviceGetName(char *name, int size, CUdevice device) {
  READY;
  if (device) return CUDA_ERROR_INVALID_DEVICE;
  snprintf(name, (size_t)size, "%s", memsim_device()->name);
  return OK;
}
static CUresult uuid_of(CUuuid *uuid) { memcpy(uuid->bytes, "memsim: no GPU  ", 16); return OK; }
API cuDeviceGetUuid(CUuuid *uuid, CUdevice device) { return uuid_of(uuid); }
#ifdef cuDeviceGetUuid
#undef cuDeviceGetUuid
API cuDeviceGetUuid(CUuuid *uuid, CUdevice device) { return uuid_of(uuid); }
#endif
API cuDeviceTotalMem(size_t *bytes, CUdevice device) {
  size_t free_bytes;
  return device ? CUDA_ERROR_INVALID_DEVICE : cuMemGetInfo(&free_bytes, bytes);
}
API cuDeviceGetAttribute(int *value, CUdevice_attribute wanted, CUdevice device) {
  READY;
  if (device) return CUDA_ERROR_INVALID_DEVICE;
  const uint32_t *pair = memsim_attributes();
  *value = 0;
  for (uint32_t i = 0; i < memsim_device()->attributes; i++, pair += 2)
    if (pair[0] == (uint32_t)wanted) *value = (int)pair[1];
  return wanted < 1 || wanted >= CU_DEVICE_ATTRIBUTE_MAX ? CUDA_ERROR_INVALID_VALUE : OK;
}
API cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
  CUresult failed = cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  return failed ? failed : cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}
API cuDeviceGetProperties(CUdevprop *p, CUdevice device) {
  READY;
  static const int attributes[] = {  // in the order of the fields
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
    CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, CU_DEVICE_ATTRIBUTE_WARP_SIZE, CU_DEVICE_ATTRIBUTE_MAX_PITCH,
    CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT};
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
    cuDeviceGetAttribute((int *)p + i, (CUdevice_attribute)attributes[i], device);
  return device ? CUDA_ERROR_INVALID_DEVICE : OK;
}
API cuDeviceGetPCIBusId(char *text, int size, CUdevice device) {
  snprintf(text, (size_t)size, "0000:00:00.0");
  return OK;
}
API cuDeviceGetByPCIBusId(CUdevice *device, const char *text) { *device = 0; return OK; }
API cuDeviceCanAccessPeer(int *can, CUdevice a, CUdevice b) { *can = 0; return OK; }
API cuDeviceGetLuid(char *luid, unsigned *mask, CUdevice device) { return CUDA_ERROR_NOT_SUPPORTED; }

static CUresult use_context(CUcontext *context, CUdevice device) {
  READY;
  if (device) return CUDA_ERROR_INVALID_DEVICE;
  *context = (CUcontext)&the_context;
  return OK;
}
API cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) { return use_context(context, device); }
API cuDevicePrimaryCtxRelease(CUdevice device) { return OK; }
API cuDevicePrimaryCtxReset(CUdevice device) {
  broken = OK;
  if (!is_initialized) return CUDA_ERROR_NOT_INITIALIZED;
  CUresult result = (CUresult)memsim_ask(OP_RESET, NULL, 0, NULL, 0, NULL, 0, NULL);
  forget_ranges();
  return result;
}
API cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) { return OK; }
API cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
  *flags = 0;
  *active = depth > 0;
  return OK;
}
static CUresult new_context(CUcontext *context, CUdevice device) {
  CUresult failed = use_context(context, device);
  depth += !failed;
  return failed;
}
#undef cuCtxCreate
API cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device) { return new_context(context, device); }
API cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int count, unsigned flags, CUdevice device) {
  return new_context(context, device);
}
#if CUDA_VERSION >= 12050
API cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *how, unsigned flags, CUdevice device) {
  return new_context(context, device);
}
#endif
API cuCtxDestroy(CUcontext context) { depth -= depth > 0; return OK; }
API cuCtxSetCurrent(CUcontext context) {
  if (!context) depth -= depth > 0;
  else if (!depth) depth = 1;
  return OK;
}
API cuCtxGetCurrent(CUcontext *context) {
  if (!is_initialized) return CUDA_ERROR_NOT_INITIALIZED;
  *context = depth ? (CUcontext)&the_context : NULL;
  return OK;
}
API cuCtxPushCurrent(CUcontext context) { depth++; return OK; }
API cuCtxPopCurrent(CUcontext *context) {
  if (!depth) return CUDA_ERROR_INVALID_CONTEXT;
  depth--;
  if (context) *context = (CUcontext)&the_context;
  return OK;
}
API cuCtxGetDevice(CUdevice *device) { READY; *device = 0; return depth ? OK : CUDA_ERROR_INVALID_CONTEXT; }
API cuCtxGetFlags(unsigned *flags) { *flags = 0; return OK; }
API cuCtxSetFlags(unsigned flags) { return OK; }
API cuCtxGetId(CUcontext context, unsigned long long *number) { *number = 1; return OK; }
API cuCtxGetApiVersion(CUcontext context, unsigned *version) { *version = 3020; return OK; }
#undef cuCtxSynchronize
API cuCtxSynchronize(void) { READY; return OK; }
// Of these only the heap has an effect: there is room for whatever is printed and for every stack.
static size_t limits[] = {[CU_LIMIT_STACK_SIZE] = 1 << 10, [CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20, [CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
                          [CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 0, [CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
                          [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64, [CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = 0};
static CUresult limit_of(CUlimit limit) {
  if (limit >= sizeof limits / sizeof *limits) return CUDA_ERROR_INVALID_VALUE;
  return limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH ? CUDA_ERROR_UNSUPPORTED_LIMIT : OK;
}
API cuCtxSetLimit(CUlimit limit, size_t value) {
  READY;
  CUresult failed = limit_of(limit);
  uint64_t bytes = value;
  if (!failed && limit == CU_LIMIT_MALLOC_HEAP_SIZE) failed = (CUresult)memsim_ask(OP_HEAP, &bytes, 8, NULL, 0, NULL, 0, NULL);
  if (!failed) limits[limit] = value;
  return failed;
}
API cuCtxGetLimit(size_t *value, CUlimit limit) {
  CUresult failed = limit_of(limit);
  if (!failed) *value = limits[limit];
  return failed;
}
API cuCtxGetCacheConfig(CUfunc_cache *config) { *config = CU_FUNC_CACHE_PREFER_NONE; return OK; }
API cuCtxSetCacheConfig(CUfunc_cache config) { return OK; }
API cuCtxGetSharedMemConfig(CUsharedconfig *config) { *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE; return OK; }
API cuCtxSetSharedMemConfig(CUsharedconfig config) { return OK; }
API cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return OK;
}
#if CUDA_VERSION >= 13000
API cuLogsRegisterCallback(CUlogsCallback function, void *data, CUlogsCallbackHandle *handle) {
  if (handle) *handle = NULL;  // there is no log
  return OK;
}
API cuLogsUnregisterCallback(CUlogsCallbackHandle handle) { return OK; }
#endif
API cuProfilerStart(void) { return OK; }
API cuProfilerStop(void) { return OK; }

#include "memory.h"

// --- streams and events

struct stream { unsigned flags; int priority; struct capture *capture; };
API cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
  READY;
  struct stream *made = malloc(sizeof *made);
  *made = (struct stream){flags, priority, NULL};
  *stream = (CUstream)made;
  return OK;
}
API cuStreamCreate(CUstream *stream, unsigned flags) { return cuStreamCreateWithPriority(stream, flags, 0); }
API cuStreamDestroy(CUstream stream) {
  if ((uintptr_t)stream <= 2) return CUDA_ERROR_INVALID_HANDLE;
  free(stream);
  return OK;
}
API cuStreamSynchronize(CUstream stream) { READY; return OK; }
API cuStreamQuery(CUstream stream) { READY; return OK; }
API cuStreamGetPriority(CUstream stream, int *priority) {
  *priority = (uintptr_t)stream > 2 ? ((struct stream *)stream)->priority : 0;
  return OK;
}
API cuStreamGetFlags(CUstream stream, unsigned *flags) {
  *flags = (uintptr_t)stream > 2 ? ((struct stream *)stream)->flags : 0;
  return OK;
}
API cuStreamGetId(CUstream stream, unsigned long long *number) { *number = (uintptr_t)stream; return OK; }
API cuStreamGetCtx(CUstream stream, CUcontext *context) { *context = (CUcontext)&the_context; return OK; }
API cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) { *mode = CU_STREAM_CAPTURE_MODE_GLOBAL; return OK; }
API cuStreamAttachMemAsync(CUstream stream, CUdeviceptr at, size_t bytes, unsigned flags) { return OK; }
API cuStreamSetAttribute(CUstream stream, CUstreamAttrID attribute, const CUstreamAttrValue *value) { return OK; }
API cuStreamAddCallback(CUstream stream, CUstreamCallback function, void *data, unsigned flags) {
  READY;
  function(stream, OK, data);
  return OK;
}

struct event { int is_timed, is_recorded; struct timespec when; struct capture *capture; };
API cuEventCreate(CUevent *event, unsigned flags) {
  READY;
  struct event *made = calloc(1, sizeof *made);
  made->is_timed = !(flags & CU_EVENT_DISABLE_TIMING);
  *event = (CUevent)made;
  return OK;
}
API cuEventDestroy(CUevent event) { free(event); return event ? OK : CUDA_ERROR_INVALID_HANDLE; }
API cuEventRecord(CUevent event, CUstream stream) {
  READY;
  struct event *e = (struct event *)event;
  if (!e) return CUDA_ERROR_INVALID_HANDLE;
  e->capture = captured_by(stream) ? ((struct stream *)stream)->capture : NULL;
  e->is_recorded = 1;
  clock_gettime(CLOCK_MONOTONIC, &e->when);
  return OK;
}
API cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) { return cuEventRecord(event, stream); }
API cuEventSynchronize(CUevent event) { READY; return event ? OK : CUDA_ERROR_INVALID_HANDLE; }
API cuEventQuery(CUevent event) { READY; return event ? OK : CUDA_ERROR_INVALID_HANDLE; }
API cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  READY;
  struct event *e = (struct event *)event;  // of a stream that is captured: this one is, too, from now on
  if (e && e->capture && (uintptr_t)stream > 2) ((struct stream *)stream)->capture = e->capture;
  return OK;
}
static CUresult elapsed(float *milliseconds, CUevent start, CUevent end) {
  READY;
  struct event *a = (struct event *)start, *b = (struct event *)end;
  if (!a || !b || !a->is_timed || !b->is_timed || !a->is_recorded || !b->is_recorded) return CUDA_ERROR_INVALID_HANDLE;
  *milliseconds = (float)(b->when.tv_sec - a->when.tv_sec) * 1e3f + (float)(b->when.tv_nsec - a->when.tv_nsec) * 1e-6f;
  return OK;
}
#undef cuEventElapsedTime
API cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) { return elapsed(milliseconds, start, end); }
API cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end) { return elapsed(milliseconds, start, end); }

// --- functions by name, for those who look them up

static const struct { const char *name, *newest; } versions[] = {
#include "versions.h"
};
#undef cuGetProcAddress
static CUresult look_up(const char *name, void **function, int version) {
  const char *symbol = name;
  for (unsigned i = 0; i < sizeof versions / sizeof *versions; i++)
    if (!strcmp(versions[i].name, name)) symbol = versions[i].newest;
  if (version < 13000) {  // as they were before CUDA 13
    if (!strcmp(name, "cuCtxCreate")) symbol = version < 11040 ? "cuCtxCreate_v2" : "cuCtxCreate_v3";
    if (!strcmp(name, "cuMemPrefetchAsync")) symbol = name;
    if (!strcmp(name, "cuGetProcAddress") && version < 12000) symbol = name;
  }
  Dl_info self;
  void *library = dladdr((void *)look_up, &self) ? dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
  *function = library ? dlsym(library, symbol) : NULL;
  return *function ? OK : CUDA_ERROR_NOT_FOUND;
}
API cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags) {
  return look_up(name, function, version);
}
API cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status) {
  CUresult result = look_up(name, function, version);
  if (status) *status = result ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_SUCCESS;
  return result;
}
static const struct { int number; const char *name; } errors[] = {
#include "driver_errors.h"
};
API cuGetErrorName(CUresult error, const char **text) {
  for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].number == (int)error) { *text = errors[i].name; return OK; }
  *text = NULL;
  return CUDA_ERROR_INVALID_VALUE;
}
API cuGetErrorString(CUresult error, const char **text) {
  const char *found = memsim_error_text((int)error);
  if (!found) return cuGetErrorName(error, text);
  *text = found;
  return OK;
}

// NVIDIA's own runtime looks for tables that nothing documents, among them one that proves that the driver is
// NVIDIA's. Nothing of that is served or imitated: programs get memsim's runtime instead.
API cuGetExportTable(const void **table, const CUuuid *which) {
  memsim_refuse("cuGetExportTable");
  *table = NULL;
  return CUDA_ERROR_NOT_FOUND;
}

#include "driver_code.h"
#include "graphs.h"
