// The operations of vectors.h as functions of the bits of one lane, for stretches of them that are compiled together
// (memsim/interpreter/compiled_stretches.py).
#pragma once
#include <math.h>
#include <string.h>

#include "interpreter.h"
#include "numbers.h"
#include "vectors.h"

typedef uint32_t __attribute__((may_alias)) Word;
typedef uint64_t __attribute__((may_alias)) Long;

#define BITS_w uint32_t
#define BITS_i uint32_t
#define BITS_f uint32_t
#define BITS_W uint64_t
#define BITS_I uint64_t
#define BITS_d uint64_t
#define TYPE_w uint32_t
#define TYPE_i int32_t
#define TYPE_f float
#define TYPE_W uint64_t
#define TYPE_I int64_t
#define TYPE_d double
#define AS(type, bits) ({ __auto_type bits_ = bits; TYPE_##type as_; memcpy(&as_, &bits_, sizeof as_); as_; })
#define ANSWER(type, expression) ({ TYPE_##type found_ = expression; BITS_##type as_; memcpy(&as_, &found_, sizeof as_); as_; })
#define FUNCTION static inline __attribute__((always_inline))

#define LANE2(name, td, ta, tb, expression) \
  FUNCTION BITS_##td lane_##name(BITS_##ta a, BITS_##tb b) { \
    TYPE_##ta x = AS(ta, a); TYPE_##tb y = AS(tb, b); \
    return ANSWER(td, expression); \
  }
#define LANE1(name, td, ta, expression) \
  FUNCTION BITS_##td lane_##name(BITS_##ta a) { TYPE_##ta x = AS(ta, a); return ANSWER(td, expression); }
INTEGERS(LANE2) FLOATS(LANE2) UNARIES(LANE1)

// What a stretch of operations does for the lanes of a mask; o: its first one.
#define STRETCH(name) \
  __attribute__((visibility("default"))) void name(char *restrict registers, char *restrict scratch, \
                                                   const char *restrict constants, const Operation *restrict o, uint32_t mask)
#define EACH_LANE _Pragma("GCC ivdep") for (int l = 0; l < LANES; l++)
#define IN(base, type, at) ((type *)(base + at))[l]
#define CONSTANT(type, place) *(const type *)(constants + ((place) & ((1 << PLACE_BITS) - 1)))

// Of a table of 16-bit numbers, two of which are loaded at once, as processors gather words.
FUNCTION uint32_t lane_table_h(const void *table, uint32_t length, uint32_t a) {
  uint32_t is_in = -(uint32_t)(a < length), at = a & is_in;
  return ((const uint32_t *)table)[at >> 1] >> 16 * (at & 1) & 0xffff & is_in;
}
FUNCTION uint64_t lane_polynomial(const void *table, uint32_t length, uint32_t a, uint32_t b, uint32_t c) {
  const double *of = table;
  int32_t at = (int32_t)(3 * (a & -(uint32_t)(a < length)));
  return ANSWER(d, of[at] + of[at + 1] * AS(i, b) + of[at + 2] * AS(i, c));
}

FUNCTION uint32_t lane_sel_w(uint32_t a, uint32_t b, uint32_t c) { return a ? b : c; }
FUNCTION uint64_t lane_sel_W(uint32_t a, uint64_t b, uint64_t c) { return a ? b : c; }
FUNCTION uint32_t lane_fma_f(uint32_t a, uint32_t b, uint32_t c) { return ANSWER(f, __builtin_fmaf(AS(f, a), AS(f, b), AS(f, c))); }
FUNCTION uint64_t lane_fma_d(uint64_t a, uint64_t b, uint64_t c) { return ANSWER(d, __builtin_fma(AS(d, a), AS(d, b), AS(d, c))); }
