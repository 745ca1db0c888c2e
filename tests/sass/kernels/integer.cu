// Integer arithmetic that ends in addresses, and conversions between integers and floats.
// Copyright the memsim authors. Apache-2.0.
// `in` holds integers from 0 to 127 unless the kernel says otherwise; a hash makes full words of them.

typedef unsigned long long u64;
typedef long long i64;

static __device__ __forceinline__ unsigned mix(unsigned x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

static __device__ __forceinline__ u64 mix64(unsigned x) { return (u64)mix(x) << 32 | mix(x + 77777u); }

// Division and modulo by values that are known only at run time, 32 bits, signed and unsigned.
extern "C" __global__ void int_divide_32(const int *in, int *out, int divisor, unsigned udivisor)
{
    __shared__ int s[256];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    const int v = (int)mix(in[i] + i);
    const unsigned u = mix(v);
    s[t] = v / divisor;
    s[t + 128] = (int)(u / udivisor);
    __syncthreads();
    const int r = v % divisor;
    const int at = (int)(u % udivisor) + (r < 0 ? -r : r);
    out[i] = s[at & 255] + v / (in[i] + 1) - (int)(u % (unsigned)(t + 3)) + -v / -7;
}

// Division and modulo by constants: multiplications by magic numbers and shifts.
extern "C" __global__ void int_divide_constants(const int *in, int *out)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    const int v = (int)mix(i);
    const unsigned u = mix(v);
    int at = (v / 3) ^ (v % 7) ^ (v / -10) ^ (v / 16) ^ (v % 32) ^ (v / 641);
    at ^= (int)((u / 3) ^ (u % 7) ^ (u / 100) ^ (u % 1000) ^ (u / 0x80000001u));
    const u64 w = mix64(i);
    at ^= (int)((w / 10) ^ (w % 1000003ull) ^ ((u64)((i64)w / 7)) ^ (u64)((i64)w % 12));
    out[i] = at + s[at & 127] + s[(t / 3) * 3 % 100] + s[t % 24];
}

// Division and modulo of 64 bits: calls of a helper, and the short way when both fit into 32 bits.
extern "C" __global__ void int_divide_64(const int *in, i64 *out, i64 divisor, u64 udivisor)
{
    __shared__ int s[64];
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = in[i];
    __syncthreads();
    const u64 w = t & 1 ? mix64(i) : mix(i);
    const i64 v = t & 2 ? -(i64)(w >> 1) : (i64)(w >> 1);
    i64 sum = v / divisor;
    sum ^= (i64)(w % udivisor);
    const int at = (int)((u64)(sum < 0 ? -sum : sum) % 64u);
    sum += s[at];
    if (s[t] > 20)
        sum += v % (i64)(s[t] - 150);
    out[i] = sum + (i64)(w / (u64)(s[at ^ 1] + 1));
}

// 64-bit shifts by values of every lane, and funnel shifts, with amounts beyond the width.
extern "C" __global__ void int_shifts(const int *in, u64 *out)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    const u64 w = mix64(i);
    const int n = s[t] & 63;
    u64 v = w << n;
    v ^= w >> ((n + 9) & 63);
    v += (u64)((i64)w >> (n ^ 5));
    v ^= (u64)(w << 13) ^ (w >> 37) ^ (u64)((i64)w >> 41) ^ w << 32 ^ w >> 32;
    const unsigned a = (unsigned)w, b = (unsigned)(w >> 32);
    v += __funnelshift_l(a, b, n) ^ __funnelshift_r(a, b, n);
    v ^= (u64)__funnelshift_lc(a, b, n) << 8 ^ (u64)__funnelshift_rc(a, b, n) << 16;
    v += (a << (n & 31)) ^ (a >> (n & 31)) ^ (unsigned)((int)b >> (n & 31));
    unsigned clamped, far;  // PTX shifts by 32 and more give 0 or the sign
    asm("shl.b32 %0, %1, %2;" : "=r"(clamped) : "r"(a), "r"(n));
    asm("shr.s32 %0, %1, %2;" : "=r"(far) : "r"(b), "r"(n));
    v ^= (u64)clamped + far;
    out[i] = v + s[(v >> 7) & 127] + s[(unsigned)(v >> 40) & 127];
}

// Comparisons of 64 bits in loops and bounds, signed and unsigned, negative steps.
extern "C" __global__ void int_compare_64(const int *in, i64 *out, i64 begin, i64 end, u64 limit)
{
    __shared__ int s[256];
    const int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = in[i];
    __syncthreads();
    i64 sum = 0;
    for (i64 k = begin + t; k < end; k += 100)
        sum += s[(unsigned)k & 255];
    for (i64 k = end; k >= begin - t; k -= 70)
        sum ^= s[(unsigned)(k * 3) & 255];
    const u64 w = mix64(i);
    if (w > limit && (i64)w != begin)
        sum += s[w & 255];
    else if ((i64)w <= end || w == limit)
        sum -= s[(w >> 60) * 16];
    const i64 low = (i64)w < begin ? (i64)w : begin;
    const u64 high = w > limit ? w : limit;
    out[i] = sum + low % 100 + (i64)(high >> 5) + (i64)max((i64)w, end);
}

// High words of products, 64-bit products, and a product of 64 by 64 bits.
extern "C" __global__ void int_high_products(const int *in, u64 *out)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    const unsigned a = mix(i), b = mix(a);
    const u64 w = mix64(i), x = mix64(i + 1000);
    u64 v = __umulhi(a, b) ^ (unsigned)__mulhi((int)a, (int)b);
    v += __umul64hi(w, x) ^ (u64)__mul64hi((i64)w, (i64)x);
    v ^= w * x;
    v += (u64)a * b + (u64)((i64)(int)a * (int)b);
    v ^= (u64)__umul24(a, b) << 20 ^ (u64)(unsigned)__mul24((int)a, (int)b);
    v += (u64)a * (unsigned)s[t] + x;
    v += (u64)((i64)(int)a * -12345 - (i64)w);
    out[i] = v + s[__umulhi(a, 128u)] + s[(int)(((u64)b * 100u) >> 32)];
}

// Counting and finding bits, in 32 and 64 bits.
extern "C" __global__ void int_bit_counts(const int *in, int *out)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    const unsigned a = t & 3 ? mix(i) >> (s[t] & 31) : 0;
    const u64 w = t & 7 ? mix64(i) >> (s[t] & 63) : 0;
    int v = __popc(a) + __clz((int)a) * 3 + __ffs((int)a) * 5 + (int)(__brev(a) >> 3);
    v ^= __popcll(w) + __clzll((i64)w) * 7 + __ffsll((i64)w) * 11 + (int)(__brevll(w) >> 5);
    int top, shift, top_signed;
    asm("bfind.u32 %0, %1;" : "=r"(top) : "r"(a));
    asm("bfind.shiftamt.u32 %0, %1;" : "=r"(shift) : "r"(a));
    asm("bfind.s32 %0, %1;" : "=r"(top_signed) : "r"(~a));
    v += top + shift * 3 + top_signed * 9;
    v += __clz(in[i] * 4096) + (a & -a) + __fns(a, 3, 2);
    out[i] = v + s[__popc(a) * 3] + s[__clz((int)a)] + s[__popcll(w)] + s[v & 127];
}

// Counts of bits of values that all lanes share.
extern "C" __global__ void int_uniform_bits(const int *in, int *out, unsigned a, unsigned b)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    const unsigned m = blockIdx.x * 7 + a;
    const int pieces = __popc(m) + __clz((int)(m & b)) + (int)(__brev(m) >> 26);
    const unsigned mask = (1u << (m & 15)) - 1, field = m >> (b & 7) & 0x3f;
    const unsigned mixed = __byte_perm(m, b, 0x2107) ^ (m & b | ~m & 0x55u);
    const int signed_field = (int)(m << 20) >> (b & 15);
    const unsigned low = min(m, b), high = max((int)m, (int)b);
    out[i] = s[(t + pieces) & 127] + s[(t * (field | 1) + mask) & 127] + s[(mixed + signed_field * t) & 127]
        + (int)(low + high) + (m > b && a != 3 ? t : 2 * t) + (int)(a / b) + (int)(m % a);
}

// Loops whose counters and bounds all lanes share: the compiler keeps them, and what follows from them, per warp.
extern "C" __global__ void int_uniform_loop(const int *in, int *out, int n, int a, unsigned b, i64 far)
{
    __shared__ int s[1024];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    for (int k = 0; k < 8; k++)
        s[t + k * 128] = in[i] + k;
    __syncthreads();
    int sum = 0;
    for (int k = 0; k < n; k++) {
        const int row = (k >> 2) * 32 + (k - a >> 3 & 7) * 4;
        const unsigned field = (unsigned)k * b >> 27, folded = __brev((unsigned)k) >> 27, mask = (1u << (k & 7)) - 1;
        const int wide = (int)((i64)k * far >> 31 & 127) + (int)((u64)far >> (k & 31) & 15), small = (int)(signed char)(k * 37) & 63;
        const int pieces = __popc((unsigned)k ^ b) + __clz(k + 1) + k / 5 + k % 7 + (int)((unsigned)k / 11u) + k / 4;
        sum += s[(row + t) & 1023] + s[(int)(field + folded) * 4 + (t & 3)] * 3 + s[(wide + small + t) & 1023] + s[(int)mask + t];
        sum ^= s[(pieces * 8 + t) & 1023];
        if (k > a)
            sum += s[(k * 3 + t) & 1023];
        if ((unsigned)k * 77u >= b && k != a + 5)
            sum -= s[(t ^ (k & 31)) & 1023];
        if ((k & 3) == 1 || far + k > 1000000000000ll)
            sum ^= s[(max(k, a) + min(k, 9) + t) & 1023];
        __syncthreads();
    }
    out[i] = sum;
}

// The same with 64 bits: counters, bounds and pointers that all lanes share.
extern "C" __global__ void int_uniform_wide(const int *__restrict__ in, int *out, i64 n, u64 pitch, u64 limit, int rows)
{
    const int t = threadIdx.x;
    int sum = 0;
    const int *line = in;
    for (i64 k = 0; k < n; k += 3) {
        const u64 at = (u64)k * pitch % 400u;
        sum += in[at + t] + in[(k << 2 & 255) + t];
        if ((u64)k * 1000003u > limit)
            sum ^= in[(k >> 1) + t];
        if (k >= (i64)(limit >> 17) || (u64)(k + 5) <= pitch)
            sum -= in[(u64)k / 3 + t];
        __syncthreads();
    }
    for (int row = 0; row < rows; row++) {
        const int *last = line + pitch * 3;
        for (; line < last; line += pitch)
            sum = sum * 3 + line[t];
        line = in + (row * 7 & 15);
        __syncthreads();
    }
    out[blockIdx.x * 64 + t] = sum;
}

// Tiles whose places follow from the block alone: signed shifts, wide products and comparisons of whole warps.
extern "C" __global__ void int_uniform_tiles(const int *__restrict__ in, int *out, int rows, int columns, unsigned groups)
{
    __shared__ int s[256];
    const int t = threadIdx.x;
    int sum = 0;
    int tile = blockIdx.x;
    const int tiles = (columns + 15) / 16 * ((rows + 3) / 4);
    while (tile < tiles) {
        const int half = tile / 2, eighth = (tile - 3) / 8, row = (tile >> 2) * 4, left = columns - (tile & 3) * 16;
        const int *from = in + (i64)row * columns + (tile & 3) * 16;
        s[t] = row + t / 16 < rows && t % 16 < left ? from[t / 16 * columns + t % 16] : -1;
        __syncthreads();
        if (left >= 16 && (unsigned)half < groups)
            sum += s[(t + half) & 63];
        else if (left > 0 || eighth != half)
            sum -= s[(t * 3 + eighth + 1) & 63];
        if ((unsigned)tile * 3u <= groups || (i64)tile * columns > (i64)rows * 5)
            sum ^= s[(t ^ (tile & 7)) & 63];
        __syncthreads();
        tile += gridDim.x * (half >= eighth ? 1 : 2);
    }
    out[blockIdx.x * 64 + t] = sum;
}

// Fields of bits, taken out and put in, at places known before and only at run time.
extern "C" __global__ void int_bit_fields(const int *in, int *out)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    const unsigned a = mix(i), b = mix(a);
    const int place = s[t] & 31, length = s[t ^ 1] & 31;
    unsigned field, inserted;
    int sfield;
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(field) : "r"(a), "r"(place), "r"(length));
    asm("bfe.s32 %0, %1, %2, %3;" : "=r"(sfield) : "r"(b), "r"(place), "r"(length));
    asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(inserted) : "r"(a), "r"(b), "r"(place), "r"(length));
    u64 wide;
    asm("bfe.u64 %0, %1, %2, %3;" : "=l"(wide) : "l"((u64)a << 20 | b), "r"(place), "r"(length));
    unsigned masked, extended;
    asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(masked) : "r"(place), "r"(length));
    asm("szext.wrap.s32 %0, %1, %2;" : "=r"(extended) : "r"(a), "r"(length));
    const int seven = (int)(a << 11) >> 25, five = (int)(b >> 9 & 31), sign = (int)(signed char)(a >> 8);
    struct { unsigned x : 5; int y : 9; unsigned z : 18; } packed;
    packed.x = a;
    packed.y = (int)b;
    packed.z = a ^ b;
    packed.z += packed.y * packed.x;
    out[i] = (int)(field ^ inserted) + sfield + (int)wide + seven * five + sign + (int)(masked ^ extended)
        + packed.z + s[field & 127] + s[five * 4] + s[(seven + 64) & 127] + s[packed.x] + s[sign & 127];
}

// Products of four bytes and two shorts, sums of differences, and two or four small integers in a word.
extern "C" __global__ void int_packed(const int *in, int *out)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    const unsigned a = mix(i), b = mix(a), c = s[t];
    int v, w;  // by inline PTX: NVRTC 12.0 declares __dp4a and has no body for it
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(v) : "r"(a), "r"(b), "r"(s[t]));
    asm("dp4a.u32.u32 %0, %1, %2, %0;" : "+r"(v) : "r"(a), "r"(b));
    asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(w) : "r"(a), "r"(b), "r"(c));
    asm("dp2a.lo.s32.s32 %0, %1, %2, %0;" : "+r"(w) : "r"(a), "r"(b));
    asm("dp2a.hi.u32.s32 %0, %1, %2, %0;" : "+r"(w) : "r"(b), "r"(a));
    v ^= w;
    v ^= __sad((int)a, (int)b, c) + __usad(a, b, 5u);
    v += (int)(__vadd4(a, b) ^ __vmaxu2(a, b) ^ __vabsdiffu4(a, b) ^ __vcmpgts4(a, b));
    v ^= (int)(__vmins2(a, b) + __vsub2(a, b) + __vavgu4(a, b));
    v += abs((int)a) + min((int)a, (int)b) + max(s[t], 60) + (int)min(a, b) + (int)max(a, c);
    v += max((int)a + (int)b, s[t]) + min(max(s[t] - 20, 0), 99);
    v += __hadd((int)a, (int)b) + __rhadd((int)a, (int)b) + (int)__uhadd(a, b);
    out[i] = v + s[min(max(s[t] - 20, 0), 99)] + s[abs((int)a) & 127];
}

// The least and the greatest of three, and sums with a floor of zero.
extern "C" __global__ void int_three_way(const int *in, int *out)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    const int a = s[t] - 50, b = s[t ^ 1] - 30, c = s[127 - t] - 64;
    int v = __vimax3_s32(a, b, c) + __vimin3_s32(a, b, c) * 3;
    v += (int)__vimax3_u32(a, b, c) ^ __vimax_s32_relu(a, b) ^ __vimin3_s32_relu(a, b, c);
    v += __viaddmax_s32(a, b, c) - __viaddmin_s32_relu(a, b, c);
    v ^= (int)__vimax3_s16x2(a * 70000, b * 30011, c) + (int)__viaddmax_u16x2(a, b * 77777, c);
    bool first;
    v += __vibmax_s32(a, b, &first) * 2;
    out[i] = v + (first ? 100000 : 0) + s[__vimax3_s32(a, b, 0) & 127];
}

// Sums of 128 bits: chains of carries, up and down, and a 128-bit product.
extern "C" __global__ void int_carries(const int *in, u64 *out)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    const u64 a = ~mix64(i), b = mix64(i + 5), c = t & 1 ? ~0ull : mix64(t), d = t & 2 ? ~0ull : 1;
    u64 low, high, less, more;
    asm("add.cc.u64 %0, %2, %4; addc.u64 %1, %3, %5;" : "=l"(low), "=l"(high) : "l"(a), "l"(b), "l"(c), "l"(d));
    asm("sub.cc.u64 %0, %2, %4; subc.u64 %1, %3, %5;" : "=l"(less), "=l"(more) : "l"(a), "l"(b), "l"(c), "l"(d));
    unsigned w[4];
    asm("add.cc.u32 %0, %4, %8; addc.cc.u32 %1, %5, %8; addc.cc.u32 %2, %6, %8; addc.u32 %3, %7, %8;"
        : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
        : "r"((unsigned)a), "r"((unsigned)(a >> 32)), "r"((unsigned)c), "r"((unsigned)(c >> 32)), "r"(~s[t]));
    unsigned p0, p1, p2;
    asm("mad.lo.cc.u32 %0, %3, %4, %5; madc.hi.cc.u32 %1, %3, %4, %5; addc.u32 %2, %3, 0;"
        : "=r"(p0), "=r"(p1), "=r"(p2) : "r"((unsigned)a), "r"((unsigned)b), "r"(~s[t ^ 1]));
    u64 bottom, top;  // a * b + c
    asm("mad.lo.cc.u64 %0, %2, %3, %4; madc.hi.u64 %1, %2, %3, 0;" : "=l"(bottom), "=l"(top) : "l"(a), "l"(b), "l"(c));
    const u64 folded = top ^ bottom ^ top >> 13;
    const u64 v = low ^ high * 3 ^ less ^ more * 5 ^ w[0] ^ (u64)w[1] << 7 ^ (u64)w[2] << 14 ^ (u64)w[3] << 21;
    out[i] = v + folded + p0 + ((u64)p1 << 3) + ((u64)p2 << 5) + s[high & 127] + s[folded >> 57] + (low < a);
}

// Addresses: products of 32 bits added to pointers, size_t, negative strides, differences of pointers.
extern "C" __global__ void int_addresses(const int *in, int *out, int pitch, size_t wide_pitch, int step)
{
    const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.x * 8 + y;
    const int *line = in + row * pitch;
    const int *wide = in + (size_t)row * wide_pitch;
    const int *last = in + 32 * pitch - 1;
    int sum = line[x] + wide[31 - x] + last[-(row * 32 + x)];
    sum += *(const int *)((const char *)in + (size_t)row * (wide_pitch * 4) + x * 4u);
    for (const int *p = last; p > last - 96; p += step)
        sum ^= p[-(x & 3)];
    const unsigned column = (unsigned)x * 7u & 31u;
    sum += in[row * pitch + column] - in[(unsigned)(row * pitch) + (column ^ 3u)];
    sum += (int)(&line[x] - in) + (int)((u64)(last - line) >> 1);
    int *o = out + (pitch * 32 - 1);
    o[-(row * pitch + x)] = sum;
}

// The same with small types: indices of 8 and 16 bits, signed and not, as they come from memory.
extern "C" __global__ void int_small_indices(const unsigned char *bytes, const signed char *sbytes, const short *shorts,
                                             int *out)
{
    __shared__ int s[512];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    for (int k = 0; k < 4; k++)
        s[t + k * 128] = bytes[t] * (k + 1);
    __syncthreads();
    const unsigned char b = bytes[i];
    const signed char c = sbytes[i];
    const short h = (short)(shorts[i] - 60);
    int v = s[b] + s[c + 128] + s[256 + h] + s[(unsigned char)(b + 100)] + s[(signed char)(c - 90) + 200];
    v += s[(unsigned short)(h * 1000) & 511] + (c < -3 ? s[-c] : 1) + (b >> 2) + (c >> 3);
    out[i] = v;
}

// Every byte of a logic function: three inputs, results as words and as conditions.
extern "C" __global__ void int_logic(const int *in, int *out)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    const unsigned a = mix(i), b = mix(a), c = mix(b);
    unsigned v = (a & b | ~a & c) ^ (a & b | a & c | b & c);
    v += (a ^ b ^ c) - ~(a | b & ~c);
    unsigned x, y;
    asm("lop3.b32 %0, %1, %2, %3, 0x1e;" : "=r"(x) : "r"(a), "r"(b), "r"(c));
    asm("lop3.b32 %0, %1, %2, %3, 0xb4;" : "=r"(y) : "r"(a), "r"(b), "r"(0x0f0f3355));
    v ^= x + y;
    if ((a & 0x11) == 0)
        v += s[a & 127];
    if ((a & b & 3) != 0 || (b ^ c) & 8)
        v ^= s[b & 127];
    const bool p = a > b, q = b > c, r = c & 4;
    if (p ^ q ^ r)
        v += s[c >> 25];
    if (!(p && q) == r)
        v -= s[t ^ (p ? 1 : 2)];
    if (p != q && (v & 1))
        v = ~v;
    out[i] = (int)v;
}

// Integers of every size to floats of every size and back, and indices from them.
extern "C" __global__ void int_conversions(const int *in, int *out, double *wide)
{
    __shared__ int s[256];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    s[t + 128] = in[i] * 3;
    __syncthreads();
    const unsigned a = mix(i);
    const u64 w = mix64(i);
    const float f = (float)s[t] * 1.7f - 40.0f;
    int v = s[(int)floorf(f) + 64] + s[(int)ceilf(f) + 64] * 3 + s[(int)rintf(f) + 64] * 5 + s[(int)truncf(f) + 64] * 7;
    v += s[__float2int_rn(f) + 64] + s[__float2int_ru(f) + 64] + s[__float2int_rd(f) + 64] + s[__float2int_rz(f) + 64];
    v += (int)(unsigned)fabsf(f * 1000.0f) + (int)roundf(f) + (int)lrintf(f * 0.5f) + (int)llrintf(f * 3.0f);
    v += s[(int)(s[t] * 0.1f)] + s[(int)(t / 3.0f)] + s[(unsigned)(t * 0.75f)] + s[(int)((t + 0.5f) * 1.25f)];
    const double d = s[t] * 1.9 - 100.0;
    v += s[(int)floor(d) + 100] + s[(int)d + 101] + __double2int_rn(d) + (int)__double2uint_rz(d + 200.0);
    v += (int)(i64)(d * 1e6) + (int)(u64)fabs(d * 1e9) + (int)__double2ll_rd(d * 7.7) + (int)(i64)(f * 1e5f);
    v ^= __float2int_rz((float)a) + (int)__float2uint_rn((float)a * 0.5f) + (int)(u64)(float)(a >> 3);
    v ^= (int)(signed char)(int)f + (int)(unsigned char)(int)(f + 60.0f) + (int)(short)f + (int)(unsigned short)fabsf(f);
    float sum = (float)(int)a + (float)a + (float)(i64)w + (float)w + (float)(signed char)a + (float)(short)a;
    sum += __int2float_ru((int)a) - __uint2float_rd(a) + __ll2float_rz((i64)w) + (float)(unsigned char)(a >> 8);
    sum += (float)(unsigned short)(a >> 5) + (float)(a >> 24) + (float)(a >> 8 & 255);
    double total = (double)(int)a + (double)a + (double)(i64)w + (double)w + __ull2double_rd(w) + sum;
    total += (double)f + (double)(float)d + __uint2double_rn(a) + floor(d) + ceil(d) + rint(d) + trunc(d);
    out[i] = v;
    wide[i] = total;
}

// Values that do not fit: NaN, infinities, too large and negative ones, and denormal floats.
extern "C" __global__ void int_conversion_edges(const int *in, int *out)
{
    const int t = threadIdx.x;
    const unsigned patterns[16] = {0x7fc00000u, 0x7f800000u, 0xff800000u, 0x4f000000u, 0xcf000001u, 0x4f800000u,
                                   0x80000000u, 0x00000001u, 0x3f000000u, 0x3fc00000u, 0xbf000000u, 0x5f000000u,
                                   0xdf800000u, 0x43800000u, 0xc3010000u, 0x7f7fffffu};
    const float f = __uint_as_float(patterns[in[t] & 15]);
    int *o = out + t * 16;
    o[0] = (int)f;
    o[1] = (int)(unsigned)f;
    o[2] = (int)(i64)f;
    o[3] = (int)((u64)f >> 32);
    o[4] = __float2int_rn(f);
    o[5] = (int)__float2uint_ru(f);
    const double d = (double)f * 1.5;
    o[6] = (int)d;
    o[7] = (int)(unsigned)d;
    o[8] = (int)((i64)d >> 32);
    o[9] = (int)((u64)d >> 31);
    short h;
    signed char c;
    asm("cvt.rzi.s16.f32 %0, %1;" : "=h"(h) : "f"(f));
    int wide_c;
    asm("cvt.rzi.s32.f32 %0, %1; cvt.sat.s8.s32 %0, %0;" : "=r"(wide_c) : "f"(f));
    c = (signed char)wide_c;
    unsigned sat;
    asm("cvt.sat.u16.s32 %0, %1;" : "=r"(sat) : "r"((int)f));
    o[10] = h;
    o[11] = c;
    o[12] = (int)(sat & 0xffff);
    float ft;
    asm("cvt.rni.ftz.f32.f32 %0, %1;" : "=f"(ft) : "f"(f));
    o[13] = __float_as_int(ft) & 0x7fffffff;
    o[14] = (int)__float_as_uint(floorf(f)) & 0x7f800000;
    o[15] = (f != f) + 2 * (f > 1.0f) + 4 * !(f > 1.0f) + 8 * (f <= 0.0f) + 16 * (bool)isinf(f);
}

// Comparisons of floats with NaN among them, ordered and not, leading to different indices.
extern "C" __global__ void int_float_compares(const float *in, int *out)
{
    __shared__ float s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = t % 9 == 4 ? __int_as_float(0x7fc00000) : t % 13 == 5 ? -0.0f : in[i];
    __syncthreads();
    const float a = s[t], b = s[t ^ 1], c = s[127 - t];
    int at = 0;
    if (a < b)
        at += 1;
    if (!(a < c))
        at += 2;
    if (a == b || b >= c)
        at += 4;
    if (a != a)
        at += 8;
    if (!(a <= 0.0f) && !(b > c))
        at += 16;
    if (a != a || b != b)
        at += 32;
    if (b < c || b > c)
        at += 64;
    const double d = a, e = c;
    int dat = (d < e) + 2 * !(d >= e) + 4 * (d == e) + 8 * (d != d) + 16 * !(d > 0.0);
    const float least = fminf(a, b), most = fmaxf(b, c);
    out[i] = at * 1000 + dat;
    out[i + 512] = __float_as_int(s[at]) == __float_as_int(s[dat]) ? 1 : s[at] > 0.0f;
    out[i + 1024] = (int)(least * 100.0f) + (int)(most * 100.0f) * 1000;
}

// Indices by square roots: row and column in a triangle; exact results needed.
extern "C" __global__ void int_triangle(const int *in, int *out)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    const int row = (int)((sqrtf(8.0f * i + 1.0f) - 1.0f) * 0.5f);
    const int column = i - row * (row + 1) / 2;
    const int drow = (int)((sqrt(8.0 * i + 1.0) - 1.0) * 0.5);
    const float length = rsqrtf((float)(s[t] + 1)) * 100.0f;
    const float ratio = (float)s[t] / (float)(s[t ^ 1] + 3);
    const float bits = log2f((float)(i + 1));
    out[i] = s[row & 127] * 3 + s[column & 127] + s[drow & 127] + s[(int)length & 127] + s[(int)(ratio * 16.0f) & 127]
        + s[(int)bits * 5] + (int)fmodf((float)i * 1.5f, 10.0f) + (int)exp2f((float)(t & 7));
}

// Three-dimensional indices from one number, swizzles and bit interleaving.
extern "C" __global__ void int_swizzles(const int *in, int *out, int width, int height)
{
    __shared__ int s[1024];
    const int t = threadIdx.x, i = blockIdx.x * 256 + t;
    for (int k = 0; k < 4; k++)
        s[t + k * 256] = in[t] + k;
    __syncthreads();
    const int z = i / (width * height), y = i / width % height, x = i % width;
    unsigned morton = 0;
    for (int k = 0; k < 5; k++)
        morton |= (x >> k & 1) << (2 * k) | (y >> k & 1) << (2 * k + 1);
    const int swizzled = (y & 31) * 32 + ((x ^ y) & 31);
    const int rotated = (y & 31) * 32 + ((x + y + z) & 31);
    const int xored = t ^ (t >> 3 & 7) << 2;
    const int gray = t ^ t >> 1;
    const int reversed = (int)(__brev(t) >> 24);
    out[i] = s[morton & 1023] + s[swizzled] * 2 + s[rotated] * 3 + s[xored & 1023] * 4 + s[gray] * 5 + s[reversed] * 6;
}
