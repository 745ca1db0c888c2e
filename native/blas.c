// A libcublas.so.12 or .13: products of matrices and vectors, which memsim computes on the same memory. What is not
// here is a refusal that says its name (memsim/driver/native_build.py).
#include "matrix.h"

struct cublasContext { cudaStream_t stream; cublasPointerMode_t pointers; cublasMath_t math; cublasAtomicsMode_t atomics; };

API cublasCreate_v2(cublasHandle_t *handle) {
  if (memsim_connect()) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = calloc(1, sizeof **handle);
  return CUBLAS_STATUS_SUCCESS;
}
API cublasDestroy_v2(cublasHandle_t handle) { free(handle); return CUBLAS_STATUS_SUCCESS; }
API cublasGetVersion_v2(cublasHandle_t handle, int *version) { *version = CUBLAS_VERSION; return CUBLAS_STATUS_SUCCESS; }
API cublasGetProperty(libraryPropertyType which, int *value) {
  *value = which == MAJOR_VERSION ? CUBLAS_VER_MAJOR : which == MINOR_VERSION ? CUBLAS_VER_MINOR : CUBLAS_VER_PATCH;
  return CUBLAS_STATUS_SUCCESS;
}
API cublasSetWorkspace_v2(cublasHandle_t handle, void *at, size_t bytes) { return CUBLAS_STATUS_SUCCESS; }
API cublasSetSmCountTarget(cublasHandle_t handle, int count) { return CUBLAS_STATUS_SUCCESS; }
#define FIELD(name, type, field) \
  API cublasSet##name(cublasHandle_t handle, type value) { handle->field = value; return CUBLAS_STATUS_SUCCESS; } \
  API cublasGet##name(cublasHandle_t handle, type *value) { *value = handle->field; return CUBLAS_STATUS_SUCCESS; }
FIELD(Stream_v2, cudaStream_t, stream)
FIELD(PointerMode_v2, cublasPointerMode_t, pointers)
FIELD(MathMode, cublasMath_t, math)
FIELD(AtomicsMode, cublasAtomicsMode_t, atomics)
static const char *const status_names[] = {
  [CUBLAS_STATUS_SUCCESS] = "CUBLAS_STATUS_SUCCESS", [CUBLAS_STATUS_NOT_INITIALIZED] = "CUBLAS_STATUS_NOT_INITIALIZED",
  [CUBLAS_STATUS_INVALID_VALUE] = "CUBLAS_STATUS_INVALID_VALUE", [CUBLAS_STATUS_EXECUTION_FAILED] = "CUBLAS_STATUS_EXECUTION_FAILED",
  [CUBLAS_STATUS_NOT_SUPPORTED] = "CUBLAS_STATUS_NOT_SUPPORTED"};
EXPORTED const char *cublasGetStatusName(cublasStatus_t status) {
  const char *name = (unsigned)status < sizeof status_names / sizeof *status_names ? status_names[status] : NULL;
  return name ? name : "unknown status";
}
EXPORTED const char *cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }

// --- products of matrices, column by column

static struct matrix plain(const void *at, uint32_t type, int64_t ld, int64_t stride, cublasOperation_t op) {
  return (struct matrix){ADDRESS(at), ld, stride, type, (uint32_t)op, 0, 0};
}
static struct product gemm(cublasOperation_t ta, cublasOperation_t tb, int64_t m, int64_t n, int64_t k, uint32_t scale, struct matrix a,
                           struct matrix b, struct matrix c, uint32_t batches) {
  a.op = (uint32_t)ta;
  b.op = (uint32_t)tb;
  return (struct product){.m = m, .n = n, .k = k, .batches = batches, .scale_type = scale, .a = a, .b = b, .c = c, .d = c, .epilogue = 1};
}
static struct product indirect(struct product p) {
  p.a.is_indirect = p.b.is_indirect = p.c.is_indirect = p.d.is_indirect = 1;
  return p;
}
#define GEMM(L, T, TYPE, INT, SUFFIX) \
  API cublas##L##SUFFIX(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, INT m, INT n, INT k, const T *alpha, \
                        const T *a, INT lda, const T *b, INT ldb, const T *beta, T *c, INT ldc) { \
    struct product p = gemm(ta, tb, m, n, k, TYPE, plain(a, TYPE, lda, 0, 0), plain(b, TYPE, ldb, 0, 0), plain(c, TYPE, ldc, 0, 0), 1); \
    return multiply(&p, "cublas" #L, alpha, beta, NULL, 0); \
  }
#define GEMM_OF_A_BATCH(L, T, TYPE, INT, SUFFIX) \
  API cublas##L##StridedBatched##SUFFIX(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, INT m, INT n, INT k, \
      const T *alpha, const T *a, INT lda, long long int sa, const T *b, INT ldb, long long int sb, const T *beta, T *c, INT ldc, \
      long long int sc, INT count) { \
    struct product p = gemm(ta, tb, m, n, k, TYPE, plain(a, TYPE, lda, sa, 0), plain(b, TYPE, ldb, sb, 0), plain(c, TYPE, ldc, sc, 0), \
                            (uint32_t)count); \
    return multiply(&p, "cublas" #L "StridedBatched", alpha, beta, NULL, 0); \
  } \
  API cublas##L##Batched##SUFFIX(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, INT m, INT n, INT k, const T *alpha, \
      const T *const *a, INT lda, const T *const *b, INT ldb, const T *beta, T *const *c, INT ldc, INT count) { \
    struct product p = indirect(gemm(ta, tb, m, n, k, TYPE, plain(a, TYPE, lda, 0, 0), plain(b, TYPE, ldb, 0, 0), \
                                     plain(c, TYPE, ldc, 0, 0), (uint32_t)count)); \
    return multiply(&p, "cublas" #L "Batched", alpha, beta, NULL, 0); \
  }
#define GEMV(L, T, TYPE, INT, SUFFIX) \
  API cublas##L##SUFFIX(cublasHandle_t h, cublasOperation_t t, INT m, INT n, const T *alpha, const T *a, INT lda, const T *x, INT ix, \
                        const T *beta, T *y, INT iy) { \
    return gemv("cublas" #L, t, m, n, alpha, plain(a, TYPE, lda, 0, 0), plain(x, TYPE, ix, 0, 0), beta, plain(y, TYPE, iy, 0, 0)); \
  }
static cublasStatus_t gemv(const char *name, cublasOperation_t t, int64_t m, int64_t n, const void *alpha, struct matrix a, struct matrix x,
                           const void *beta, struct matrix y) {
  if (x.ld < 1 || y.ld < 1) return (cublasStatus_t)(memsim_refuse("a vector of cuBLAS with a negative increment"), CUBLAS_STATUS_NOT_SUPPORTED);
  x.is_row_major = y.is_row_major = 1;  // a column whose elements are `ld` apart
  struct product p = gemm(t, CUBLAS_OP_N, t ? n : m, 1, t ? m : n, a.type, a, x, y, 1);
  return multiply(&p, name, alpha, beta, NULL, 0);
}
#define ALL(LETTER, T, TYPE) \
  GEMM(LETTER##gemm, T, TYPE, int, _v2) GEMM(LETTER##gemm, T, TYPE, int64_t, _v2_64) \
  GEMM_OF_A_BATCH(LETTER##gemm, T, TYPE, int, ) GEMM_OF_A_BATCH(LETTER##gemm, T, TYPE, int64_t, _64) \
  GEMV(LETTER##gemv, T, TYPE, int, _v2) GEMV(LETTER##gemv, T, TYPE, int64_t, _v2_64)
ALL(S, float, CUDA_R_32F)
ALL(D, double, CUDA_R_64F)
ALL(C, cuComplex, CUDA_C_32F)
ALL(Z, cuDoubleComplex, CUDA_C_64F)
#ifdef __cplusplus
#error "the header declares __half for C++ only"
#endif
struct half_bits { unsigned short bits; };
GEMM(Hgemm, struct half_bits, CUDA_R_16F, int, )
GEMM_OF_A_BATCH(Hgemm, struct half_bits, CUDA_R_16F, int, )

API cublasSgemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const float *alpha, const void *a,
                  cudaDataType at, int lda, const void *b, cudaDataType bt, int ldb, const float *beta, void *c, cudaDataType ct, int ldc) {
  struct product p = gemm(ta, tb, m, n, k, CUDA_R_32F, plain(a, at, lda, 0, 0), plain(b, bt, ldb, 0, 0), plain(c, ct, ldc, 0, 0), 1);
  return multiply(&p, "cublasSgemmEx", alpha, beta, NULL, 0);
}
#define GEMM_EX(INT, SUFFIX) \
  API cublasGemmEx##SUFFIX(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, INT m, INT n, INT k, const void *alpha, \
      const void *a, cudaDataType at, INT lda, const void *b, cudaDataType bt, INT ldb, const void *beta, void *c, cudaDataType ct, \
      INT ldc, cublasComputeType_t compute, cublasGemmAlgo_t algorithm) { \
    struct product p = gemm(ta, tb, m, n, k, scale_of(compute, ct), plain(a, at, lda, 0, 0), plain(b, bt, ldb, 0, 0), \
                            plain(c, ct, ldc, 0, 0), 1); \
    return multiply(&p, "cublasGemmEx", alpha, beta, NULL, 0); \
  } \
  API cublasGemmStridedBatchedEx##SUFFIX(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, INT m, INT n, INT k, \
      const void *alpha, const void *a, cudaDataType at, INT lda, long long int sa, const void *b, cudaDataType bt, INT ldb, \
      long long int sb, const void *beta, void *c, cudaDataType ct, INT ldc, long long int sc, INT count, cublasComputeType_t compute, \
      cublasGemmAlgo_t algorithm) { \
    struct product p = gemm(ta, tb, m, n, k, scale_of(compute, ct), plain(a, at, lda, sa, 0), plain(b, bt, ldb, sb, 0), \
                            plain(c, ct, ldc, sc, 0), (uint32_t)count); \
    return multiply(&p, "cublasGemmStridedBatchedEx", alpha, beta, NULL, 0); \
  } \
  API cublasGemmBatchedEx##SUFFIX(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, INT m, INT n, INT k, \
      const void *alpha, const void *const a[], cudaDataType at, INT lda, const void *const b[], cudaDataType bt, INT ldb, \
      const void *beta, void *const c[], cudaDataType ct, INT ldc, INT count, cublasComputeType_t compute, cublasGemmAlgo_t algorithm) { \
    struct product p = indirect(gemm(ta, tb, m, n, k, scale_of(compute, ct), plain(a, at, lda, 0, 0), plain(b, bt, ldb, 0, 0), \
                                     plain(c, ct, ldc, 0, 0), (uint32_t)count)); \
    return multiply(&p, "cublasGemmBatchedEx", alpha, beta, NULL, 0); \
  }
GEMM_EX(int, )
GEMM_EX(int64_t, _64)

// --- products of vectors; the result is the program's, or the device's

static cublasStatus_t dot(cublasHandle_t h, const char *name, int64_t n, struct matrix x, struct matrix y, void *out, uint32_t type,
                          uint32_t compute, cublasOperation_t op) {
  static const double one[2] = {1, 0};
  static const float one_float[2] = {1, 0};
  if (x.ld < 1 || y.ld < 1) return (cublasStatus_t)(memsim_refuse("a vector of cuBLAS with a negative increment"), CUBLAS_STATUS_NOT_SUPPORTED);
  x.is_row_major = y.is_row_major = 1;
  struct matrix d = plain(h->pointers == CUBLAS_POINTER_MODE_HOST ? NULL : out, type, 1, 0, 0);
  struct product p = gemm(op, CUBLAS_OP_N, 1, 1, n, compute, x, y, d, 1);
  int is_double = compute == CUDA_R_64F || compute == CUDA_C_64F;
  return multiply(&p, name, is_double ? (const void *)one : one_float, NULL, out, d.at ? 0 : bytes_of(type));
}
#define DOT(L, T, TYPE, OP) \
  API cublas##L##_v2(cublasHandle_t h, int n, const T *x, int ix, const T *y, int iy, T *out) { \
    return dot(h, "cublas" #L, n, plain(x, TYPE, ix, 0, 0), plain(y, TYPE, iy, 0, 0), out, TYPE, TYPE, OP); \
  }
DOT(Sdot, float, CUDA_R_32F, CUBLAS_OP_T)
DOT(Ddot, double, CUDA_R_64F, CUBLAS_OP_T)
DOT(Cdotu, cuComplex, CUDA_C_32F, CUBLAS_OP_T)
DOT(Cdotc, cuComplex, CUDA_C_32F, CUBLAS_OP_C)
DOT(Zdotu, cuDoubleComplex, CUDA_C_64F, CUBLAS_OP_T)
DOT(Zdotc, cuDoubleComplex, CUDA_C_64F, CUBLAS_OP_C)
API cublasDotEx(cublasHandle_t h, int n, const void *x, cudaDataType xt, int ix, const void *y, cudaDataType yt, int iy, void *out,
                cudaDataType type, cudaDataType compute) {
  return dot(h, "cublasDotEx", n, plain(x, xt, ix, 0, 0), plain(y, yt, iy, 0, 0), out, type, compute, CUBLAS_OP_T);
}
