// A matrix product as a question to memsim, for the stand-ins of cuBLAS and cuBLASLt. memsim computes it on the
// same memory (memsim/driver/matrix_products.py); no kernel is executed.
#ifndef MEMSIM_MATRIX_H
#define MEMSIM_MATRIX_H
#include "channel.h"

#define CUBLASAPI  // some releases want it before their headers
#include <cublas_api.h>
#include <library_types.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))
#define API EXPORTED cublasStatus_t
#define ADDRESS(pointer) ((uint64_t)(uintptr_t)(pointer))

struct matrix {
  uint64_t at;           // of the first, or of an array of addresses
  int64_t ld, stride;    // in elements; stride: from one of a batch to the next
  uint32_t type, op, is_row_major, is_indirect;  // cudaDataType, cublasOperation_t
};
struct product {         // D = epilogue(alpha op(A) op(B) + beta C)
  char name[32];
  int64_t m, n, k;
  uint32_t batches, scale_type;
  unsigned char alpha[16], beta[16];  // of scale_type
  struct matrix a, b, c, d;
  uint32_t epilogue, bias_type, aux_type, is_alpha_vector;  // cublasLtEpilogue_t
  uint64_t bias, aux, scales[4];      // scales of A, B, C and D
  int64_t bias_stride, aux_ld, aux_stride;
  uint32_t scale_modes[4];
};

static inline size_t bytes_of(uint32_t type) {
  switch (type) {
    case CUDA_R_16F: case CUDA_R_16BF: return 2;
    case CUDA_C_32F: case CUDA_R_64F: return 8;
    case CUDA_C_64F: return 16;
    default: return 4;
  }
}
static inline uint32_t scale_of(cublasComputeType_t compute, uint32_t out) {
  int is_complex = out == CUDA_C_32F || out == CUDA_C_64F;
  switch ((int)compute) {
    case CUBLAS_COMPUTE_16F: case CUBLAS_COMPUTE_16F_PEDANTIC: return CUDA_R_16F;
    case CUBLAS_COMPUTE_32I: case CUBLAS_COMPUTE_32I_PEDANTIC: return CUDA_R_32I;
    case CUBLAS_COMPUTE_64F: case CUBLAS_COMPUTE_64F_PEDANTIC: return is_complex ? CUDA_C_64F : CUDA_R_64F;
    default: return is_complex ? CUDA_C_32F : CUDA_R_32F;
  }
}
// `answer`: takes the product instead of D, whose address is 0 then.
static inline cublasStatus_t multiply(struct product *p, const char *name, const void *alpha, const void *beta, void *answer,
                                      size_t room) {
  if (p->m < 0 || p->n < 0 || p->k < 0 || !alpha) return CUBLAS_STATUS_INVALID_VALUE;
  if (!p->m || !p->n || !p->batches) return CUBLAS_STATUS_SUCCESS;
  strncpy(p->name, name, sizeof p->name - 1);
  if (!p->is_alpha_vector) memcpy(p->alpha, alpha, bytes_of(p->scale_type));
  if (beta) memcpy(p->beta, beta, bytes_of(p->scale_type));
  switch (memsim_ask(OP_PRODUCT, p, sizeof *p, NULL, 0, answer, room, NULL)) {
    case 0: return CUBLAS_STATUS_SUCCESS;
    case 1: return CUBLAS_STATUS_INVALID_VALUE;
    case 801: return CUBLAS_STATUS_NOT_SUPPORTED;
    default: return CUBLAS_STATUS_EXECUTION_FAILED;
  }
}
#endif
