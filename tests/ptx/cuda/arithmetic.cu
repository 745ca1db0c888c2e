// Integer, floating-point and half arithmetic, logic, bit fields and conversions.
#include <cuda_fp16.h>

__global__ void integers(int *out, const int *in, unsigned u, long long l, unsigned long long ul) {
  int i = threadIdx.x, a = in[i], b = in[i + 1];
  out[0] = a / b + a % b + (u / 7) % 5 + abs(a) + min(a, b) - max(a, b) * ~a;
  out[1] = (a & b) | (a ^ b) | (a << (b & 31)) | (a >> 3) | int(u >> (a & 31)) | -b;
  out[2] = __clz(a) + __popc(b) + __brev(a) + __ffs(b) + __clzll(l) + __popcll(ul) + __brevll(l);
  out[3] = __mulhi(a, b) + __umulhi(u, a) + int(__mul64hi(l, a)) + __mul24(a, b) + __sad(a, b, u);
  out[4] = __byte_perm(a, b, 0x5140) + __funnelshift_l(a, b, u) + __hadd(a, b);
  out[5] = a > b ? a : b;
  out[6] = int((l * a) / (ul + 1)) + int(l % 13) + int(l >> 7) + int(ul << 3) + int(l < 0);
  asm("bfe.s32 %0, %1, 3, 7;" : "=r"(out[7]) : "r"(a));
  asm("bfi.b32 %0, %1, %2, 8, 4;" : "=r"(out[8]) : "r"(a), "r"(b));
  asm("bfind.u32 %0, %1;" : "=r"(out[9]) : "r"(a));
  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(out[10]) : "r"(a), "r"(b), "r"(u));
  asm("shf.l.wrap.b32 %0, %1, %2, 5;" : "=r"(out[11]) : "r"(a), "r"(b));
  out[13] = (i + 5) % in[13] + int(u % unsigned(in[14]));
  asm("dp4a.s32.s32 %0, %1, %2, 7;" : "=r"(out[14]) : "r"(a), "r"(b));
  asm("vadd.s32.s32.s32 %0, %1.b0, %2.h1;" : "=r"(out[12]) : "r"(a), "r"(b));
}

__global__ void wide(unsigned *out, unsigned a, unsigned b, unsigned c, unsigned d) {
  unsigned low, high;
  asm("add.cc.u32 %0, %2, %4;\n\taddc.u32 %1, %3, %5;" : "=r"(low), "=r"(high) : "r"(a), "r"(b), "r"(c), "r"(d));
  out[0] = low, out[1] = high;
  asm("sub.cc.u32 %0, %2, %4;\n\tsubc.u32 %1, %3, %5;" : "=r"(low), "=r"(high) : "r"(a), "r"(b), "r"(c), "r"(d));
  out[2] = low, out[3] = high;
  asm("mad.lo.cc.u32 %0, %2, %3, %4;\n\tmadc.hi.u32 %1, %2, %3, %5;"
      : "=r"(low), "=r"(high) : "r"(a), "r"(b), "r"(c), "r"(d));
  out[4] = low, out[5] = high;
}

__global__ void floats(float *out, const float *in, double *d) {
  int i = threadIdx.x;
  float a = in[i], b = in[i + 1];
  out[0] = a + b * a - b / a + fabsf(a) + fminf(a, b) + fmaxf(a, b) + -a;
  out[1] = sqrtf(a) + rsqrtf(b) + exp2f(a) + log2f(b) + __sinf(a) + __cosf(b) + tanhf(a) + copysignf(a, b);
  out[2] = __fdividef(a, b) + __expf(a) + __logf(b) + __frcp_rn(a) + __fsqrt_rn(b) + __saturatef(a);
  out[3] = float(int(a)) + float(unsigned(b)) + rintf(a) + floorf(b) + ceilf(a) + truncf(b) + float(i);
  out[4] = isnan(a) || isinf(b) || a != b ? 1.5f : __int_as_float(0x7fc00000);
  asm("tanh.approx.f32 %0, %1;" : "=f"(out[6]) : "f"(a));
  asm("{ .reg .pred p; testp.finite.f32 p, %1; selp.f32 %0, %1, %2, p; }" : "=f"(out[7]) : "f"(a), "f"(b));
  d[0] = d[1] * d[2] + d[3] / d[4] + sqrt(d[5]) + double(a) + fma(d[6], d[7], 1.0) + double(i);
  out[8] = float(d[9]);
}

__global__ void halves(__half *out, const __half *in, __half2 *pair) {
  int i = threadIdx.x;
  out[i] = __hadd(__hmul(in[i], in[i + 1]), __float2half(0.5f));
  pair[i] = __hfma2(pair[i], pair[i + 1], __float2half2_rn(2.0f));
  out[i + 1] = __hlt(in[i], in[i + 2]) ? __hneg(in[i]) : hexp2(in[i]);
  out[i + 2] = __float2half(__half2float(in[i]) + float(__half2int_rn(in[i + 1])));
}
