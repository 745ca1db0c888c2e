// Lanes that part and meet again: branches, loops, calls, votes and barriers.
// Copyright the memsim authors. Apache-2.0.
// Inputs `in` are integers from 0 to 127. Every kernel says with shared and global accesses which lanes were together.

#define FULL 0xffffffffu

static __device__ __forceinline__ unsigned mix(unsigned x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

// if/else three levels deep, with accesses on every level.
extern "C" __global__ void div_nested_if(const int *in, int *out)
{
    __shared__ int from[256], to[256];
    const int t = threadIdx.x, i = blockIdx.x * 256 + t;
    from[t] = in[i];
    to[t] = 0;
    __syncthreads();
    const int v = from[t];
    if (v & 1) {
        to[t] = from[(t * 3) & 255];
        if (v & 2) {
            to[t] += from[(t * 5) & 255] * v;
            if (v & 4)
                to[t] ^= from[(t * 32) & 255];
            else
                to[t] -= from[(t * 7 + 1) & 255];
        } else {
            to[t] += from[t ^ 1] % (v + 1);
        }
    } else if (v & 8) {
        to[t] = from[255 - t] - v;
    } else {
        out[i + gridDim.x * 256] = from[(t * 17) & 255];
    }
    __syncthreads();
    out[i] = to[t ^ 3];
}

// Every lane has its own number of rounds.
extern "C" __global__ void div_trip_counts(const int *in, int *out)
{
    __shared__ int s[256];
    const int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = in[i];
    __syncthreads();
    int sum = 0;
    const int rounds = in[i] & 15;
    for (int k = 0; k < rounds; k++)
        sum += s[(t * rounds + k * 9) & 255];
    out[i] = sum;
}

// continue, break and an address that depends on both.
extern "C" __global__ void div_break_continue(const int *in, int *out)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    int at = t, sum = 0;
    for (int k = 0; k < 24; k++) {
        const int v = s[at & 127];
        at += v + 1;
        if (v < 40)
            continue;
        sum += s[(v + k) & 127];
        if (v + k > 110)
            break;
        out[i + 1024] = sum;
        sum ^= s[(sum + t) & 127];
    }
    out[i] = sum;
}

// Lanes leave for good before a barrier: those behind it wait for the living only.
extern "C" __global__ void div_early_return(const int *in, int *out)
{
    __shared__ int s[256];
    const int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = in[i];
    __syncthreads();
    const int v = s[t ^ 2];
    if (v > 100)
        return;
    s[t] = v + 1;
    __syncthreads();
    if (t >= 200) {
        out[i] = -v;
        return;
    }
    out[i] = s[t] + (v > 50 ? s[t] * 2 : 7);
}

// A whole warp and parts of others go, and the rest runs a loop with barriers.
extern "C" __global__ void div_exit_then_barriers(const int *in, int *out)
{
    __shared__ int s[160];
    const int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    if (t / 32 == 2 || (t & 7) == 5)
        return;
    for (int k = 0; k < 4; k++) {
        const int v = s[(t + 8 * k + 8) % 160];
        __syncthreads();
        s[t] = v + k;
        __syncthreads();
    }
    out[t] = s[t];
}

// Exit in the middle of a loop.
extern "C" __global__ void div_exit_in_loop(const int *in, int *out)
{
    __shared__ int s[64];
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = in[i];
    __syncthreads();
    int at = t;
    for (int k = 0; k < 12; k++) {
        at = (at + s[at] + k) & 63;
        if (s[at] < 20) {
            out[i] = at + 1000 * k;
            return;
        }
    }
    out[i] = -1;
}

// A dense switch: a jump table.
extern "C" __global__ void div_switch_dense(const int *in, int *out)
{
    __shared__ int s[256];
    const int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = in[i];
    __syncthreads();
    int v = s[t];
    switch (v % 12) {
    case 0: out[i] = s[(t * 2) & 255]; break;
    case 1: v += s[(t * 3) & 255] * s[t ^ 1]; break;
    case 2: out[i + 1024] = v; v = s[t ^ 7];  // falls through
    case 3: v ^= s[(t + 100) & 255]; break;
    case 4: v = s[255 - t] / (v + 1); break;
    case 5: for (int k = 0; k < s[t]; k += 20) v += s[(t * k) & 255]; break;
    case 6: v -= s[(t * 16) & 255]; out[i + 1024] = v * 2; break;
    case 7: v = s[s[t] & 255]; break;
    case 8: v = s[t ^ 31] - s[t ^ 64]; break;
    case 9: out[i + 1024] = s[(t * 5) & 255]; v = 1; break;
    case 10: return;
    default: v = s[(t * 7 + 3) & 255] + 5;
    }
    out[i] = v;
}

// A sparse switch: a tree of comparisons.
extern "C" __global__ void div_switch_sparse(const int *in, int *out)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    int v = s[t];
    switch (v * v) {
    case 0: v = s[t ^ 1]; break;
    case 9: out[i + 512] = s[t ^ 3]; break;
    case 100: v += s[t ^ 5] * 3; break;
    case 400: v -= s[(t * 4) & 127]; break;
    case 2500: out[i + 512] = s[(t * 8) & 127]; v = 0; break;
    case 10000: v = s[127 - t]; break;
    case 12100: v ^= s[(t * 32) & 127]; break;
    default: v += 1;
    }
    out[i] = v;
}

// Conditions that stop at the first answer: the later ones load.
extern "C" __global__ void div_short_circuit(const int *in, const float *weight, int *out, int n)
{
    __shared__ int s[256];
    const int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = in[i];
    __syncthreads();
    int v = 0;
    if (i < n && s[t] > 10 && (s[s[t]] < 90 || weight[s[t]] > 0.5f) && !(s[t ^ 1] == 64))
        v = s[(t * 9) & 255];
    else if ((t & 1) || s[s[t] ^ 5] > 60)
        v = -s[(t * 2) & 255];
    out[i] = v;
}

// Loops of different lengths inside the two sides of a branch, and a loop around both.
extern "C" __global__ void div_loops_in_branches(const int *in, int *out)
{
    __shared__ int s[256];
    const int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = in[i];
    __syncthreads();
    int v = s[t], sum = 0;
    for (int round = 0; round < 3; round++) {
        if (v & 1) {
            for (int k = v & 7; k > 0; k--)
                sum += s[(t + 32 * k + round) & 255];
        } else {
            int k = 0;
            do {
                sum -= s[(t * 8 + k) & 255];
                k += 3;
                for (int m = 0; m < (k & 3); m++)
                    sum ^= s[(sum + m) & 255];
            } while (k < (v >> 3));
        }
        v = s[(t + v + round) & 255];
    }
    out[i] = sum;
}

// goto into the middle of a loop (two ways in) and out of two loops at once.
extern "C" __global__ void div_goto(const int *in, int *out)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    int v = s[t], k = v & 7, sum = 0;
    if (v & 8)
        goto middle;
top:
    sum += s[(t + k * 4) & 127];
    if (sum > 300)
        goto out_of_all;
middle:
    for (int m = 0; m < 3; m++) {
        sum ^= s[(t * 2 + m + k) & 127];
        if (sum == 77)
            goto out_of_all;
    }
    if (--k > 0)
        goto top;
    sum += 10000;
out_of_all:
    out[i] = sum;
}

// Two exits with different work behind them.
extern "C" __global__ void div_two_exits(const int *in, int *out)
{
    __shared__ int s[256];
    const int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = in[i];
    __syncthreads();
    int at = t, steps = 0;
    while (steps < 20) {
        at = (at * 5 + s[at]) & 255;
        if (s[at] == s[t]) {
            out[i + 1024] = s[(at * 2) & 255];
            at = 0;
            break;
        }
        if ((at & 31) == 31) {
            steps += s[at ^ 1];
            out[i + 1024] = -steps;
            break;
        }
        steps++;
    }
    out[i] = at * 100 + steps;
}

// Parts of a warp that hand values on by shared memory, each with its own __syncwarp.
extern "C" __global__ void div_syncwarp_masks(const int *in, int *out)
{
    __shared__ int s[128];
    const int t = threadIdx.x, lane = t & 31, base = t & ~31, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncwarp();
    if (lane < 16) {
        for (int k = 1; k < 16; k *= 2) {
            const int v = s[base + ((lane + k) & 15)];
            __syncwarp(0x0000ffffu);
            s[t] += v;
            __syncwarp(0x0000ffffu);
        }
    } else if (lane < 24) {
        for (int k = 1; k < 8; k++) {
            const int v = s[base + 16 + ((lane + k) & 7)];
            __syncwarp(0x00ff0000u);
            s[t] ^= v;
            __syncwarp(0x00ff0000u);
        }
    } else {
        s[t] = -1;
    }
    __syncwarp();
    out[i] = s[t ^ 31];
}

// Shuffles with the masks of the two sides of a branch, and of all lanes after it.
extern "C" __global__ void div_shfl_masks(const int *in, int *out)
{
    const int t = threadIdx.x, lane = t & 31, i = blockIdx.x * 64 + t;
    int v = in[i];
    if (lane < 12) {
        v += __shfl_down_sync(0x00000fffu, v, 1, 4);
        v ^= __shfl_xor_sync(0x00000fffu, v, 1);
    } else {
        for (int k = 0; k < (lane & 3); k++)
            v = v * 3 + k;
        v += __shfl_sync(0xfffff000u, v, 12 + (lane & 15));
    }
    v += __shfl_up_sync(FULL, v, 1);
    out[i] = v;
}

// Shuffles of every kind with a width below 32, and of 64-bit values.
extern "C" __global__ void div_shfl_widths(const int *in, int *out, double *wide)
{
    const int t = threadIdx.x, i = blockIdx.x * 96 + t;
    int v = in[i];
    v += __shfl_up_sync(FULL, v, 2, 8);
    v += __shfl_down_sync(FULL, v, 5, 16);
    v += __shfl_xor_sync(FULL, v, 3, 4);
    v += __shfl_sync(FULL, v, v & 15, 8);
    out[i] = v;
    double d = v * 0.5;
    d += __shfl_xor_sync(FULL, d, 16);
    d += __shfl_sync(FULL, d, (t * 7) & 31);
    wide[i] = d;
    int got, whole;
    asm volatile("{ .reg .pred p; shfl.sync.up.b32 %0|p, %2, %3, 0, -1; selp.s32 %1, 1, 0, p; }"
                 : "=r"(got), "=r"(whole) : "r"(v), "r"(t & 7));
    out[i + 192] = whole ? got : -got;
}

// ballot, any and all, with masks that a ballot made, on both sides of a branch.
extern "C" __global__ void div_votes(const int *in, int *out)
{
    __shared__ unsigned s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    const int v = in[i];
    const unsigned odd = __ballot_sync(FULL, v & 1);
    s[t] = odd;
    if (v & 1) {
        const unsigned high = __ballot_sync(odd, v > 64);
        s[t] = high + __popc(high & ((1u << (t & 31)) - 1));
        if (__any_sync(odd, v > 120))
            s[t] ^= 0x80u;
    } else {
        s[t] += __all_sync(~odd, v < 126) ? 1 : 2;
    }
    __syncwarp();
    out[i] = s[t ^ 1] + (__all_sync(FULL, v >= 0) ? 5 : 0) + (__any_sync(FULL, v == 3) ? 16 : 0);
}

// Lanes with the same key find each other; the first of them writes for all.
extern "C" __global__ void div_match(const int *in, int *out)
{
    const int t = threadIdx.x, lane = t & 31, i = blockIdx.x * 128 + t;
    const int key = in[i] & 7;
    const unsigned peers = __match_any_sync(FULL, key);
    int sum = 0;
    for (unsigned left = peers; left; left &= left - 1)
        sum += __ffs(left);
    if (lane == __ffs(peers) - 1)
        out[(i >> 5) * 8 + key] = sum;
    int same;
    const unsigned all = __match_all_sync(FULL, key < 8 ? 1 : t, &same);
    const unsigned long long wide = (unsigned long long)key << 33;
    const unsigned far = __match_any_sync(FULL, wide);
    out[1024 + i] = (same ? __popc(all) : 0) + __popc(far) * 100;
    if (lane > 9)
        out[2048 + i] = __match_any_sync(0xfffffc00u, in[i] & 3);
}

// Reductions in one instruction, over all lanes and over parts that are known only at run time.
extern "C" __global__ void div_redux(const int *in, int *out)
{
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    const int v = in[i] - 60;
    int sum = __reduce_add_sync(FULL, v);
    sum += __reduce_min_sync(FULL, v) * 3 + __reduce_max_sync(FULL, v) * 5;
    sum ^= (int)__reduce_and_sync(FULL, (unsigned)v | 0x70u);
    sum += (int)__reduce_or_sync(FULL, (unsigned)v & 0x33u);
    sum ^= (int)__reduce_xor_sync(FULL, (unsigned)v * 9u);
    const unsigned least = __reduce_min_sync(FULL, (unsigned)v), most = __reduce_max_sync(FULL, (unsigned)v);
    const unsigned peers = __match_any_sync(FULL, v & 3);
    const int part = __reduce_add_sync(peers, v);
    const int top = __reduce_max_sync(peers, v + t);
    out[i] = sum + part * 7 + top;
    out[i + 512] = (int)(least ^ most);
    if (v > 0)
        out[i + 1024] = __reduce_add_sync(__activemask(), 1);
}

// One atomic for all the lanes that are here: __activemask, the first lane, a shuffle of its answer.
// Which block comes first is open.
extern "C" __global__ void div_aggregated_atomic(const int *in, int *counter, int *out)
{
    const int t = threadIdx.x, lane = t & 31, i = blockIdx.x * 128 + t;
    const int v = in[i];
    if (v % 3 == 0) {
        const unsigned here = __activemask();
        const int leader = __ffs(here) - 1;
        int base = 0;
        if (lane == leader)
            base = atomicAdd(counter, __popc(here));
        base = __shfl_sync(here, base, leader);
        out[base + __popc(here & ((1u << lane) - 1))] = i * 128 + v;
    }
}

// The compiler's own aggregation: every lane adds one to one counter.
extern "C" __global__ void div_counter(const int *in, unsigned *counter, int *out)
{
    __shared__ unsigned n;
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (threadIdx.x == 0)
        n = 0;
    __syncthreads();
    if (in[i] > 50) {
        atomicAdd(counter, 1u);
        const unsigned place = atomicAdd(&n, 1u);
        out[blockIdx.x * 128 + place] = 1;
    }
}

// Warps work in turns, with barriers between.
extern "C" __global__ void div_phases(const int *in, int *out)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    for (int phase = 0; phase < 4; phase++) {
        if (t / 32 == phase) {
            const int v = s[(t + 32) & 127];
            if (t & 1)
                s[t] += v;
            else
                s[t] ^= s[(t + 64) & 127];
        } else if (t / 32 > phase) {
            out[i + 256] = phase;
        }
        __syncthreads();
    }
    out[i] = s[127 - t];
}

// 40 threads: the second warp has eight.
extern "C" __global__ void div_block_40(const int *in, int *out)
{
    __shared__ int s[40];
    const int t = threadIdx.x, i = blockIdx.x * 40 + t;
    s[t] = in[i];
    __syncthreads();
    int v = s[39 - t];
    if (t % 3) {
        v += s[(t * 7) % 40];
        v += __popc(__activemask());
    }
    for (int k = t; k < 40; k += 9)
        v ^= s[k];
    out[i] = v;
}

// 97 threads, and votes of the block in a warp of one.
extern "C" __global__ void div_block_97(const int *in, int *out)
{
    __shared__ int s[97];
    const int t = threadIdx.x, i = blockIdx.x * 97 + t;
    s[t] = in[i];
    int count = __syncthreads_count(in[i] > 64);
    if (t >= 30)
        count += s[t - 30];
    count += __syncthreads_or(in[i] == 99) ? 1000 : 0;
    out[i] = count + s[96 - t];
}

// A block of three dimensions whose rows end within warps; a grid of two.
extern "C" __global__ void div_block_3d(const int *in, int *out)
{
    __shared__ int s[3][7][5];
    const int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
    const int block = blockIdx.y * gridDim.x + blockIdx.x;
    const int i = block * 105 + (z * 7 + y) * 5 + x;
    s[z][y][x] = in[i];
    __syncthreads();
    int v = s[2 - z][6 - y][4 - x];
    if (y > 3 && z != 1)
        v += s[z][y - 3][x] * blockDim.y;
    else if (x & 1)
        v -= s[(z + 1) % 3][y][x - 1];
    out[i] = v;
}

static __device__ __noinline__ int walk(const int *s, int at, int steps)
{
    int sum = 0;
    for (int k = 0; k < steps; k++) {
        at = (at + s[at] + 1) & 127;
        sum += s[at];
    }
    return sum;
}

// A function that is not inlined, called on both sides of a branch and from within a loop.
extern "C" __global__ void div_call(const int *in, int *out)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    int v = s[t];
    if (v & 1)
        v += walk(s, t, v & 3);
    else
        for (int k = 0; k < (v & 7); k += 2)
            v -= walk(s, (t * 3 + k) & 127, k);
    out[i] = v;
}

static __device__ __noinline__ int inner(int *s, int at, int v)
{
    if (v & 2)
        return s[at ^ 1] + v;
    s[at] = v;
    return s[at] * 3;
}

static __device__ __noinline__ int outer(int *s, int at, int v)
{
    int sum = v > 30 ? inner(s, at, v) : 4;
    for (int k = 0; k < (v & 3); k++)
        sum += inner(s, at, sum + k);
    return sum;
}

// Calls within calls: return addresses and saved registers are on the stack.
extern "C" __global__ void div_nested_calls(const int *in, int *out)
{
    __shared__ int s[256];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t * 2] = in[i];
    s[t * 2 + 1] = in[i ^ 1];
    __syncwarp();
    int v = in[i];
    if (v % 5)
        v += outer(s, t * 2, v);
    v += outer(s, t * 2, v ^ 21) * 2;
    out[i] = v;
}

typedef int (*Operation)(const int *, int);
static __device__ __noinline__ int op_next(const int *s, int t) { return s[(t + 1) & 127]; }
static __device__ __noinline__ int op_stride(const int *s, int t) { return s[(t * 8) & 127] * 2; }
static __device__ __noinline__ int op_chase(const int *s, int t) { return s[s[s[t]]]; }
static __device__ __noinline__ int op_sum(const int *s, int t)
{
    int sum = 0;
    for (int k = 0; k < (t & 7); k++)
        sum += s[(t + 16 * k) & 127];
    return sum;
}
static __device__ const Operation operations[4] = {op_next, op_stride, op_chase, op_sum};

// Calls through a table of functions: by a value that all lanes share, and by one that each has for itself.
extern "C" __global__ void div_function_table(const int *in, int *out, int which)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    int v = operations[which & 3](s, t);
    v += operations[s[t] & 3](s, t ^ 5);
    out[i] = v;
}

// A function pointer that one of two branches set.
extern "C" __global__ void div_function_choice(const int *in, int *out)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    Operation operation = op_next;
    if (s[t] > 60)
        operation = op_sum;
    else if (s[t] & 1)
        operation = op_chase;
    out[i] = operation(s, t);
}

// Functions behind pointers that part and call further ones behind pointers: the joins that wait are saved, too.
static __device__ __noinline__ int op_both(const int *s, int t)
{
    int sum = s[t];
    if (sum & 1)
        sum += operations[sum & 3](s, t ^ 1);
    else if (sum & 4)
        for (int k = 0; k < (sum & 3) + 1; k++)
            sum ^= operations[(sum + k) & 3](s, (t + k) & 127);
    return sum + operations[t & 1](s, t);
}

static __device__ __noinline__ int op_less(const int *s, int t)
{
    int sum = 3;
    while (sum < s[t])
        sum += operations[sum & 3](s, sum & 127) + 9;
    return sum;
}

static __device__ const Operation more_operations[2] = {op_both, op_less};

extern "C" __global__ void div_deep_calls(const int *in, int *out)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    int v = 0;
    if (s[t ^ 2] > 40)
        v = more_operations[s[t] & 1](s, t);
    else
        for (int k = 0; k < (s[t] & 1) + 1; k++)
            v += more_operations[k](s, t ^ 7);
    out[i] = v;
}

static __device__ __noinline__ int exchange(int v, int from)
{
    const unsigned odd = __ballot_sync(FULL, v & 1);
    return __shfl_sync(FULL, v, from) * 64 + __popc(odd);
}

// One shuffle of all lanes that they come to from two places: the instruction waits and brings them together.
extern "C" __global__ void div_shared_shuffle(const int *in, int *out)
{
    __shared__ int s[64];
    const int t = threadIdx.x, lane = t & 31, i = blockIdx.x * 64 + t;
    s[t] = in[i];
    __syncthreads();
    int v = s[t];
    if (v % 3 == 0) {
        v = exchange(v, lane ^ 1) + s[t ^ 3];
    } else {
        for (int k = 0; k < (v & 3); k++)
            v += s[(t + k) & 63];
        v = exchange(v + 1, 31 - lane) - s[(t * 2) & 63];
    }
    out[i] = v;
}

static __device__ __noinline__ int exchange_some(unsigned mask, int v, int from)
{
    const int sum = __reduce_add_sync(mask, v);
    const unsigned odd = __ballot_sync(mask, v & 1);
    const int all = __all_sync(mask, v > 3) + 2 * __any_sync(mask, v > 120);
    return __shfl_sync(mask, v, from) * 64 + __popc(odd) + sum * 3 + all;
}

// The same with a mask that is known only at run time: of all lanes, or of two halves that come apart again.
extern "C" __global__ void div_shared_votes(const int *in, int *out, unsigned low, unsigned high)
{
    __shared__ int s[64];
    const int t = threadIdx.x, lane = t & 31, i = blockIdx.x * 64 + t;
    s[t] = in[i];
    __syncthreads();
    int v = s[t];
    if (v % 3 == 0) {
        v = exchange_some(low | high, v, lane ^ 1) + s[t ^ 3];
    } else {
        for (int k = 0; k < (v & 3); k++)
            v += s[(t + k) & 63];
        v = exchange_some(low | high, v + 1, 31 - lane) - s[(t * 2) & 63];
    }
    const unsigned mine = low >> lane & 1 ? low : high;
    if (v & 1)
        v = exchange_some(mine, v, lane ^ 2) ^ s[(t * 4) & 63];
    else
        v += exchange_some(mine, v ^ 5, lane ^ 1);
    out[i] = v;
}

// Barriers that count, and the answers to all.
extern "C" __global__ void div_barrier_votes(const int *in, int *out)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    const int count = __syncthreads_count(in[i] & 1);
    const int all = __syncthreads_and(s[127 - t] >= 0);
    const int any = __syncthreads_or(s[t] == 127);
    int v = s[(t + count) & 127];
    while (__syncthreads_or(v > 70 && v < 1000)) {
        if (v > 70)
            v -= s[t] | 1;
    }
    out[i] = v + all * 1000 + any * 2000;
}

// Barriers of a part of the block: two pairs of warps, and one that hands over to the other.
extern "C" __global__ void div_named_barriers(const int *in, int *out)
{
    __shared__ int s[128], done[64];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    if (t < 64) {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        const int v = s[63 - t];
        asm volatile("bar.sync 1, 64;" ::: "memory");
        done[t] = v * 2;
        asm volatile("bar.arrive 3, 128;" ::: "memory");
        out[i] = v;
    } else {
        asm volatile("bar.sync 2, 64;" ::: "memory");
        int v = s[127 + 64 - t];
        asm volatile("bar.sync 3, 128;" ::: "memory");
        v += done[(t * 2) & 63];
        out[i] = v;
    }
    const int which = 4 + t / 64;
    asm volatile("bar.sync %0, 64;" ::"r"(which) : "memory");
    out[i + 1024] = s[t ^ 63];
}

// Round the set bits of a vote: a loop that the whole warp runs, with one lane's value in it.
extern "C" __global__ void div_ballot_loop(const int *in, int *out)
{
    __shared__ int s[64];
    const int t = threadIdx.x, lane = t & 31, base = t & 32, i = blockIdx.x * 64 + t;
    const int v = in[i];
    s[t] = v;
    __syncwarp();
    int sum = 0;
    unsigned left = __ballot_sync(FULL, v > 90);
    while (left) {
        const int source = __ffs(left) - 1;
        left &= left - 1;
        const int theirs = __shfl_sync(FULL, v, source);
        sum += theirs + s[base + ((lane + source) & 31)];
    }
    out[i] = sum;
}

// A work loop: lanes that are ready vote, and all leave together; shuffles behind a loop of different lengths.
extern "C" __global__ void div_work_loop(const int *in, int *out)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    int v = s[t], rounds = 0;
    bool ready = false;
    while (!__all_sync(FULL, ready)) {
        if (!ready) {
            v = s[(v + rounds) & 127];
            ready = ++rounds > 12 || v < 30;
        }
    }
    for (int k = 0; k < (v & 3); k++)
        rounds += s[(t + k * 4) & 127];
    for (int step = 16; step > 0; step >>= 1)
        rounds += __shfl_xor_sync(FULL, rounds, step);
    out[i] = rounds;
}

// Conditions without branches: predicated loads and stores, and sixteen of them from the bits of one register.
extern "C" __global__ void div_predicated(const int *in, int *out, int n)
{
    __shared__ int s[2048];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    const int v = in[i] * 513;
    int x[16];
#pragma unroll
    for (int k = 0; k < 16; k++) {
        x[k] = 0;
        s[t + k * 128] = -1;
    }
#pragma unroll
    for (int k = 0; k < 16; k++)
        if (v >> k & 1)
            x[k] = in[(i * 4 + k * 16) & 511];
#pragma unroll
    for (int k = 0; k < 16; k++)
        if (v >> k & 1)
            s[t + k * 128] = x[k];
    __syncthreads();
    int sum = 0;
#pragma unroll
    for (int k = 0; k < 16; k++)
        sum += x[k] << (k & 7);
    if (i < n)
        out[i] = sum + s[(t * 48 + 5) & 2047];
    if (v & 1 && i + 512 < 2 * n)
        out[i + 512] = t;
}

// Bounds of a tile, held as predicates through the loop around it.
extern "C" __global__ void div_guarded_tile(const float *in, float *out, int rows, int columns, int rounds)
{
    const int x = threadIdx.x, y0 = (blockIdx.x * 4 + threadIdx.y) * 8;
    bool inside[8];
#pragma unroll
    for (int k = 0; k < 8; k++)
        inside[k] = y0 + k < rows && x * 3 + k < columns;
    float sum[8] = {};
    for (int round = 0; round < rounds; round++) {
#pragma unroll
        for (int k = 0; k < 8; k++)
            if (inside[k])
                sum[k] += in[(y0 + k) * columns + (x * 3 + k + round) % columns];
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < 8; k++)
        if (inside[k])
            out[(y0 + k) * columns + x * 3 + k] = sum[k];
}

// One side of a branch waits for a value that the other side writes: both must come forward.
extern "C" __global__ void div_forward_progress(const int *in, int *out)
{
    __shared__ volatile int flag[4];
    __shared__ volatile int s[128];
    const int t = threadIdx.x, warp = t >> 5, i = blockIdx.x * 128 + t;
    if ((t & 31) == 0)
        flag[warp] = 0;
    __syncthreads();
    if ((t & 31) < 7) {
        s[t] = in[i] + 1;
        __threadfence_block();
        __syncwarp(0x7fu);
        if ((t & 31) == 0)
            flag[warp] = 1;
        out[i] = 0;
    } else {
        while (flag[warp] == 0)
            __nanosleep(20);
        __threadfence_block();
        out[i] = s[(t & ~31) + (t % 7)];
    }
}

// A loop whose exits leave different numbers of lanes for a loop around it, three deep.
extern "C" __global__ void div_three_loops(const int *in, int *out)
{
    __shared__ int s[96];
    const int t = threadIdx.x, i = blockIdx.x * 96 + t;
    s[t] = in[i];
    __syncthreads();
    int sum = 0;
    for (int a = 0; a < (s[t] & 3) + 1; a++) {
        for (int b = a; b < 6; b += (s[(t + a) % 96] & 1) + 1) {
            int c = s[(t + b) % 96];
            while (c > 3) {
                sum += s[c % 96];
                if (sum % 7 == 3)
                    goto next_a;
                c >>= 2;
            }
            if (sum > 900)
                break;
        }
    next_a:
        sum += a;
        if (mix(sum + t) % 11 == 0)
            continue;
        out[i + 512] = sum;
    }
    out[i] = sum;
}

// Lanes of a state machine, each in its own state.
extern "C" __global__ void div_states(const int *in, int *out)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    int state = s[t] & 3, v = t, steps = 0;
    while (state != 7 && steps < 16) {
        steps++;
        switch (state) {
        case 0: v = s[v & 127]; state = v & 1 ? 1 : 4; break;
        case 1: v += s[(v * 3) & 127]; state = 2 + (v & 1); break;
        case 2: out[i + 1024] = v; state = v > 60 ? 5 : 0; break;
        case 3: v ^= s[(t + steps) & 127]; state = 6; break;
        case 4: v = v * 3 + s[(t * 2) & 127]; state = 1; break;
        case 5: v -= s[t ^ 8]; state = v & 2 ? 7 : 3; break;
        default: out[i + 2048] = v; state = (v + steps) & 1 ? 0 : 7;
        }
    }
    out[i] = v;
}
