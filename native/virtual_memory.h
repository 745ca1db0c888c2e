// Virtual memory management: a part of driver.c. A range that is reserved is addresses only; memory that is made
// counts from then on, and lies where it is mapped, at one place at a time. memsim knows what is mapped.

#define GRANULARITY ((size_t)2 << 20)
struct physical { size_t bytes; CUmemAllocationProp how; unsigned holders; void *kept; CUdeviceptr at; struct physical *next; };
static struct physical *mapped;
static pthread_mutex_t one_mapper = PTHREAD_MUTEX_INITIALIZER;

static CUresult virtually(enum virtual_step step, uint64_t at, uint64_t bytes, uint64_t *answer) {
  READY;
  uint64_t question[3] = {step, at, bytes}, unused;
  CUresult result = (CUresult)memsim_ask(OP_VIRTUAL, question, sizeof question, NULL, 0, answer ? answer : &unused, 8, NULL);
  forget_ranges();
  return result;
}
static int is_uneven(size_t bytes) { return !bytes || bytes % GRANULARITY; }

API cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *how, CUmemAllocationGranularity_flags option) {
  *bytes = GRANULARITY;
  return how->location.type == CU_MEM_LOCATION_TYPE_DEVICE && how->location.id ? CUDA_ERROR_INVALID_DEVICE : OK;
}
API cuMemAddressReserve(CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr wish, unsigned long long flags) {
  return is_uneven(bytes) || flags || alignment > GRANULARITY ? CUDA_ERROR_INVALID_VALUE
                                                              : virtually(RESERVE, 0, bytes, (uint64_t *)at);
}
API cuMemAddressFree(CUdeviceptr at, size_t bytes) { return virtually(GIVE_UP, at, bytes, NULL); }

API cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *how, unsigned long long flags) {
  if (is_uneven(bytes) || flags || how->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (how->requestedHandleTypes) return CUDA_ERROR_NOT_SUPPORTED;
  if (how->location.type != CU_MEM_LOCATION_TYPE_DEVICE || how->location.id) return CUDA_ERROR_INVALID_DEVICE;
  CUresult failed = virtually(TAKE, 0, bytes, NULL);
  if (failed) return failed;
  struct physical *made = malloc(sizeof *made);
  *made = (struct physical){.bytes = bytes, .how = *how, .holders = 1};
  *handle = (CUmemGenericAllocationHandle)(uintptr_t)made;
  return OK;
}
static CUresult let_go(struct physical *memory) {
  if (--memory->holders) return OK;
  CUresult result = virtually(GIVE_BACK, 0, memory->bytes, NULL);
  free(memory->kept);
  free(memory);
  return result;
}
static CUresult map_memory(CUdeviceptr at, size_t bytes, struct physical *memory) {
  if (memory->at) return (CUresult)memsim_refuse("cuMemMap of memory that is mapped already");
  CUresult failed = bytes != memory->bytes ? CUDA_ERROR_INVALID_VALUE : virtually(MAP, at, bytes, NULL);
  if (failed) return failed;
  if (memory->kept) memcpy(HOST(at), memory->kept, bytes);
  free(memory->kept);
  memory->kept = NULL;
  memory->at = at;
  memory->next = mapped;
  mapped = memory;
  memory->holders++;
  has_written(HOST(at), bytes);
  return OK;
}
static CUresult unmap_memory(CUdeviceptr at, size_t bytes) {
  CUresult result = CUDA_ERROR_INVALID_VALUE;  // nothing is mapped there
  for (struct physical **link = &mapped, *memory; (memory = *link);) {
    if (memory->at < at || memory->at + memory->bytes > at + bytes) { link = &memory->next; continue; }
    if (memory->holders > 1 && (memory->kept = malloc(memory->bytes))) memcpy(memory->kept, HOST(memory->at), memory->bytes);
    result = virtually(UNMAP, memory->at, memory->bytes, NULL);
    if (result) return result;
    *link = memory->next;
    memory->at = 0;
    let_go(memory);
  }
  return result;
}
#define ALONE(call) do { \
    pthread_mutex_lock(&one_mapper); CUresult result = call; pthread_mutex_unlock(&one_mapper); return result; \
  } while (0)
#define MEMORY(handle) ((struct physical *)(uintptr_t)(handle))
API cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *how, CUmemGenericAllocationHandle handle) {
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  *how = MEMORY(handle)->how;
  return OK;
}
API cuMemRelease(CUmemGenericAllocationHandle handle) {
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  ALONE(let_go(MEMORY(handle)));
}
API cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags) {
  if (!handle || offset || flags) return CUDA_ERROR_INVALID_VALUE;
  ALONE(map_memory(at, bytes, MEMORY(handle)));
}
API cuMemUnmap(CUdeviceptr at, size_t bytes) { ALONE(unmap_memory(at, bytes)); }
API cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *who, size_t count) {
  struct range found;
  CUresult failed = range_of(at, &found);
  return failed || at + bytes > found.start + found.bytes ? CUDA_ERROR_INVALID_VALUE : OK;  // there is one device
}
API cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr at) {
  struct range found;
  *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return range_of(at, &found);
}
