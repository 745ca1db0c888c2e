// What an operation on the 32 lanes of a warp computes, each stated once: OPERATION(name, type of the result,
// types of the operands, expression). memsim/interpreter/traced.py names them by numpy's functions and types.
//
// w, i: 32 bits, unsigned and signed; W, I: 64 bits; f, d: float32, float64. Truths are words, 0 or 1.
#define INTEGERS(X) \
  X(add_w, w, w, w, x + y) X(sub_w, w, w, w, x - y) X(mul_w, w, w, w, x * y) \
  X(add_W, W, W, W, x + y) X(sub_W, W, W, W, x - y) X(mul_W, W, W, W, x * y) \
  X(mul_i_I, I, i, i, (int64_t)x * y) X(mul_w_W, W, w, w, (uint64_t)x * y) \
  X(and_w, w, w, w, x & y) X(or_w, w, w, w, x | y) X(xor_w, w, w, w, x ^ y) \
  X(carry_w, w, w, w, x + y < x) X(join_W, W, w, w, x | (uint64_t)y << 32) \
  X(and_W, W, W, W, x & y) X(or_W, W, W, W, x | y) X(xor_W, W, W, W, x ^ y) \
  X(shl_w, w, w, w, y < 32 ? x << (y & 31) : 0) X(shl_W, W, W, W, y < 64 ? x << (y & 63) : 0) \
  X(shr_w, w, w, w, y < 32 ? x >> (y & 31) : 0) X(shr_W, W, W, W, y < 64 ? x >> (y & 63) : 0) \
  X(shr_i, i, i, w, x >> (y < 31 ? y : 31)) X(shr_I, I, I, W, x >> (y < 63 ? y : 63)) \
  X(min_i, i, i, i, x < y ? x : y) X(max_i, i, i, i, x > y ? x : y) \
  X(min_w, w, w, w, x < y ? x : y) X(max_w, w, w, w, x > y ? x : y) \
  X(min_I, I, I, I, x < y ? x : y) X(max_I, I, I, I, x > y ? x : y) \
  X(min_W, W, W, W, x < y ? x : y) X(max_W, W, W, W, x > y ? x : y) \
  X(lt_i, w, i, i, x < y) X(le_i, w, i, i, x <= y) X(lt_w, w, w, w, x < y) X(le_w, w, w, w, x <= y) \
  X(eq_w, w, w, w, x == y) X(ne_w, w, w, w, x != y) \
  X(lt_I, w, I, I, x < y) X(le_I, w, I, I, x <= y) X(lt_W, w, W, W, x < y) X(le_W, w, W, W, x <= y) \
  X(eq_W, w, W, W, x == y) X(ne_W, w, W, W, x != y)

#define FLOATS(X) \
  X(add_f, f, f, f, x + y) X(sub_f, f, f, f, x - y) X(mul_f, f, f, f, x * y) X(div_f, f, f, f, x / y) \
  X(add_d, d, d, d, x + y) X(sub_d, d, d, d, x - y) X(mul_d, d, d, d, x * y) X(div_d, d, d, d, x / y) \
  X(min_f, f, f, f, x < y || x != x ? x : y) X(max_f, f, f, f, x > y || x != x ? x : y) \
  X(min_d, d, d, d, x < y || x != x ? x : y) X(max_d, d, d, d, x > y || x != x ? x : y) \
  X(lt_f, w, f, f, x < y) X(le_f, w, f, f, x <= y) X(eq_f, w, f, f, x == y) X(ne_f, w, f, f, x != y) \
  X(lt_d, w, d, d, x < y) X(le_d, w, d, d, x <= y) X(eq_d, w, d, d, x == y) X(ne_d, w, d, d, x != y) \
  X(odd_d, d, d, d, sum_to_odd(x, y)) X(nextafter_h, w, w, w, next_half(x, y)) X(copysign_f, f, f, f, copysignf(x, y)) X(copysign_d, d, d, d, copysign(x, y)) \
  X(nextafter_f, f, f, f, next_float(x, y)) X(nextafter_d, d, d, d, next_double(x, y)) \
  X(fmod_d, d, d, d, fmod(x, y))

#define UNARIES(X) \
  X(not_w, w, w, ~x) X(not_W, W, W, ~x) X(neg_w, w, w, -x) X(neg_W, W, W, -x) \
  X(abs_I, I, I, x < 0 ? -x : x) X(abs_i, i, i, x < 0 ? -x : x) \
  X(popc_W, W, W, (uint64_t)__builtin_popcountll(x)) \
  X(i_to_I, I, i, x) X(w_to_I, I, w, (int64_t)x) X(I_to_w, w, W, (uint32_t)x) X(high_w, w, W, (uint32_t)(x >> 32)) X(W_is, w, W, x != 0) X(w_is, w, w, x != 0) \
  X(b_to_w, w, w, x & 0xff) X(c_to_w, i, w, (int8_t)x) X(h_to_w, w, w, x & 0xffff) X(s_to_w, i, w, (int16_t)x) \
  X(neg_f, f, f, -x) X(neg_d, d, d, -x) X(abs_f, f, f, fabsf(x)) X(abs_d, d, d, fabs(x)) \
  X(sqrt_f, f, f, sqrtf(x)) X(sqrt_d, d, d, sqrt(x)) \
  X(rint_f, f, f, rintf(x)) X(rint_d, d, d, rint(x)) X(trunc_f, f, f, truncf(x)) X(trunc_d, d, d, trunc(x)) \
  X(floor_f, f, f, floorf(x)) X(floor_d, d, d, floor(x)) X(ceil_f, f, f, ceilf(x)) X(ceil_d, d, d, ceil(x)) \
  X(isnan_f, w, f, x != x) X(isnan_d, w, d, x != x) \
  X(isinf_f, w, f, fabsf(x) == INFINITY) X(isinf_d, w, d, fabs(x) == INFINITY) \
  X(isfinite_f, w, f, fabsf(x) < INFINITY) X(isfinite_d, w, d, fabs(x) < INFINITY) \
  X(sign_f, w, w, x >> 31) X(sign_d, w, W, (uint32_t)(x >> 63)) \
  X(power_d, d, i, power_of_2(x)) X(exponent_d, i, d, exponent_of(x)) X(fraction_d, d, d, fraction_of(x)) \
  X(f_to_d, d, f, x) X(d_to_f, f, d, (float)x) \
  X(i_to_d, d, i, x) X(w_to_d, d, w, x) X(I_to_d, d, I, (double)x) X(W_to_d, d, W, (double)x) \
  X(i_to_f, f, i, (float)x) X(w_to_f, f, w, (float)x) X(I_to_f, f, I, (float)x) X(W_to_f, f, W, (float)x) \
  X(d_to_W, W, d, x >= 0x1p63 ? (x < 0x1p64 ? (uint64_t)x : 0) : x >= -0x1p63 ? (uint64_t)(int64_t)x : 1ull << 63) \
  X(f_to_I, I, f, x >= -0x1p63f && x < 0x1p63f ? (int64_t)x : INT64_MIN) \
  X(d_to_half, w, d, half_of_double(x)) X(d_to_odd, f, d, odd_float(x)) X(cut_f, f, d, cut_float(x)) X(f_to_i, i, f, (int32_t)x) X(bf16_bits, w, f, bf16_of(x))
