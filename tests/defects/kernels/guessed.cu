// What was once guessed or dropped; of each kernel there is one beside it that must stay known.

extern "C" __global__ void merged(const float *in, float *out)
{
    __shared__ float s[1024];
    for (int i = threadIdx.x; i < 1024; i += 128) s[i] = in[blockIdx.x * 1024 + i];
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < 8; i++) sum += s[threadIdx.x * 8 + i] * (i + 1); // the compiler reads by 16 bytes
    out[blockIdx.x * 128 + threadIdx.x] = sum;
}

extern "C" __global__ void dead(const float *in, float *out)
{
    __shared__ float s[1024];
    for (int i = threadIdx.x; i < 1024; i += 128) s[i] = in[i];
    __syncthreads();
    unsigned a = __cvta_generic_to_shared(&s[threadIdx.x % 32 * 4]), r[4], q[4];
    asm volatile("ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(a));
    asm volatile("ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(q[0]), "=r"(q[1]), "=r"(q[2]), "=r"(q[3]) : "r"(a + 512)); // nobody uses it
    out[threadIdx.x] = r[0] + r[1] + r[2] + r[3];
}

extern "C" __global__ void rows(const int *start, const int *count, const float *v, float *out)
{
    int lane = threadIdx.x & 7, row = threadIdx.x >> 3;
    int first = start[row], last = first + count[row];
    float sum = 0;
    for (int j = first + lane; j < last; j += 8) sum += v[j];
    out[threadIdx.x] = sum;
}

extern "C" __global__ void matrix(const double *a, double *c)
{
    double fragment;
    asm volatile("wmma.load.a.sync.aligned.row.m8n8k4.global.f64 {%0}, [%1], 4;" : "=d"(fragment) : "l"(a));
    c[threadIdx.x] = fragment;
}

extern "C" __global__ void compacted(const int *in, int *n, float *out)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (in[i] & 1) out[atomicAdd(n, 1)] = i;
}

extern "C" __global__ void counted(const int *in, int *n, float *out)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (in[i] & 1) atomicAdd(n, 1);
    out[i] = i;
}

extern "C" __global__ void compacted_in_block(float *out, const int *in)
{
    __shared__ int n;
    if (threadIdx.x == 0) n = 0;
    __syncthreads();
    if (in[threadIdx.x] & 1) out[atomicAdd(&n, 1) * 3] = 1;
}

extern "C" __global__ void approximate(int *out, int *squares)
{
    float f = threadIdx.x + blockIdx.x * 64 + 1.f;
    out[(int)__expf(__logf(f))] = 1;
    squares[(int)__powf(f, 2.f) * 8] = 1;
}

extern "C" __global__ void exact(int *out)
{
    float f = threadIdx.x + blockIdx.x * 64 + 1.f;
    out[(int)(f / 2.f)] = 1;
}

extern "C" __global__ void bulk(float *out, const int *index)
{
    __shared__ __align__(128) int s[32];
    __shared__ __align__(8) unsigned long long bar;
    unsigned to = __cvta_generic_to_shared(s), b = __cvta_generic_to_shared(&bar);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(b) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];"
                     ::"r"(to), "l"(index), "r"(b) : "memory");
        asm volatile("{ .reg .b64 t; mbarrier.arrive.expect_tx.shared.b64 t, [%0], 128; }" ::"r"(b) : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra W; }"
                 ::"r"(b) : "memory");
    out[s[threadIdx.x] * 8] = 1;
}

extern "C" __global__ void bulk_counted(float *out, const int *index)
{
    __shared__ __align__(128) int s[32];
    __shared__ __align__(8) unsigned long long bar;
    unsigned to = __cvta_generic_to_shared(s), b = __cvta_generic_to_shared(&bar);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(b) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];"
                     ::"r"(to), "l"(index), "r"(b) : "memory");
        asm volatile("mbarrier.expect_tx.relaxed.cta.shared.b64 [%0], 128;" ::"r"(b) : "memory");
    }
    __syncthreads();
    unsigned one = 1; // its register is the state's, too
    asm volatile("{ .reg .b64 t; .reg .pred p; mbarrier.arrive.shared.b64 t, [%0], %1;"
                 " W: mbarrier.try_wait.shared.b64 p, [%0], t; @!p bra W; }" ::"r"(b), "r"(one) : "memory");
    out[s[threadIdx.x] * 8] = 1;
}

extern "C" __global__ void bulk_out(float *out, const int *index, int *copy)
{
    __shared__ __align__(128) int s[32];
    s[threadIdx.x] = index[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;"
                     ::"l"(copy), "r"((unsigned)__cvta_generic_to_shared(s)) : "memory");
    out[s[threadIdx.x] * 8] = 1; // shared memory is as it was
}

extern "C" __global__ void never_written(float *out, const float *in)
{
    __shared__ int s[64];
    int i = threadIdx.x;
    if (i == 100) s[i % 64] = in[i];
    __syncthreads();
    out[s[i]] = 1;
}

extern "C" __global__ void written(float *out, const int *in)
{
    __shared__ int s[65];
    int i = threadIdx.x;
    s[i] = in[i];
    __syncthreads();
    out[s[i]] = 1;
}

extern "C" __global__ void waits_for_nobody(float *out)
{
    if (threadIdx.x < 32) {
        asm volatile("bar.sync 1, 64;");
        out[threadIdx.x] = 3;
    }
}

extern "C" __global__ void waits_for_two_warps(float *out)
{
    if (threadIdx.x < 64) {
        asm volatile("bar.sync 1, 64;");
        out[threadIdx.x] = 3;
    }
}

extern "C" __global__ void discards(int *index, float *out)
{
    asm volatile("discard.global.L2 [%0], 128;" ::"l"(index) : "memory");
    __syncthreads();
    out[*(volatile int *)(index + threadIdx.x)] = 1;
}

extern "C" __global__ void prefetches(int *index, float *out)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(index) : "memory");
    __syncthreads();
    out[*(volatile int *)(index + threadIdx.x)] = 1;
}

extern "C" __global__ void too_far(const float *in, float *out)
{
    int i = threadIdx.x;
    float left = in[i - 1];
    out[i] = i == 0 ? 0.f : left;
}

extern "C" __global__ void index_too_far(const int *in, float *out)
{
    out[in[threadIdx.x + 1]] = 1;
}

extern "C" __global__ void adds_halves(short *sum, float *out)
{
    int at = threadIdx.x & 1; // a compare-and-swap on the word around the last two bytes
    unsigned *word = (unsigned *)sum + at;
    unsigned seen = *word;
    atomicCAS(word, seen, seen + 1);
    out[threadIdx.x] = 1;
}

extern "C" __global__ void partly_known(int *sums, const int *in)
{
    __shared__ int s[64], unknown[64];
    int i = threadIdx.x;
    s[i] = 0;
    __syncthreads();
    atomicAdd(&s[i], i < 32 ? in[i] : unknown[i]);
    __syncthreads();
    if (i < 32) sums[s[i]] = 1;
}

extern "C" __global__ void stores_nowhere(int *index, float *out, int n)
{
    asm volatile("{ .reg .pred q; .reg .b64 a; setp.lt.s32 q, %0, %2; @q add.s64 a, %1, 4;"
                 "@q st.global.s32 [a], 0; }" ::"r"(threadIdx.x), "l"(index), "r"(n) : "memory");
    __syncthreads();
    out[*(volatile int *)(index + threadIdx.x)] = 1;
}

__device__ void copy(float4 *to, const float4 *from, int on)
{
    asm volatile("{ .reg .pred q; setp.ne.s32 q, %2, 0; @q cp.async.cg.shared.global [%0], [%1], 16; }"
                 ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(on) : "memory");
}

extern "C" __global__ void copies_to_places_of_others(const float4 *in, float4 *out)
{
    __shared__ float4 s[64];
    int i = threadIdx.x;
    copy(s + i % 16, in + i, i < 16);
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[i] = s[i % 16];
}

extern "C" __global__ void copies_to_its_own_places(const float4 *in, float4 *out)
{
    __shared__ float4 s[64];
    int i = threadIdx.x;
    copy(s + i, in + i, i < 16);
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[i] = s[i % 16];
}
