// Modules, functions and launches: the second half of driver.c.

struct function {
  struct function_info info;
  int dynamic_shared;  // as set by the program; -1: not set
  int has_large_clusters;
  char *name;
  struct { uint32_t offset, size; } parameters[];
};

// How many bytes an image takes: a fat binary, an ELF file or PTX text. A fat binary's header has its own size at
// byte 6 and that of what follows at byte 8, as memsim/sass/binary.py reads it.
static size_t size_of_image(const unsigned char *image) {
  uint16_t own, entry, count;
  uint64_t size, end = 0, table;
  if (!memcmp(image, "\x50\xed\x55\xba", 4)) {
    memcpy(&own, image + 6, 2);
    memcpy(&size, image + 8, 8);
    return own + size;
  }
  if (memcmp(image, "\177ELF", 4)) return strlen((const char *)image) + 1;
  for (int which = 0; which < 2; which++) {  // the tables of sections and of segments
    memcpy(&table, image + (which ? 32 : 40), 8);
    memcpy(&entry, image + (which ? 54 : 58), 2);
    memcpy(&count, image + (which ? 56 : 60), 2);
    if (count && table + (uint64_t)entry * count > end) end = table + (uint64_t)entry * count;
    for (uint16_t i = 0; !which && i < count; i++) {
      const unsigned char *section = image + table + (size_t)i * entry;
      uint32_t type;
      uint64_t offset, bytes;
      memcpy(&type, section + 4, 4);
      memcpy(&offset, section + 24, 8);
      memcpy(&bytes, section + 32, 8);
      if (type != 8 && type < 0x70000000 && offset + bytes > end) end = offset + bytes;
    }
  }
  return end;
}

// A module's handle is its number, which is never 0.
static CUresult load_module(void **module, const void *image) {
  READY;
  const struct { int magic, version; const void *data, *rest; } *wrapper = image;  // fatbinary_section.h
  uint32_t number;
  if (!image) return CUDA_ERROR_INVALID_VALUE;
  if (wrapper->magic == 0x466243B1) image = wrapper->data;
  CUresult result = (CUresult)memsim_ask(OP_MODULE, image, size_of_image(image), NULL, 0, &number, 4, NULL);
  if (!result) *module = HOST(number);
  return result;
}
static CUresult load_file(void **module, const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  fseek(file, 0, SEEK_END);
  size_t size = (size_t)ftell(file);
  rewind(file);
  char *image = calloc(1, size + 64);
  size = fread(image, 1, size, file);
  fclose(file);
  CUresult result = load_module(module, image);
  free(image);
  return result;
}
static CUresult unload_module(void *module) {
  READY;
  uint32_t number = (uint32_t)(uintptr_t)module;
  CUresult result = (CUresult)memsim_ask(OP_UNLOAD, &number, 4, NULL, 0, NULL, 0, NULL);
  forget_ranges();
  return result;
}
static CUresult find_function(void **found, void *module, const char *name) {
  READY;
  static __thread char answer[sizeof(struct function_info) + 8 * 4096];
  uint32_t number = (uint32_t)(uintptr_t)module;
  size_t got;
  CUresult result = (CUresult)memsim_ask(OP_FUNCTION, &number, 4, name, strlen(name), answer, sizeof answer, &got);
  if (result) return result;
  size_t rest = got - sizeof(struct function_info);
  struct function *made = calloc(1, sizeof *made + rest);
  memcpy(&made->info, answer, sizeof made->info);
  memcpy(made->parameters, answer + sizeof made->info, rest);
  made->dynamic_shared = -1;
  made->name = strdup(name);
  *found = made;
  return OK;
}
static CUresult find_variable(CUdeviceptr *address, size_t *bytes, void *module, const char *name) {
  READY;
  uint32_t number = (uint32_t)(uintptr_t)module;
  uint64_t answer[2];
  CUresult result = (CUresult)memsim_ask(OP_VARIABLE, &number, 4, name, strlen(name), answer, sizeof answer, NULL);
  if (result) return result;
  if (address) *address = answer[0];
  if (bytes) *bytes = answer[1];
  return OK;
}
API cuModuleLoad(CUmodule *module, const char *path) { return load_file((void **)module, path); }
API cuModuleLoadData(CUmodule *module, const void *image) { return load_module((void **)module, image); }
API cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n, CUjit_option *options, void **values) {
  return load_module((void **)module, image);
}
API cuModuleLoadFatBinary(CUmodule *module, const void *image) { return load_module((void **)module, image); }
API cuModuleUnload(CUmodule module) { return unload_module(module); }
API cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) { *mode = CU_MODULE_EAGER_LOADING; return OK; }
API cuModuleGetFunction(CUfunction *f, CUmodule module, const char *name) { return find_function((void **)f, module, name); }
API cuModuleGetGlobal(CUdeviceptr *at, size_t *bytes, CUmodule m, const char *name) { return find_variable(at, bytes, m, name); }
API cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *jit, void **jit_values, unsigned jits,
                      CUlibraryOption *options, void **values, unsigned count) {
  return load_module((void **)library, image);
}
API cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit, void **jit_values, unsigned jits,
                          CUlibraryOption *options, void **values, unsigned count) {
  return load_file((void **)library, path);
}
API cuLibraryUnload(CUlibrary library) { return unload_module(library); }
API cuLibraryGetKernel(CUkernel *k, CUlibrary library, const char *name) { return find_function((void **)k, library, name); }
API cuLibraryGetModule(CUmodule *module, CUlibrary library) { *module = (CUmodule)library; return OK; }
API cuLibraryGetGlobal(CUdeviceptr *at, size_t *bytes, CUlibrary l, const char *name) { return find_variable(at, bytes, l, name); }
API cuLibraryGetManaged(CUdeviceptr *at, size_t *bytes, CUlibrary l, const char *name) { return find_variable(at, bytes, l, name); }
API cuKernelGetFunction(CUfunction *f, CUkernel kernel) { *f = (CUfunction)kernel; return OK; }

static CUresult get_attribute(int *value, int which, struct function *f) {
  if (!f) return CUDA_ERROR_INVALID_HANDLE;
  *value = which < FUNCTION_ATTRIBUTES ? f->info.attributes[which] : 0;
  if (which == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) *value = f->has_large_clusters;
  if (which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && f->dynamic_shared >= 0) *value = f->dynamic_shared;
  return OK;
}
static CUresult set_attribute(struct function *f, int which, int value) {
  int most, shared;
  if (!f) return CUDA_ERROR_INVALID_HANDLE;
  if (which == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT || which == CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
    return OK;  // hints
  if (which == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
    f->has_large_clusters = value != 0;
    return OK;
  }
  if (which != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_ERROR_INVALID_VALUE;
  cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0);
  get_attribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f);
  if (value < 0 || value > most - shared) return CUDA_ERROR_INVALID_VALUE;
  f->dynamic_shared = value;
  return OK;
}
API cuFuncGetAttribute(int *value, CUfunction_attribute a, CUfunction f) { return get_attribute(value, a, (void *)f); }
API cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int value) { return set_attribute((void *)f, a, value); }
API cuKernelGetAttribute(int *value, CUfunction_attribute a, CUkernel k, CUdevice d) { return get_attribute(value, a, (void *)k); }
API cuKernelSetAttribute(CUfunction_attribute a, int value, CUkernel k, CUdevice d) { return set_attribute((void *)k, a, value); }
API cuFuncSetCacheConfig(CUfunction f, CUfunc_cache config) { return OK; }
API cuKernelSetCacheConfig(CUkernel k, CUfunc_cache config, CUdevice device) { return OK; }
API cuFuncSetSharedMemConfig(CUfunction f, CUsharedconfig config) { return OK; }
API cuFuncGetModule(CUmodule *module, CUfunction f) { return CUDA_ERROR_NOT_SUPPORTED; }
#if CUDA_VERSION >= 12040
static CUresult parameter(struct function *f, size_t i, size_t *offset, size_t *size) {
  if (!f || i >= f->info.parameters) return CUDA_ERROR_INVALID_VALUE;
  *offset = f->parameters[i].offset;
  if (size) *size = f->parameters[i].size;
  return OK;
}
API cuFuncGetName(const char **name, CUfunction f) { *name = ((struct function *)f)->name; return OK; }
API cuKernelGetName(const char **name, CUkernel k) { *name = ((struct function *)k)->name; return OK; }
API cuFuncGetParamInfo(CUfunction f, size_t i, size_t *offset, size_t *size) { return parameter((void *)f, i, offset, size); }
API cuKernelGetParamInfo(CUkernel k, size_t i, size_t *offset, size_t *size) { return parameter((void *)k, i, offset, size); }
API cuFuncLoad(CUfunction f) { return OK; }
API cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction f) { *state = CU_FUNCTION_LOADING_STATE_LOADED; return OK; }
#endif

static CUresult resident_blocks(int *blocks, void *f, int threads, size_t shared) {
  READY;
  if (!f || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  struct { uint32_t function, threads; uint64_t shared; } question = {((struct function *)f)->info.number, (uint32_t)threads, shared};
  return (CUresult)memsim_ask(OP_OCCUPANCY, &question, sizeof question, NULL, 0, blocks, 4, NULL);
}
API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction f, int threads, size_t shared) {
  return resident_blocks(blocks, f, threads, shared);
}
API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction f, int threads, size_t shared, unsigned flags) {
  return resident_blocks(blocks, f, threads, shared);
}
API cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction f, CUoccupancyB2DSize shared_of, size_t shared,
                                              int limit, unsigned flags) {
  int best = 0, most = 0, blocks, multiprocessors;
  if (get_attribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, (void *)f)) return CUDA_ERROR_INVALID_HANDLE;
  cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
  if (limit > 0 && limit < most) most = limit;
  for (int threads = most; threads > 0; threads = (threads - 1) / 32 * 32) {
    CUresult failed = resident_blocks(&blocks, f, threads, shared_of ? shared_of(threads) : shared);
    if (failed) return failed;
    if (blocks * threads <= best) continue;
    best = blocks * threads;
    *block = threads;
    *grid = blocks * multiprocessors;
  }
  return best ? OK : CUDA_ERROR_INVALID_VALUE;
}
API cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction f, CUoccupancyB2DSize shared_of, size_t shared, int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, f, shared_of, shared, limit, 0);
}

// The bytes of a launch's parameters, which the caller frees.
static CUresult pack_launch(struct launch *how, struct function *f, void **values, void **extra, char **packed) {
  READY;
  if (!f) return CUDA_ERROR_INVALID_HANDLE;
  int most;
  get_attribute(&most, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f);
  if (how->shared > (uint32_t)most) return CUDA_ERROR_INVALID_VALUE;
  how->function = f->info.number;
  if (f->has_large_clusters) how->flags |= LARGE_CLUSTERS;
  char *bytes = *packed = calloc(1, f->info.bytes + 1);
  if (values)
    for (uint32_t i = 0; i < f->info.parameters; i++)
      memcpy(bytes + f->parameters[i].offset, values[i], f->parameters[i].size);
  else if (extra) {
    const void *from = NULL;
    size_t size = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
      if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) from = extra[1];
      if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *(size_t *)extra[1];
    }
    if (from) memcpy(bytes, from, size < f->info.bytes ? size : f->info.bytes);
  }
  return OK;
}
static CUresult send_launch(const struct launch *how, struct function *f, const char *bytes) {
  struct launch now = *how;
  fflush(stdout);  // what a kernel prints comes after what the program has printed
  pthread_mutex_lock(&launching);  // what was written comes with the first launch after it
  pthread_mutex_lock(&writing);
  memcpy(now.written, written, sizeof written);
  memset(written, 0, sizeof written);
  pthread_mutex_unlock(&writing);
  CUresult result = (CUresult)memsim_ask(OP_LAUNCH, &now, sizeof now, bytes, f->info.bytes, NULL, 0, NULL);
  pthread_mutex_unlock(&launching);
  if (result >= CUDA_ERROR_ILLEGAL_ADDRESS && result != CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES &&
      result != CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE && result <= CUDA_ERROR_LAUNCH_FAILED)
    broken = result;
  return result;
}
static CUresult capture_launch(struct graph *graph, const struct launch *how, struct function *f, char *bytes);
static CUresult launch(struct launch *how, struct function *f, void **values, void **extra, CUstream stream) {
  char *bytes;
  CUresult result = pack_launch(how, f, values, extra, &bytes);
  if (result) return result;
  struct graph *graph = captured_by(stream);
  if (graph) return capture_launch(graph, how, f, bytes);
  result = send_launch(how, f, bytes);
  free(bytes);
  return result;
}
API cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   CUstream stream, void **values, void **extra) {
  struct launch how = {0, {gx, gy, gz}, {bx, by, bz}, shared, {0, 0, 0}, 0};
  return launch(&how, (void *)f, values, extra, stream);
}
API cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                              unsigned shared, CUstream stream, void **values) {
  struct launch how = {0, {gx, gy, gz}, {bx, by, bz}, shared, {0, 0, 0}, COOPERATIVE};
  return launch(&how, (void *)f, values, NULL, stream);
}
API cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **values, void **extra) {
  struct launch how = {0, {c->gridDimX, c->gridDimY, c->gridDimZ}, {c->blockDimX, c->blockDimY, c->blockDimZ}, c->sharedMemBytes,
                       {0, 0, 0}, 0};
  for (unsigned i = 0; i < c->numAttrs; i++) {
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) memcpy(how.cluster, &c->attrs[i].value.clusterDim, 12);
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && c->attrs[i].value.cooperative) how.flags |= COOPERATIVE;
  }
  return launch(&how, (void *)f, values, extra, c->hStream);
}
