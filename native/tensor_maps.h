// Tensor maps: a part of driver.c. memsim writes their bits.

API cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                           const cuuint64_t *extents, const cuuint64_t *steps, const cuuint32_t *box,
                           const cuuint32_t *element_steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                           CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  READY;
  if (!map || !extents || !box || !element_steps || rank < 1 || rank > 5 || (rank > 1 && !steps)) return CUDA_ERROR_INVALID_VALUE;
  struct tensor_map asked = {.address = (uint64_t)(uintptr_t)address, .type = type, .rank = rank, .interleave = interleave,
                             .swizzle = swizzle, .fill = fill};
  for (cuuint32_t i = 0; i < rank; i++) {
    asked.extents[i] = extents[i];
    asked.box[i] = box[i];
    asked.element_steps[i] = element_steps[i];
    if (i + 1 < rank) asked.steps[i] = steps[i];
  }
  return (CUresult)memsim_ask(OP_TENSOR_MAP, &asked, sizeof asked, NULL, 0, map, sizeof *map, NULL);
}
API cuTensorMapReplaceAddress(CUtensorMap *map, void *address) {
  READY;
  uint64_t at = (uint64_t)(uintptr_t)address;
  if (!map) return CUDA_ERROR_INVALID_VALUE;
  CUtensorMap old = *map;
  return (CUresult)memsim_ask(OP_TENSOR_MAP, &at, sizeof at, &old, sizeof old, map, sizeof *map, NULL);
}
