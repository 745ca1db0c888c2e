// Floating-point arithmetic whose results are compared: every output is a value that the machine computed.
// Copyright the memsim authors. Apache-2.0.
// Bit patterns in a table reach what random numbers do not: NaN, infinities, denormal, huge and tiny numbers.

#include <cuda_fp16.h>

typedef unsigned long long u64;

static __device__ const unsigned edges[32] = {
    0x00000000u, 0x80000000u, 0x00000001u, 0x80000001u, 0x007fffffu, 0x00800000u, 0x3f800000u, 0xbf800000u,
    0x7f7fffffu, 0xff7fffffu, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0x3f7fffffu, 0x3f800001u, 0x40490fdbu,
    0x42b17218u, 0xc2cff1b5u, 0x4b800000u, 0x4f000000u, 0x5f000000u, 0x1e3ce508u, 0x60ad78ecu, 0x0da24260u,
    0x7149f2cau, 0x477fe000u, 0x387fc000u, 0x33800000u, 0x3eaaaaabu, 0xc1200000u, 0x461c4000u, 0x501502f9u};

static __device__ __forceinline__ unsigned mix(unsigned x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

// A float of any bit pattern for most lanes, one of the edges for the rest.
static __device__ __forceinline__ float any_float(int i)
{
    const unsigned h = mix(i);
    return __uint_as_float(h & 3 ? mix(h) : edges[h >> 8 & 31]);
}

// NaN has many patterns: one stands for all.
static __device__ __forceinline__ float plain(float x) { return x != x ? __int_as_float(0x7fffffff) : x; }
static __device__ __forceinline__ double plain(double x) { return x != x ? __longlong_as_double(0x7ff8000000000000ll) : x; }

// Chains of sums and products: with and without contraction, with every rounding, saturated.
extern "C" __global__ void float_chains(const float *in, float *out)
{
    const int i = blockIdx.x * 128 + threadIdx.x, n = gridDim.x * 128;
    const float a = in[i], b = in[n - 1 - i], c = in[i ^ 1];
    float v = a;
#pragma unroll
    for (int k = 0; k < 8; k++)
        v = v * b + c * k;
    out[i] = v;
    out[i + n] = __fadd_rn(__fmul_rn(a, b), c) - __fmaf_rn(a, b, c);
    out[i + 2 * n] = __fadd_ru(a, b) + __fadd_rd(a, c) * __fadd_rz(b, c);
    out[i + 3 * n] = __fmul_ru(a, b) - __fmul_rd(a, b) + __fmul_rz(a, c) + __fsub_rz(a, b);
    out[i + 4 * n] = __fmaf_ru(a, b, c) - __fmaf_rd(a, b, c) + __fmaf_rz(c, b, a);
    out[i + 5 * n] = __saturatef(a + b) + __saturatef(a * b) * 2.0f + __saturatef(fmaf(a, b, c));
    out[i + 6 * n] = -a * b - c + fabsf(a) * -fabsf(b) + 2.0f * a * b;
}

// The same on any bit patterns, with denormal numbers kept and flushed.
extern "C" __global__ void float_edges(const int *in, float *out)
{
    const int i = blockIdx.x * 128 + threadIdx.x, n = gridDim.x * 128;
    const float a = any_float(i * 3 + in[i]), b = any_float(i * 3 + 1 + in[i]), c = any_float(i * 3 + 2 + in[i]);
    out[i] = plain(a + b);
    out[i + n] = plain(a * b);
    out[i + 2 * n] = plain(fmaf(a, b, c));
    float x, y, z, w;
    asm("add.ftz.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
    asm("mul.ftz.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    asm("fma.rn.ftz.f32 %0, %1, %2, %3;" : "=f"(z) : "f"(a), "f"(b), "f"(c));
    asm("fma.rn.ftz.sat.f32 %0, %1, %2, %3;" : "=f"(w) : "f"(a), "f"(b), "f"(c));
    out[i + 3 * n] = plain(x);
    out[i + 4 * n] = plain(y);
    out[i + 5 * n] = plain(z);
    out[i + 6 * n] = plain(w);
    asm("add.sat.ftz.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
    asm("mul.ftz.sat.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    asm("fma.rm.ftz.f32 %0, %1, %2, %3;" : "=f"(z) : "f"(a), "f"(b), "f"(c));
    asm("add.rz.f32 %0, %1, %2;" : "=f"(w) : "f"(a), "f"(c));
    out[i + 7 * n] = plain(x) + plain(y);
    out[i + 8 * n] = plain(z);
    out[i + 9 * n] = plain(w);
}

// Least and greatest with NaN and both zeros, selections, comparisons as values, signs, absolute values.
extern "C" __global__ void float_selects(const int *in, float *out, int *flags)
{
    const int i = blockIdx.x * 128 + threadIdx.x, n = gridDim.x * 128;
    const float a = any_float(i * 2 + in[i]), b = any_float(i * 2 + 1 + in[i]);
    out[i] = plain(fminf(a, b));
    out[i + n] = plain(fmaxf(a, b));
    out[i + 2 * n] = plain(a < b ? a : -b);
    out[i + 3 * n] = plain(copysignf(a, b));
    float x, y, s;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
    asm("max.ftz.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    asm("set.gt.f32.f32 %0, %1, %2;" : "=f"(s) : "f"(a), "f"(b));
    out[i + 4 * n] = plain(x);
    out[i + 5 * n] = plain(y);
    out[i + 6 * n] = s + (fabsf(a) >= b ? 2.0f : 0.0f) + (a == b ? 4.0f : 0.0f) + (a != b && a > 0.0f ? 8.0f : 0.0f);
    int f = (a < b) | (a <= b) << 1 | (a == b) << 2 | (a != b) << 3 | (a > b) << 4 | (a >= b) << 5;
    int bit;
    asm("{ .reg .pred p; setp.ltu.f32 p, %1, %2; selp.s32 %0, 64, 0, p; }" : "=r"(bit) : "f"(a), "f"(b));
    f |= bit;
    asm("{ .reg .pred p; setp.gtu.ftz.f32 p, %1, %2; selp.s32 %0, 128, 0, p; }" : "=r"(bit) : "f"(a), "f"(b));
    f |= bit;
    asm("{ .reg .pred p, q; setp.num.f32 q, %1, %2; setp.equ.or.f32 p, %1, %2, q; selp.s32 %0, 256, 0, p; }" : "=r"(bit) : "f"(a), "f"(b));
    f |= bit;
    asm("{ .reg .pred p; setp.nan.f32 p, %1, %2; selp.s32 %0, 512, 0, p; }" : "=r"(bit) : "f"(a), "f"(b));
    f |= bit | isnan(a) << 10 | isinf(b) << 11 | signbit(a) << 12 | isfinite(a) << 13;
    flags[i] = f;
}

// The functions of the special unit, as the instructions give them.
extern "C" __global__ void float_fast_functions(const float *in, float *out)
{
    const int i = blockIdx.x * 128 + threadIdx.x, n = gridDim.x * 128;
    const float a = in[i] * 8.0f, p = fabsf(in[i ^ 1]) * 50.0f + 0.01f;
    out[i] = __expf(a);
    out[i + n] = __logf(p);
    out[i + 2 * n] = __sinf(a);
    out[i + 3 * n] = __cosf(a);
    out[i + 4 * n] = __fdividef(a, p);
    out[i + 5 * n] = __powf(p, in[i]);
    out[i + 6 * n] = rsqrtf(p);
    float e, l, r, s, t;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(a));
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(l) : "f"(p));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(p));
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(s) : "f"(p));
    asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(a));
    out[i + 7 * n] = e;
    out[i + 8 * n] = l;
    out[i + 9 * n] = r;
    out[i + 10 * n] = s;
    out[i + 11 * n] = t;
    out[i + 12 * n] = __tanf(a) + exp10f(in[i]);
}

// The accurate ones, on usual numbers.
extern "C" __global__ void float_accurate_functions(const float *in, float *out)
{
    const int i = blockIdx.x * 128 + threadIdx.x, n = gridDim.x * 128;
    const float a = in[i] * 20.0f, p = fabsf(in[i ^ 1]) * 90.0f + 0.001f;
    out[i] = expf(a);
    out[i + n] = logf(p);
    out[i + 2 * n] = sinf(a) + cosf(a);
    out[i + 3 * n] = tanhf(a * 0.1f);
    out[i + 4 * n] = a / p;
    out[i + 5 * n] = sqrtf(p);
    out[i + 6 * n] = powf(p, in[i]);
    out[i + 7 * n] = atan2f(a, p) + asinf(in[i]);
    out[i + 8 * n] = exp2f(a) + log2f(p) * log10f(p) + log1pf(p) - expm1f(in[i]);
    out[i + 9 * n] = erff(in[i]) + cbrtf(a) + hypotf(a, p);
    out[i + 10 * n] = 1.0f / p + __frcp_rn(a) + __fsqrt_rn(p) + __frsqrt_rn(p);
    out[i + 11 * n] = __fdiv_ru(a, p) - __fdiv_rd(a, p) + __fsqrt_ru(p) - __frcp_rz(p);
    out[i + 12 * n] = 1.0f / (1.0f + expf(-a)) + fmodf(a, 0.7f) + remainderf(a, 0.3f);
}

// Division, roots and sines where they need the slow way: huge, tiny, denormal, infinite.
extern "C" __global__ void float_slow_paths(const int *in, float *out)
{
    const int i = blockIdx.x * 128 + threadIdx.x, n = gridDim.x * 128;
    const float a = any_float(i * 2 + in[i]), b = any_float(i * 2 + 1 + in[i]);
    out[i] = plain(a / b);
    out[i + n] = plain(sqrtf(a));
    out[i + 2 * n] = plain(1.0f / b);
    out[i + 3 * n] = plain(rsqrtf(b));
    out[i + 4 * n] = plain(sinf(a));
    out[i + 5 * n] = plain(expf(a));
    out[i + 6 * n] = plain(logf(a));
    out[i + 7 * n] = plain(log2f(b) + exp2f(b));
    out[i + 8 * n] = plain(ldexpf(a, in[i] - 60));
    int e;
    out[i + 9 * n] = plain(frexpf(a, &e)) + e;
    out[i + 10 * n] = plain(floorf(a) - truncf(b)) + (rintf(a) == a) + (ceilf(b) > b);
    out[i + 11 * n] = plain(nextafterf(a, b));
}

// Doubles: sums, products, division, roots, comparisons, every rounding.
extern "C" __global__ void float_doubles(const double *in, double *out, int *flags)
{
    const int i = blockIdx.x * 64 + threadIdx.x, n = gridDim.x * 64;
    const double a = in[i], b = in[n - 1 - i], c = in[i ^ 1];
    out[i] = a * b + c;
    out[i + n] = a / b;
    out[i + 2 * n] = sqrt(fabs(a)) + rsqrt(fabs(b));
    out[i + 3 * n] = __dadd_ru(a, b) - __dadd_rd(a, b) + __dmul_rz(a, c) + __dmul_ru(b, c) - __dmul_rd(b, c);
    out[i + 4 * n] = __fma_rz(a, b, c) + __fma_ru(a, c, b) - __fma_rd(a, c, b) + __dadd_rz(a, c);
    out[i + 5 * n] = fmin(a, b) + fmax(b, c) * 2.0 - fabs(c);
    out[i + 6 * n] = 1.0 / c + __drcp_ru(a) + __ddiv_rz(a, c);
    out[i + 7 * n] = exp(a) + log(fabs(b)) + sin(c);
    out[i + 8 * n] = pow(fabs(a), b) + floor(a * 10.0) + rint(b * 10.0);
    flags[i] = (a < b) | (a <= c) << 1 | (a == b) << 2 | (b != c) << 3 | (a > c) << 4 | !(a >= b) << 5 | !(a < c) << 6
        | (fabs(a) > 0.5 && b < 0.25) << 7 | (a != a) << 8;
}

// Doubles of any bit pattern: NaN, infinities, denormal numbers; slow ways of division and roots.
extern "C" __global__ void float_double_edges(const int *in, double *out, int *flags)
{
    const int i = blockIdx.x * 64 + threadIdx.x, n = gridDim.x * 64;
    const unsigned h = mix(i + in[i]);
    const double a = h & 1 ? (double)any_float(i + in[i]) : __longlong_as_double((long long)((u64)mix(h) << 32 | h));
    const double b = h & 2 ? (double)any_float(i * 5 + 3) : __longlong_as_double((long long)((u64)mix(h + 1) << 32 | ~h));
    out[i] = plain(a / b);
    out[i + n] = plain(sqrt(a));
    out[i + 2 * n] = plain(a * b);
    out[i + 3 * n] = plain(a + b);
    out[i + 4 * n] = plain(fma(a, b, a));
    out[i + 5 * n] = plain(fmin(a, b));
    out[i + 6 * n] = plain(fmax(a, b));
    out[i + 7 * n] = plain((double)(float)a + (double)__double2float_ru(b));
    flags[i] = (a < b) | !(a < b) << 1 | (a == b) << 2 | !(a >= b) << 3 | isnan(a) << 4 | (a != b && b > 1.0) << 5
        | (a > b || b != b) << 6 | (int)(__float_as_uint(__double2float_rz(a)) >> 9 << 7);
}

// Halves and pairs of halves.
extern "C" __global__ void float_halves(const __half2 *in, __half2 *out, float *wide, int *flags)
{
    const int i = blockIdx.x * 128 + threadIdx.x, n = gridDim.x * 128;
    const __half2 a = in[i], b = in[n - 1 - i], c = in[i ^ 1];
    out[i] = __hfma2(a, b, c);
    out[i + n] = __hadd2(a, b);
    out[i + 2 * n] = __hmul2(a, __hsub2(b, c));
    out[i + 3 * n] = __hadd2_sat(a, b);
    out[i + 4 * n] = __hfma2_relu(a, b, c);
    out[i + 5 * n] = __hmax2(a, __hmin2(b, c));
    out[i + 6 * n] = h2exp2(a);
    out[i + 7 * n] = __h2div(a, __hadd2(b, __float2half2_rn(2.5f)));
    out[i + 8 * n] = __halves2half2(__hadd(__low2half(a), __high2half(b)), hrcp(__high2half(c)));
    out[i + 9 * n] = h2sqrt(__habs2(a));
    out[i + 10 * n] = __hneg2(h2sin(b));
    out[i + 11 * n] = __halves2half2(__hfma(__low2half(a), __low2half(b), __high2half(b)), __hmax(__low2half(a), __high2half(a)));
    const float2 f = __half22float2(a);
    wide[i] = f.x * 3.0f + f.y;
    wide[i + n] = __half2float(__low2half(b)) + __half2float(__hmul(__low2half(b), __high2half(b)));
    flags[i] = __hlt(__low2half(a), __low2half(b)) | __hbeq2(a, b) << 1 | __hgt(__high2half(a), __high2half(c)) << 2
        | __hisnan(__low2half(a)) << 3 | __hbgt2(a, b) << 4;
}

// bfloat16 pairs by inline PTX, with sums in floats.
extern "C" __global__ void float_bfloats(const float *in, unsigned *out, float *wide)
{
    const int i = blockIdx.x * 128 + threadIdx.x, n = gridDim.x * 128;
    unsigned a, b, c, d;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(a) : "f"(in[i]), "f"(in[i ^ 1]));
    asm("cvt.rz.bf16x2.f32 %0, %1, %2;" : "=r"(b) : "f"(in[n - 1 - i] * 3.0f), "f"(in[i]));
    asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(c) : "f"(in[i]), "f"(in[i ^ 3]));
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    out[i] = d;
    asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    out[i + n] = d;
    asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    out[i + 2 * n] = d;
    asm("max.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    out[i + 3 * n] = d;
    asm("fma.rn.relu.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(c), "r"(b), "r"(a));
    out[i + 4 * n] = d;
    unsigned short one;
    asm("cvt.rn.bf16.s32 %0, %1;" : "=h"(one) : "r"(i * 37 - 5000));
    out[i + 5 * n] = one;
    wide[i] = __uint_as_float(a << 16) * __uint_as_float(b & 0xffff0000u);
    asm("{ .reg .b16 x; cvt.rn.bf16.f32 x, %1; cvt.f32.bf16 %0, x; }" : "=f"(wide[i + n]) : "f"(in[i] * 1.001f));
    asm("ex2.approx.ftz.bf16x2 %0, %1;" : "=r"(d) : "r"(a));
    out[i + 6 * n] = d;
    asm("tanh.approx.bf16x2 %0, %1;" : "=r"(d) : "r"(b));
    out[i + 7 * n] = d;
}

// Conversions between floats of all sizes with every rounding, on any bit patterns.
extern "C" __global__ void float_conversions(const int *in, unsigned short *halves, float *floats, double *doubles, unsigned *pairs)
{
    const int i = blockIdx.x * 128 + threadIdx.x, n = gridDim.x * 128;
    const float a = i & 1 ? any_float(i + in[i]) : (float)(int)mix(i) * exp2f((float)(in[i] % 50) - 50.0f);
    const float b = (float)(int)mix(i + 9) * exp2f((float)(in[i] % 40) - 45.0f);
    const bool number = a == a;
    halves[i] = number ? __half_as_ushort(__float2half_rn(a)) : 1;
    halves[i + n] = number ? __half_as_ushort(__float2half_rz(a)) : 1;
    halves[i + 2 * n] = number ? __half_as_ushort(__float2half_rd(a)) : 1;
    halves[i + 3 * n] = number ? __half_as_ushort(__float2half_ru(a)) : 1;
    halves[i + 4 * n] = __half_as_ushort(__double2half((double)b * 1.0000001));
    halves[i + 5 * n] = __half_as_ushort(__int2half_rn(in[i] * 700 - 40000));
    unsigned p;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(p) : "f"(b), "f"(b * 3.0f));
    pairs[i] = p;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(p) : "f"(b), "f"(b * 7.0f));
    pairs[i + n] = p;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(p) : "f"(b));
    pairs[i + 2 * n] = p;
    asm("cvt.rz.f16x2.f32 %0, %1, %2;" : "=r"(p) : "f"(b), "f"(b * -3.0f));
    pairs[i + 3 * n] = p;
    const double d = (double)b * 1.000000123456789;
    floats[i] = __double2float_rn(d);
    floats[i + n] = __double2float_rz(d) + __double2float_ru(d) - __double2float_rd(d);
    floats[i + 2 * n] = __half2float(__ushort_as_half((unsigned short)(mix(i) & 0x7bffu)));
    floats[i + 3 * n] = (float)__half2int_rd(__ushort_as_half((unsigned short)(mix(i) & 0xdfffu & 0x7bff))) + __half2float(hfloor(__float2half(b)));
    doubles[i] = (double)b + (double)__half2float(__float2half(b));
    doubles[i + n] = plain((double)a);
}

// A softmax of rows and a normalization: sums in a fixed order through shared memory.
extern "C" __global__ void float_softmax(const float *in, float *out)
{
    __shared__ float s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    const float x = in[i] * 10.0f;
    s[t] = x;
    __syncthreads();
    for (int half = 64; half > 0; half >>= 1) {
        if (t < half)
            s[t] = fmaxf(s[t], s[t + half]);
        __syncthreads();
    }
    const float e = __expf(x - s[0]);
    __syncthreads();
    s[t] = e;
    __syncthreads();
    for (int half = 64; half > 0; half >>= 1) {
        if (t < half)
            s[t] += s[t + half];
        __syncthreads();
    }
    out[i] = e / s[0];
}
