// Conversions that C and the operations of vectors.h lack.
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>

// As frexp, by bits, so that loops become vectors; a subnormal number is made normal first.
static inline uint64_t bits_of(double x) { uint64_t bits; memcpy(&bits, &x, 8); return bits; }
static inline int32_t exponent_of(double x) {
  int is_small = fabs(x) < 0x1p-1022;
  int32_t e = (int32_t)(bits_of(is_small ? x * 0x1p54 : x) >> 52 & 0x7ff);
  return x == 0 || e == 0x7ff ? 0 : e - 1022 - (is_small ? 54 : 0);
}
static inline double fraction_of(double x) {
  uint64_t bits = bits_of(fabs(x) < 0x1p-1022 ? x * 0x1p54 : x);
  bits = x == 0 || !(fabs(x) < INFINITY) ? bits : (bits & 0x800fffffffffffffull) | 0x3fe0000000000000ull;
  double fraction;
  memcpy(&fraction, &bits, 8);
  return fraction;
}

// As nextafter, by bits.
static inline float next_float(float x, float y) {
  uint32_t bits, sign; memcpy(&bits, &x, 4); memcpy(&sign, &y, 4);
  bits = x == 0 ? (sign & 1u << 31) | 1 : (x < y) == (x > 0) ? bits + 1 : bits - 1;
  float found; memcpy(&found, &bits, 4);
  return x != x || y != y ? x + y : x == y ? y : found;
}
static inline double next_double(double x, double y) {
  uint64_t bits = bits_of(x), sign = bits_of(y);
  bits = x == 0 ? (sign & 1ull << 63) | 1 : (x < y) == (x > 0) ? bits + 1 : bits - 1;
  double found; memcpy(&found, &bits, 8);
  return x != x || y != y ? x + y : x == y ? y : found;
}

// Rounded to odd: of what is inexact the neighbour with an odd last bit.
static inline double sum_to_odd(double x, double y) {
  double total = x + y, back = total - x, error = (x - (total - back)) + (y - back);
  uint64_t bits = bits_of(total), step = (error > 0) == (total > 0) ? 1 : -1ull;
  bits += error != 0 && fabs(total) < INFINITY && !(bits & 1) ? step : 0;
  memcpy(&total, &bits, 8);
  return total;
}
static inline float odd_float(double x) {
  float near = (float)x;
  double error = x - near;
  uint32_t bits; memcpy(&bits, &near, 4);
  uint32_t step = (error < 0) == (bits >> 31) ? 1 : -1u;
  bits += error != 0 && fabsf(near) < INFINITY && !(bits & 1) ? step : 0;
  memcpy(&near, &bits, 4);
  return near;
}
// Towards zero; what is no normal float32 becomes zero.
static inline float cut_float(double x) {
  uint64_t bits = bits_of(x) & ~((1ull << 29) - 1);
  memcpy(&x, &bits, 8);
  return (float)(fabs(x) < 0x1p-126 ? copysign(0.0, x) : x);
}
static inline uint32_t bf16_of(float x) {
  uint32_t bits; memcpy(&bits, &x, 4);
  return x != x ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
static inline double power_of_2(int32_t y) {  // a normal number
  uint64_t bits = (uint64_t)(y + 1023) << 52;
  double power;
  memcpy(&power, &bits, 8);
  return power;
}

static float float_of_half(uint32_t h) {
  uint32_t sign = (h & 0x8000u) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff, bits;
  if (exponent == 31) bits = 0x7f800000u | fraction << 13;
  else if (exponent) bits = (exponent + 112) << 23 | fraction << 13;
  else { float tiny = (float)fraction * 0x1p-24f; memcpy(&bits, &tiny, 4); }
  bits |= sign;
  float x; memcpy(&x, &bits, 4); return x;
}

// float64 to float16, rounded once to nearest even; a NaN keeps the upper bits of its fraction.
static uint32_t half_of_double(double x) {
  uint64_t bits; memcpy(&bits, &x, 8);
  uint32_t sign = bits >> 48 & 0x8000u;
  double size = fabs(x);
  if (x != x) { uint32_t f = bits >> 42 & 0x3ff; return sign | 0x7c00u | (f ? f : 1); }
  if (size >= 65520.0) return sign | 0x7c00u;
  if (size < 0x1p-14) return sign | (uint32_t)rint(size * 0x1p24);
  uint64_t magnitude = bits & 0x7fffffffffffffffull, low = magnitude & ((1ull << 42) - 1), cut = magnitude >> 42;
  cut += low > 1ull << 41 || (low == 1ull << 41 && (cut & 1));
  return sign | (uint32_t)(cut - ((1023ull - 15) << 10));
}
static uint32_t half_of_float(float x) { return half_of_double(x); }

static uint32_t next_half(uint32_t x, uint32_t y) {
  float from = float_of_half(x), to = float_of_half(y);
  if (from != from || to != to) return 0x7fff;
  if (from == to) return y;
  if (from == 0) return (y & 0x8000u) | 1;
  return (to > from) == (from > 0) ? x + 1 : x - 1;
}
