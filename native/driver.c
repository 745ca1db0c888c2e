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
static __thread int is_current;
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
  forget_ranges();
  return (CUresult)memsim_ask(OP_RESET, NULL, 0, NULL, 0, NULL, 0, NULL);
}
API cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) { return OK; }
API cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
  *flags = 0;
  *active = is_current;
  return OK;
}
static CUresult new_context(CUcontext *context, CUdevice device) {
  is_current = 1;
  return use_context(context, device);
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
API cuCtxDestroy(CUcontext context) { is_current = 0; return OK; }
API cuCtxSetCurrent(CUcontext context) { is_current = context != NULL; return OK; }
API cuCtxGetCurrent(CUcontext *context) {
  if (!is_initialized) return CUDA_ERROR_NOT_INITIALIZED;
  *context = is_current ? (CUcontext)&the_context : NULL;
  return OK;
}
API cuCtxPushCurrent(CUcontext context) { is_current = 1; return OK; }
API cuCtxPopCurrent(CUcontext *context) { if (context) *context = (CUcontext)&the_context; return OK; }
API cuCtxGetDevice(CUdevice *device) { READY; *device = 0; return is_current ? OK : CUDA_ERROR_INVALID_CONTEXT; }
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

// --- memory

static CUresult allocate(CUdeviceptr *address, size_t bytes, uint32_t kind) {
  READY;
  struct { uint64_t bytes; uint32_t kind, unused; } question = {bytes, kind, 0};
  uint64_t answer;
  if (!bytes || !address) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = (CUresult)memsim_ask(OP_ALLOCATE, &question, sizeof question, NULL, 0, &answer, 8, NULL);
  if (!result) *address = answer;
  return result;
}
#define ON_DEVICE (1 << DEVICE_MEMORY | 1 << MANAGED_MEMORY)
static CUresult release(CUdeviceptr address, uint64_t kinds) {
  READY;
  uint64_t question[2] = {address, kinds};
  forget_ranges();
  return address ? (CUresult)memsim_ask(OP_FREE, question, sizeof question, NULL, 0, NULL, 0, NULL) : OK;
}
static int is_known(CUdeviceptr address) {  // an address that is CUDA's, and not the program's own
  const struct hello *device = memsim_device();
  return is_initialized && address >= device->base && address - device->base < device->bytes;
}
// Allocations that were asked for, until one of them may have changed: copies need not ask each time.
struct range { uint64_t start, bytes; uint32_t kind, unused; };
static struct range ranges[16];
static unsigned ranges_seen;
static pthread_mutex_t seeing = PTHREAD_MUTEX_INITIALIZER;
static void forget_ranges(void) {
  pthread_mutex_lock(&seeing);
  memset(ranges, 0, sizeof ranges);
  pthread_mutex_unlock(&seeing);
}
static CUresult range_of(CUdeviceptr address, struct range *found) {
  enum { SEEN = sizeof ranges / sizeof *ranges };
  uint64_t question = address;
  CUresult result = OK;
  int is_seen = 0;
  if (!is_known(address)) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&seeing);
  for (int i = 0; i < SEEN && !is_seen; i++)
    if ((is_seen = address >= ranges[i].start && address - ranges[i].start < ranges[i].bytes)) *found = ranges[i];
  if (!is_seen) {
    result = (CUresult)memsim_ask(OP_RANGE, &question, 8, NULL, 0, found, sizeof *found, NULL);
    if (!result) ranges[ranges_seen++ % SEEN] = *found;
  }
  pthread_mutex_unlock(&seeing);
  return result;
}
// Whether bytes are in one allocation, or are the program's own.
static int is_within(CUdeviceptr at, size_t bytes) {
  struct range found;
  if (!bytes || !is_known(at)) return !bytes || at;
  return !range_of(at, &found) && bytes <= found.start + found.bytes - at;
}
API cuMemGetInfo(size_t *free_bytes, size_t *total) {
  READY;
  uint64_t answer[2];
  CUresult result = (CUresult)memsim_ask(OP_MEMORY, NULL, 0, NULL, 0, answer, sizeof answer, NULL);
  *free_bytes = answer[0];
  *total = answer[1];
  return result;
}
API cuMemAlloc(CUdeviceptr *address, size_t bytes) { return allocate(address, bytes, DEVICE_MEMORY); }
API cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags) {
  return allocate(address, bytes, MANAGED_MEMORY);
}
API cuMemAllocHost(void **address, size_t bytes) { return allocate((CUdeviceptr *)address, bytes, HOST_MEMORY); }
API cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
  return allocate((CUdeviceptr *)address, bytes, HOST_MEMORY);
}
API cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream) {
  if (captured_by(stream)) return (CUresult)memsim_refuse("cuMemAllocAsync on a stream that is captured");
  return allocate(address, bytes, DEVICE_MEMORY);
}
API cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return cuMemAllocAsync(address, bytes, stream);
}
API cuMemAllocPitch(CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element) {
  *pitch = (width + 511) & ~(size_t)511;
  return allocate(address, *pitch * height, DEVICE_MEMORY);
}
API cuMemFree(CUdeviceptr address) { return release(address, ON_DEVICE); }
API cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  if (captured_by(stream)) return (CUresult)memsim_refuse("cuMemFreeAsync on a stream that is captured");
  return release(address, ON_DEVICE);
}
API cuMemFreeHost(void *address) { return release((CUdeviceptr)address, 1 << HOST_MEMORY); }
API cuMemGetAddressRange(CUdeviceptr *start, size_t *bytes, CUdeviceptr address) {
  struct range found;
  CUresult result = range_of(address, &found);
  if (result) return CUDA_ERROR_NOT_FOUND;
  if (start) *start = found.start;
  if (bytes) *bytes = found.bytes;
  return OK;
}
API cuMemHostGetDevicePointer(CUdeviceptr *device, void *host, unsigned flags) {
  struct range found;
  *device = (CUdeviceptr)host;
  return range_of(*device, &found);
}
API cuMemHostGetFlags(unsigned *flags, void *host) {
  struct range found;
  *flags = CU_MEMHOSTALLOC_DEVICEMAP;
  return range_of((CUdeviceptr)host, &found);
}
static CUresult pointer_attribute(void *data, CUpointer_attribute wanted, CUdeviceptr address) {
  struct range found;
  CUresult result = range_of(address, &found);
  if (result) return result;
  switch ((int)wanted) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)data = (CUcontext)&the_context; return OK;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *(unsigned *)data = found.kind == HOST_MEMORY ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      return OK;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)data = address; return OK;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      *(CUdeviceptr *)data = address;
      return found.kind == DEVICE_MEMORY ? CUDA_ERROR_INVALID_VALUE : OK;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned *)data = found.kind == MANAGED_MEMORY; return OK;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)data = 0; return OK;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: *(unsigned long long *)data = found.start; return OK;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)data = found.start; return OK;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)data = found.bytes; return OK;
    case CU_POINTER_ATTRIBUTE_MAPPED: *(int *)data = 1; return OK;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: *(int *)data = 1; return OK;
    default: return CUDA_ERROR_NOT_SUPPORTED;
  }
}
API cuPointerGetAttribute(void *data, CUpointer_attribute wanted, CUdeviceptr address) {
  return pointer_attribute(data, wanted, address);
}
API cuPointerGetAttributes(unsigned count, CUpointer_attribute *wanted, void **data, CUdeviceptr address) {
  for (unsigned i = 0; i < count; i++)
    if (pointer_attribute(data[i], wanted[i], address)) memset(data[i], 0, 4);
  return OK;
}
API cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr address) { return OK; }

// Registered memory is the program's own: it is copied from and to, and no kernel can reach it.
API cuMemHostRegister(void *host, size_t bytes, unsigned flags) { READY; return host && bytes ? OK : CUDA_ERROR_INVALID_VALUE; }
API cuMemHostUnregister(void *host) { READY; return host ? OK : CUDA_ERROR_INVALID_VALUE; }

// Device memory is written by these calls and by kernels alone, so memsim need not look what has changed. Where there are
// more ranges than are told, the last one is all of the others.
static void has_written(const void *to, size_t bytes) {
  const struct hello *device = memsim_device();
  uint64_t start = (uint64_t)to, end = start + bytes;
  if (!bytes || start - device->base >= device->bytes) return;
  pthread_mutex_lock(&writing);
  struct stretch *one = written;
  while (one < written + WRITTEN - 1 && one->end && (end < one->start || one->end < start)) one++;
  if (!one->end || start < one->start) one->start = start;
  if (end > one->end) one->end = end;
  pthread_mutex_unlock(&writing);
}
// Whole pages of zeros are given back to the system: programs clear the L2 cache by large arrays, which nobody reads.
static void fill_bytes(char *at, unsigned char value, size_t bytes) {
  const struct hello *device = memsim_device();
  size_t page = (size_t)sysconf(_SC_PAGESIZE), before = -(uintptr_t)at % page;
  if (!value && bytes >= 1 << 20 && (uint64_t)at - device->base < device->bytes) {
    size_t inside = (bytes - before) / page * page;
    if (!madvise(at + before, inside, MADV_REMOVE)) {
      memset(at, 0, before);
      at += before + inside, bytes -= before + inside;
    }
  }
  memset(at, value, bytes);
}
static CUresult copy(void *to, const void *from, size_t bytes) {
  READY;
  if (!is_within((CUdeviceptr)to, bytes) || !is_within((CUdeviceptr)from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (bytes) memmove(to, from, bytes);
  has_written(to, bytes);
  return OK;
}
static CUresult copy_on(void *to, const void *from, size_t bytes, CUstream stream) {
  struct graph *graph = captured_by(stream);
  if (!graph) return copy(to, from, bytes);
  CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED, .srcDevice = (CUdeviceptr)from, .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                       .dstDevice = (CUdeviceptr)to, .WidthInBytes = bytes, .Height = 1, .Depth = 1};
  return capture_copy(graph, &box);
}
#define COPY(name, to_type, to, from_type, from) \
  API name(to_type a, from_type b, size_t bytes) { return copy(to, from, bytes); } \
  API name##Async(to_type a, from_type b, size_t bytes, CUstream stream) { return copy_on(to, from, bytes, stream); }
#undef cuMemcpy
#undef cuMemcpyAsync
#undef cuMemcpyHtoD
#undef cuMemcpyHtoDAsync
#undef cuMemcpyDtoH
#undef cuMemcpyDtoHAsync
#undef cuMemcpyDtoD
#undef cuMemcpyDtoDAsync
COPY(cuMemcpy, CUdeviceptr, HOST(a), CUdeviceptr, HOST(b))
API cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) { return copy(HOST(to), from, bytes); }
API cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) { return copy(to, HOST(from), bytes); }
API cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) { return copy(HOST(to), HOST(from), bytes); }
API cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream s) { return copy_on(HOST(to), from, bytes, s); }
API cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream s) { return copy_on(to, HOST(from), bytes, s); }
API cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) { return copy_on(HOST(to), HOST(from), bytes, s); }

#include "arrays.h"

static CUDA_MEMCPY3D box_of(const CUDA_MEMCPY2D *c) {
  return (CUDA_MEMCPY3D){
    .srcXInBytes = c->srcXInBytes, .srcY = c->srcY, .srcMemoryType = c->srcMemoryType, .srcHost = c->srcHost,
    .srcDevice = c->srcDevice, .srcArray = c->srcArray, .srcPitch = c->srcPitch, .dstXInBytes = c->dstXInBytes, .dstY = c->dstY,
    .dstMemoryType = c->dstMemoryType, .dstHost = c->dstHost, .dstDevice = c->dstDevice, .dstArray = c->dstArray,
    .dstPitch = c->dstPitch, .WidthInBytes = c->WidthInBytes, .Height = c->Height, .Depth = 1};
}
static CUresult copy_box_on(CUDA_MEMCPY3D box, CUstream stream) {
  struct graph *graph = captured_by(stream);
  return graph ? capture_copy(graph, &box) : copy_box(&box);
}
API cuMemcpy2D(const CUDA_MEMCPY2D *c) { return copy_box_on(box_of(c), NULL); }
API cuMemcpy2DUnaligned(const CUDA_MEMCPY2D *c) { return copy_box_on(box_of(c), NULL); }
API cuMemcpy2DAsync(const CUDA_MEMCPY2D *c, CUstream stream) { return copy_box_on(box_of(c), stream); }
API cuMemcpy3D(const CUDA_MEMCPY3D *c) { return copy_box(c); }
API cuMemcpy3DAsync(const CUDA_MEMCPY3D *c, CUstream stream) { return copy_box_on(*c, stream); }

static int may_fill(CUdeviceptr at, size_t bytes, size_t element) {
  return !bytes || (is_known(at) && is_within(at, bytes) && at % element == 0);
}
#define FILL(suffix, type) \
  static CUresult fill_##suffix(CUdeviceptr at, type value, size_t count) { \
    READY; \
    if (!may_fill(at, count * sizeof value, sizeof value)) return CUDA_ERROR_INVALID_VALUE; \
    if (sizeof value == 1 || !value) fill_bytes(HOST(at), (unsigned char)value, count * sizeof value); \
    else for (size_t i = 0; i < count; i++) ((type *)HOST(at))[i] = value; \
    has_written(HOST(at), count * sizeof value); \
    return OK; \
  } \
  API cuMemset##suffix(CUdeviceptr at, type value, size_t count) { return fill_##suffix(at, value, count); } \
  API cuMemset##suffix##Async(CUdeviceptr at, type value, size_t count, CUstream s) { \
    struct graph *graph = captured_by(s); \
    return graph ? capture_fill(graph, (CUDA_MEMSET_NODE_PARAMS){at, count * sizeof value, value, sizeof value, count, 1}) \
                 : fill_##suffix(at, value, count); \
  }
#define FILL_ROWS(suffix, type) \
  static CUresult fill_rows_##suffix(CUdeviceptr at, size_t pitch, type value, size_t width, size_t height) { \
    READY; \
    size_t row = width * sizeof value, span = row && height ? (height - 1) * pitch + row : 0; \
    if ((height > 1 && pitch < row) || !may_fill(at, span, sizeof value)) return CUDA_ERROR_INVALID_VALUE; \
    for (; span && height; height--, at += pitch) fill_##suffix(at, value, width); \
    return OK; \
  } \
  API cuMemsetD2##suffix(CUdeviceptr at, size_t pitch, type value, size_t width, size_t height) { \
    return fill_rows_##suffix(at, pitch, value, width, height); \
  } \
  API cuMemsetD2##suffix##Async(CUdeviceptr at, size_t pitch, type value, size_t width, size_t height, CUstream s) { \
    struct graph *graph = captured_by(s); \
    return graph ? capture_fill(graph, (CUDA_MEMSET_NODE_PARAMS){at, pitch, value, sizeof value, width, height}) \
                 : fill_rows_##suffix(at, pitch, value, width, height); \
  }
FILL(D8, unsigned char)
FILL(D16, unsigned short)
FILL(D32, unsigned)
FILL_ROWS(D8, unsigned char)
FILL_ROWS(D16, unsigned short)
FILL_ROWS(D32, unsigned)

#include "virtual_memory.h"
#include "tensor_maps.h"

// Every page is where it is: hints have no effect. Pools: there is one, which keeps nothing.
#if CUDA_VERSION >= 13000
API cuMemPrefetchAsync(CUdeviceptr at, size_t bytes, CUmemLocation where, unsigned flags, CUstream stream) { return OK; }
API cuMemAdvise(CUdeviceptr at, size_t bytes, CUmem_advise advice, CUmemLocation where) { return OK; }
#undef cuMemPrefetchAsync
#undef cuMemAdvise
#endif
API cuMemPrefetchAsync(CUdeviceptr at, size_t bytes, CUdevice device, CUstream stream) { return OK; }
#if CUDA_VERSION < 13000
API cuMemAdvise(CUdeviceptr at, size_t bytes, CUmem_advise advice, CUdevice device) { return OK; }
#endif
API cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) { *pool = (CUmemoryPool)&the_pool; return OK; }
API cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) { *pool = (CUmemoryPool)&the_pool; return OK; }
API cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) { return OK; }
API cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *how) { *pool = (CUmemoryPool)&the_pool; return OK; }
API cuMemPoolDestroy(CUmemoryPool pool) { return OK; }
API cuMemPoolTrimTo(CUmemoryPool pool, size_t kept) { return OK; }
API cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) { return OK; }
API cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
  if (attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES) *(int *)value = 1;
  else *(uint64_t *)value = 0;
  return OK;
}

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
