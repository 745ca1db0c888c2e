// Products of matrices whose numbers the lanes of a warp hold, by the rules of memsim/isa/matrix.py.
#pragma once
#include <string.h>

#include "numbers.h"
#include "warp_groups.h"

enum { COLUMNS = 8, B_AT = 512, C_AT = 768, D_AT = 896 };  // in Machine.matrix; A is before B, [rows][k]; B is [k][COLUMNS]

static void fused_products(double *matrix, int rows, int k) {
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < COLUMNS; c++) {
      double total = matrix[C_AT + r * COLUMNS + c];
      for (int i = 0; i < k; i++) total = __builtin_fma(matrix[r * k + i], matrix[B_AT + i * COLUMNS + c], total);
      matrix[D_AT + r * COLUMNS + c] = total;
    }
}

#define EACH_RESULT for (int r = 0; r < rows; r++) for (int c = 0, at = r * COLUMNS; c < COLUMNS; c++, at++)

// Each term is cut so many bits below the largest exponent; the sum is then exact in any order.
static void cut_products(double *matrix, int rows, int k, int bits) {
  const double *b = matrix + B_AT, *addends = matrix + C_AT;
  int32_t exponents[D_AT], *top = exponents + C_AT;
  double scales[D_AT - C_AT], *total = matrix + D_AT;
  for (int i = 0; i < D_AT; i++) exponents[i] = matrix[i] == 0 ? -10000 : exponent_of(matrix[i]) - 1;
  for (int i = 0; i < k; i++)
    EACH_RESULT {
      int32_t both = exponents[r * k + i] + exponents[B_AT + i * COLUMNS + c];
      top[at] = both > top[at] ? both : top[at];
    }
  EACH_RESULT {
    top[at] = (top[at] > -900 ? top[at] : -900) - bits;
    scales[at] = power_of_2(-top[at]), total[at] = trunc(addends[at] * scales[at]) + 0.0;  // a zero is +0
  }
  for (int i = 0; i < k; i++)
    EACH_RESULT total[at] += trunc(matrix[r * k + i] * b[i * COLUMNS + c] * scales[at]);
  EACH_RESULT total[at] *= power_of_2(top[at]);
}
