// A program that manages virtual memory itself.
#include <cuda.h>
#include <cstdio>

#define CHECK(call) do { int found = (call); if (found) { printf("line %d: %d\n", __LINE__, found); return 1; } } while (0)
#define FAILS(code, call) do { int found = (call); if (found != (code)) { printf("line %d: %d\n", __LINE__, found); return 1; } } while (0)

__global__ void fill(int *a, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) a[i] = 3 * i;
}

int main() {
  const size_t piece = 2 << 20, words = piece / 4;
  CUmemAllocationProp how = {}, told;
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle one, two, none;
  CUdeviceptr range, other, start;
  size_t granularity, before, now, total, size;
  int back[2];
  CHECK(cudaFree(0));
  how.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  how.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CHECK(cuMemGetAllocationGranularity(&granularity, &how, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CHECK(granularity != piece);
  CHECK(cuMemGetInfo(&before, &total));
  CHECK(cuMemAddressReserve(&range, (total + total / 8) / piece * piece, 0, 0, 0));  // more than there is memory
  CHECK(cuMemAddressReserve(&other, piece, 0, 0, 0));
  CHECK(cuMemGetInfo(&now, &total));
  CHECK(now != before);  // addresses are no memory
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&none, piece / 2, &how, 0));
  FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&none, (total + total / 8) / piece * piece, &how, 0));
  how.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
  CHECK(cuMemCreate(&one, piece, &how, 0));
  CHECK(cuMemGetAllocationPropertiesFromHandle(&told, one));
  CHECK(told.allocFlags.compressionType != CU_MEM_ALLOCATION_COMP_GENERIC || told.type != how.type);
  CHECK(cuMemCreate(&two, piece, &how, 0));
  CHECK(cuMemGetInfo(&now, &total));
  CHECK(now != before - 2 * piece);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(range, piece, &access, 1));
  CHECK(cuMemMap(range + piece, piece, 0, two, 0));
  CHECK(cuMemMap(range, piece, 0, one, 0));
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuMemMap(other, piece, 0, two, 0));
  CHECK(cuMemSetAccess(range, 2 * piece, &access, 1));
  CHECK(cuMemRelease(two));  // it lives as long as it is mapped

  fill<<<1, 1024>>>((int *)range, 2 * words);  // across both
  CHECK(cudaDeviceSynchronize());
  CHECK(cuMemcpyDtoH(back, range + piece - 4, 8));
  CHECK(back[0] != 3 * (int)(words - 1) || back[1] != 3 * (int)words);
  CHECK(cuMemGetAddressRange(&start, &size, range + piece));
  CHECK(start != range || size != 2 * piece);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree(range));

  CHECK(cuMemUnmap(range, piece));
  CHECK(cuMemMap(other, piece, 0, one, 0));  // with what is in it
  CHECK(cuMemRelease(one));
  CHECK(cuMemcpyDtoH(back, other + 40, 4));
  CHECK(back[0] != 30);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(other, piece));
  CHECK(cuMemUnmap(other, piece));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(other, piece));
  CHECK(cuMemAddressFree(other, piece));
  CHECK(cuMemGetInfo(&now, &total));
  CHECK(now != before - piece);

  fill<<<1, 32>>>((int *)(range + piece), words + 1);  // past the end of what is mapped
  FAILS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  printf("virtual memory: PASSED\n");
  return 0;
}
