// Memory, copies and symbols: the second half of runtime.c.

static int get(void **address, size_t bytes, CUresult (*allocate)(CUdeviceptr *, size_t)) {
  int failed = start();
  if (failed) return failed;
  if (!address) return cudaErrorInvalidValue;
  *address = NULL;
  return bytes ? (int)allocate((CUdeviceptr *)address, bytes) : 0;
}
static CUresult allocate_managed(CUdeviceptr *address, size_t bytes) { return cuMemAllocManaged(address, bytes, CU_MEM_ATTACH_GLOBAL); }
static CUresult allocate_host(CUdeviceptr *address, size_t bytes) { return cuMemAllocHost((void **)address, bytes); }
API cudaMalloc(void **address, size_t bytes) { ANSWER(get(address, bytes, cuMemAlloc)); }
API cudaMallocManaged(void **address, size_t bytes, unsigned flags) { ANSWER(get(address, bytes, allocate_managed)); }
API cudaMallocHost(void **address, size_t bytes) { ANSWER(get(address, bytes, allocate_host)); }
API cudaHostAlloc(void **address, size_t bytes, unsigned flags) { ANSWER(get(address, bytes, allocate_host)); }
API cudaMallocAsync(void **address, size_t bytes, cudaStream_t stream) {
  START;
  if (address) *address = NULL;
  ANSWER(bytes || !address ? (int)cuMemAllocAsync((CUdeviceptr *)address, bytes, stream) : 0);
}
API cudaMallocFromPoolAsync(void **address, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  return cudaMallocAsync(address, bytes, stream);
}
API cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height) {
  *pitch = (width + 511) & ~(size_t)511;
  ANSWER(get(address, *pitch * height, cuMemAlloc));
}
API cudaMalloc3D(struct cudaPitchedPtr *p, struct cudaExtent extent) {
  p->pitch = (extent.width + 511) & ~(size_t)511;
  p->xsize = extent.width;
  p->ysize = extent.height;
  ANSWER(get(&p->ptr, p->pitch * extent.height * extent.depth, cuMemAlloc));
}
API cudaFree(void *address) { START; ANSWER(cuMemFree(DEVICE(address))); }
API cudaFreeHost(void *address) { START; ANSWER(cuMemFreeHost(address)); }
API cudaFreeAsync(void *address, cudaStream_t stream) { START; ANSWER(cuMemFreeAsync(DEVICE(address), stream)); }
API cudaHostRegister(void *host, size_t bytes, unsigned flags) { START; ANSWER(cuMemHostRegister(host, bytes, flags)); }
API cudaHostUnregister(void *host) { START; ANSWER(cuMemHostUnregister(host)); }
API cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
  START;
  ANSWER(cuMemHostGetDevicePointer((CUdeviceptr *)device, host, flags));
}
API cudaHostGetFlags(unsigned *flags, void *host) { START; ANSWER(cuMemHostGetFlags(flags, host)); }
API cudaMemGetInfo(size_t *free_bytes, size_t *total) { START; ANSWER(cuMemGetInfo(free_bytes, total)); }
API cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *pointer) {
  START;
  unsigned type, is_managed = 0;
  memset(a, 0, sizeof *a);
  if (cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, DEVICE(pointer))) {
    a->device = -1;
    a->hostPointer = (void *)pointer;
    return cudaSuccess;  // memory that CUDA does not know
  }
  cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, DEVICE(pointer));
  a->type = is_managed ? cudaMemoryTypeManaged : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
  a->devicePointer = (void *)pointer;
  a->hostPointer = a->type == cudaMemoryTypeDevice ? NULL : (void *)pointer;
  return cudaSuccess;
}

// Whether an address may be the device's side of a copy: one that CUDA knows, whatever its kind.
static int is_device_side(const void *address) {
  unsigned type;
  return !cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, DEVICE(address));
}
static int check_sides(int to_device, int from_device, int kind) {
  if (kind < 0 || kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if ((kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) && !to_device) return cudaErrorInvalidValue;
  if ((kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice) && !from_device) return cudaErrorInvalidValue;
  return 0;
}
static int check_kind(const void *to, const void *from, int kind) {
  return check_sides(is_device_side(to), is_device_side(from), kind);
}
static int copy_on(void *to, const void *from, size_t bytes, int kind, cudaStream_t stream) {
  int failed = start();
  if (failed || (bytes && (failed = check_kind(to, from, kind)))) return failed;
  return bytes ? (int)cuMemcpyAsync(DEVICE(to), DEVICE(from), bytes, stream) : (int)cuCtxSynchronize();
}
static int copy(void *to, const void *from, size_t bytes, int kind) { return copy_on(to, from, bytes, kind, NULL); }
static int copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind,
                     cudaStream_t stream) {
  if (to_pitch < width || from_pitch < width) return cudaErrorInvalidPitchValue;
  int failed = start();
  if (!failed && width && height) failed = check_kind(to, from, kind);
  CUDA_MEMCPY2D box = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED, .srcDevice = DEVICE(from), .srcPitch = from_pitch,
                       .dstMemoryType = CU_MEMORYTYPE_UNIFIED, .dstDevice = DEVICE(to), .dstPitch = to_pitch,
                       .WidthInBytes = width, .Height = height};
  return failed || !width || !height ? failed : (int)cuMemcpy2DAsync(&box, stream);
}
API cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) { ANSWER(copy(to, from, bytes, kind)); }
API cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
  ANSWER(copy_on(to, from, bytes, kind, stream));
}
API cudaMemcpyPeer(void *to, int a, const void *from, int b, size_t bytes) { ANSWER(copy(to, from, bytes, 4)); }
API cudaMemcpyPeerAsync(void *to, int a, const void *from, int b, size_t bytes, cudaStream_t stream) {
  ANSWER(copy_on(to, from, bytes, 4, stream));
}
API cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                 enum cudaMemcpyKind kind) {
  ANSWER(copy_rows(to, to_pitch, from, from_pitch, width, height, kind, NULL));
}
API cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                      enum cudaMemcpyKind kind, cudaStream_t stream) {
  ANSWER(copy_rows(to, to_pitch, from, from_pitch, width, height, kind, stream));
}

static int fill_box(void *at, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  int failed = start();
  return failed ? failed : (int)cuMemsetD2D8Async(DEVICE(at), pitch, (unsigned char)value, width, height, stream);
}
API cudaMemset(void *at, int value, size_t bytes) { ANSWER(fill_box(at, bytes, value, bytes, 1, NULL)); }
API cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream) { ANSWER(fill_box(at, bytes, value, bytes, 1, stream)); }
API cudaMemset2D(void *at, size_t pitch, int value, size_t width, size_t height) {
  ANSWER(fill_box(at, pitch, value, width, height, NULL));
}
API cudaMemset2DAsync(void *at, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  ANSWER(fill_box(at, pitch, value, width, height, stream));
}
static int fill_boxes(struct cudaPitchedPtr p, int value, struct cudaExtent extent, cudaStream_t stream) {
  for (size_t z = 0; z < extent.depth; z++) {
    int failed = fill_box((char *)p.ptr + z * p.pitch * p.ysize, p.pitch, value, extent.width, extent.height, stream);
    if (failed) return failed;
  }
  return 0;
}
API cudaMemset3D(struct cudaPitchedPtr p, int value, struct cudaExtent extent) { ANSWER(fill_boxes(p, value, extent, NULL)); }
API cudaMemset3DAsync(struct cudaPitchedPtr p, int value, struct cudaExtent extent, cudaStream_t stream) {
  ANSWER(fill_boxes(p, value, extent, stream));
}

static int symbol_at(const void *host, CUdeviceptr *address, size_t *bytes) {
  struct symbol *symbol;
  int failed = find(host, &symbol);
  for (struct symbol *each = managed_symbols; failed == cudaErrorInvalidDeviceFunction && each; each = each->next)
    if (*each->managed == host) failed = find(each->host, &symbol);  // host code names a managed variable by what it points to
  if (failed) return failed == cudaErrorInvalidDeviceFunction ? cudaErrorInvalidSymbol : failed;
  failed = (int)cuModuleGetGlobal(address, bytes, symbol->module->loaded, symbol->name);
  return failed == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : failed;
}
static int copy_symbol(const void *symbol, void *host, size_t bytes, size_t offset, int is_write, int kind, cudaStream_t stream) {
  CUdeviceptr address;
  size_t size;
  int failed = symbol_at(symbol, &address, &size);
  if (failed) return failed;
  if (kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault && kind != (is_write ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost))
    return cudaErrorInvalidMemcpyDirection;
  if (offset > size || bytes > size - offset) return cudaErrorInvalidValue;
  void *at = (char *)(uintptr_t)address + offset;
  return is_write ? copy_on(at, host, bytes, 4, stream) : copy_on(host, at, bytes, 4, stream);
}
API cudaGetSymbolAddress(void **address, const void *symbol) { ANSWER(symbol_at(symbol, (CUdeviceptr *)address, NULL)); }
API cudaGetSymbolSize(size_t *bytes, const void *symbol) { CUdeviceptr at; ANSWER(symbol_at(symbol, &at, bytes)); }
API cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, enum cudaMemcpyKind kind) {
  ANSWER(copy_symbol(symbol, (void *)from, bytes, offset, 1, kind, NULL));
}
API cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
  ANSWER(copy_symbol(symbol, (void *)from, bytes, offset, 1, kind, stream));
}
API cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind) {
  ANSWER(copy_symbol(symbol, to, bytes, offset, 0, kind, NULL));
}
API cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind,
                              cudaStream_t stream) {
  ANSWER(copy_symbol(symbol, to, bytes, offset, 0, kind, stream));
}

// Every page is where it is: hints have no effect. Pools: there is one, which keeps nothing.
#if CUDART_VERSION >= 13000
API cudaMemPrefetchAsync(const void *at, size_t bytes, struct cudaMemLocation where, unsigned flags, cudaStream_t stream) {
  return cudaSuccess;
}
API cudaMemAdvise(const void *at, size_t bytes, enum cudaMemoryAdvise advice, struct cudaMemLocation where) { return cudaSuccess; }
#else
API cudaMemPrefetchAsync(const void *at, size_t bytes, int device, cudaStream_t stream) { return cudaSuccess; }
API cudaMemAdvise(const void *at, size_t bytes, enum cudaMemoryAdvise advice, int device) { return cudaSuccess; }
#endif
API cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) { START; ANSWER(cuDeviceGetDefaultMemPool(pool, device)); }
API cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) { START; ANSWER(cuDeviceGetDefaultMemPool(pool, device)); }
API cudaDeviceSetMemPool(int device, cudaMemPool_t pool) { return cudaSuccess; }
API cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *how) { START; ANSWER(cuDeviceGetDefaultMemPool(pool, 0)); }
API cudaMemPoolDestroy(cudaMemPool_t pool) { return cudaSuccess; }
API cudaMemPoolTrimTo(cudaMemPool_t pool, size_t kept) { return cudaSuccess; }
API cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value) { return cudaSuccess; }
API cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *access, size_t count) { return cudaSuccess; }
API cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value) {
  ANSWER(cuMemPoolGetAttribute(pool, (CUmemPool_attribute)attribute, value));
}
EXPORTED struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind kind) {
  return (struct cudaChannelFormatDesc){x, y, z, w, kind};
}
