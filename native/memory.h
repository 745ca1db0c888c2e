// Memory, copies and fills: a part of driver.c.

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
  CUresult result = address ? (CUresult)memsim_ask(OP_FREE, question, sizeof question, NULL, 0, NULL, 0, NULL) : OK;
  forget_ranges();
  return result;
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
