// A libcublasLt.so.12 or .13: cublasLtMatmul, and the descriptors that it takes. memsim computes the product on the same
// memory. What is not here is a refusal that says its name (memsim/driver/native_build.py).
#include "matrix.h"

#include <cublasLt.h>

struct layout { uint64_t rows, cols; int64_t ld, stride; uint32_t type, order; int32_t batches; uint32_t batch_mode; };
struct product_plan {
  uint64_t bias, aux, scales[4];
  int64_t bias_stride, aux_ld, aux_stride;
  int32_t compute, scale_type, pointers, ops[3], bias_type, aux_type;
  uint32_t epilogue, scale_modes[4];
};
_Static_assert(sizeof(struct layout) <= sizeof(cublasLtMatrixLayoutOpaque_t), "it fits where the program has room for it");
_Static_assert(sizeof(struct product_plan) <= sizeof(cublasLtMatmulDescOpaque_t), "it fits where the program has room for it");

API cublasLtCreate(cublasLtHandle_t *handle) {
  if (memsim_connect()) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = malloc(1);
  return CUBLAS_STATUS_SUCCESS;
}
API cublasLtDestroy(cublasLtHandle_t handle) { return CUBLAS_STATUS_SUCCESS; }  // handles of cuBLAS serve, too
EXPORTED size_t cublasLtGetVersion(void) { return CUBLAS_VERSION; }
API cublasLtGetProperty(libraryPropertyType which, int *value) {
  *value = which == MAJOR_VERSION ? CUBLAS_VER_MAJOR : which == MINOR_VERSION ? CUBLAS_VER_MINOR : CUBLAS_VER_PATCH;
  return CUBLAS_STATUS_SUCCESS;
}

// --- descriptors

static cublasStatus_t put(void *field, size_t size, const void *from, size_t given) {
  if (!from || given < size) return CUBLAS_STATUS_INVALID_VALUE;
  memcpy(field, from, size);
  return CUBLAS_STATUS_SUCCESS;
}
#define PUT(name, field) case name: return put(&(field), sizeof(field), from, size)

static void start_layout(struct layout *made, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld) {
  *made = (struct layout){rows, cols, ld, 0, (uint32_t)type, CUBLASLT_ORDER_COL, 1, 0};
}
API cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size, cudaDataType type, uint64_t rows, uint64_t cols,
                                      int64_t ld) {
  start_layout((struct layout *)layout, type, rows, cols, ld);
  return CUBLAS_STATUS_SUCCESS;
}
API cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld) {
  *layout = calloc(1, sizeof **layout);
  start_layout((struct layout *)*layout, type, rows, cols, ld);
  return CUBLAS_STATUS_SUCCESS;
}
API cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { free(layout); return CUBLAS_STATUS_SUCCESS; }
API cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t which, const void *from, size_t size) {
  struct layout *l = (struct layout *)layout;
  switch ((int)which) {
    PUT(CUBLASLT_MATRIX_LAYOUT_TYPE, l->type);
    PUT(CUBLASLT_MATRIX_LAYOUT_ORDER, l->order);
    PUT(CUBLASLT_MATRIX_LAYOUT_ROWS, l->rows);
    PUT(CUBLASLT_MATRIX_LAYOUT_COLS, l->cols);
    PUT(CUBLASLT_MATRIX_LAYOUT_LD, l->ld);
    PUT(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, l->batches);
    PUT(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, l->stride);
    PUT(8, l->batch_mode);  // CUBLASLT_MATRIX_LAYOUT_BATCH_MODE of CUDA 13
  }
  memsim_refuse("an attribute of cublasLtMatrixLayoutSetAttribute");
  return CUBLAS_STATUS_NOT_SUPPORTED;
}
static void start_operation(struct product_plan *made, cublasComputeType_t compute, cudaDataType scale) {
  *made = (struct product_plan){.compute = (int32_t)compute, .scale_type = (int32_t)scale, .epilogue = CUBLASLT_EPILOGUE_DEFAULT, .bias_type = -1,
                             .aux_type = -1};
}
API cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t operation, size_t size, cublasComputeType_t compute, cudaDataType scale) {
  start_operation((struct product_plan *)operation, compute, scale);
  return CUBLAS_STATUS_SUCCESS;
}
API cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *operation, cublasComputeType_t compute, cudaDataType scale) {
  *operation = calloc(1, sizeof **operation);
  start_operation((struct product_plan *)*operation, compute, scale);
  return CUBLAS_STATUS_SUCCESS;
}
API cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) { free(operation); return CUBLAS_STATUS_SUCCESS; }
API cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t which, const void *from, size_t size) {
  struct product_plan *o = (struct product_plan *)operation;
  switch ((int)which) {
    PUT(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, o->compute);
    PUT(CUBLASLT_MATMUL_DESC_SCALE_TYPE, o->scale_type);
    PUT(CUBLASLT_MATMUL_DESC_POINTER_MODE, o->pointers);
    PUT(CUBLASLT_MATMUL_DESC_TRANSA, o->ops[0]);
    PUT(CUBLASLT_MATMUL_DESC_TRANSB, o->ops[1]);
    PUT(CUBLASLT_MATMUL_DESC_TRANSC, o->ops[2]);
    PUT(CUBLASLT_MATMUL_DESC_EPILOGUE, o->epilogue);
    PUT(CUBLASLT_MATMUL_DESC_BIAS_POINTER, o->bias);
    PUT(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, o->bias_stride);
    PUT(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, o->bias_type);
    PUT(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, o->aux);
    PUT(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, o->aux_ld);
    PUT(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, o->aux_stride);
    PUT(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, o->aux_type);
    PUT(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, o->scales[0]);
    PUT(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, o->scales[1]);
    PUT(CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, o->scales[2]);
    PUT(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, o->scales[3]);
    PUT(31, o->scale_modes[0]);  // CUBLASLT_MATMUL_DESC_A_SCALE_MODE and those after it, since 12.8
    PUT(32, o->scale_modes[1]);
    PUT(33, o->scale_modes[2]);
    PUT(34, o->scale_modes[3]);
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM: case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET: return CUBLAS_STATUS_SUCCESS;
  }
  memsim_refuse("an attribute of cublasLtMatmulDescSetAttribute");
  return CUBLAS_STATUS_NOT_SUPPORTED;
}
API cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference, size_t size) { return CUBLAS_STATUS_SUCCESS; }
API cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *made) { *made = calloc(1, sizeof **made); return CUBLAS_STATUS_SUCCESS; }
API cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) { free(preference); return CUBLAS_STATUS_SUCCESS; }
API cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t which,
                                         const void *from, size_t size) {
  return CUBLAS_STATUS_SUCCESS;
}

// --- the product, for which there is one way

API cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
                                   cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                   cublasLtMatmulPreference_t preference, int wanted, cublasLtMatmulHeuristicResult_t results[],
                                   int *found) {
  if (wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
  memset(results, 0, sizeof *results);
  results->wavesCount = 1;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}
static struct matrix matrix(const void *at, const struct layout *l, int32_t op) {
  return (struct matrix){ADDRESS(at), l->ld, l->stride, l->type, (uint32_t)op, l->order == CUBLASLT_ORDER_ROW, l->batch_mode == 1};
}
API cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void *alpha, const void *A, cublasLtMatrixLayout_t a,
                   const void *B, cublasLtMatrixLayout_t b, const void *beta, const void *C, cublasLtMatrixLayout_t c, void *D,
                   cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t bytes, cudaStream_t stream) {
  const struct product_plan *o = (struct product_plan *)operation;
  const struct layout *la = (struct layout *)a, *lb = (struct layout *)b, *ld = (struct layout *)d;
  const struct layout *lc = c ? (struct layout *)c : ld;
  for (int i = 0; i < 4; i++)
    if ((const struct layout *[]){la, lb, lc, ld}[i]->order > CUBLASLT_ORDER_ROW || (const struct layout *[]){la, lb, lc, ld}[i]->batch_mode > 1) {
      memsim_refuse("cublasLtMatmul of tiled or grouped matrices");
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
  struct product p = {
    .m = (int64_t)ld->rows, .n = (int64_t)ld->cols, .k = (int64_t)(o->ops[0] ? la->rows : la->cols), .batches = (uint32_t)ld->batches,
    .scale_type = (uint32_t)o->scale_type, .a = matrix(A, la, o->ops[0]), .b = matrix(B, lb, o->ops[1]), .c = matrix(C, lc, o->ops[2]),
    .d = matrix(D, ld, 0), .epilogue = o->epilogue, .bias = o->bias, .bias_stride = o->bias_stride,
    .bias_type = o->bias_type < 0 ? ld->type : (uint32_t)o->bias_type, .aux = o->aux, .aux_ld = o->aux_ld, .aux_stride = o->aux_stride,
    .aux_type = o->aux_type < 0 ? ld->type : (uint32_t)o->aux_type};
  memcpy(p.scales, o->scales, sizeof p.scales);
  memcpy(p.scale_modes, o->scale_modes, sizeof p.scale_modes);
  if (la->batches == 1) p.a.stride = 0;
  if (lb->batches == 1) p.b.stride = 0;
  if (o->pointers > CUBLASLT_POINTER_MODE_DEVICE) {  // alpha has an element for each row
    uint64_t at = ADDRESS(alpha);
    p.is_alpha_vector = 1;
    memcpy(p.alpha, &at, sizeof at);
    if (o->pointers == CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO) beta = NULL;
    if (o->pointers == CUBLASLT_POINTER_MODE_DEVICE_VECTOR) {
      memsim_refuse("cublasLtMatmul with a vector for beta");
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
  }
  return multiply(&p, "cublasLtMatmul", alpha, beta, NULL, 0);
}
