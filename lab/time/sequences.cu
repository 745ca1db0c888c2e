// Issues K independent instructions of each warp, and reads the clock after the last issue and result.
#include "clocked.cuh"

// --- sequences: K independent instructions of each warp ------------------------------------
// Where an access goes: its lanes' places in shared memory and in global memory.
struct Place {
    u32 shared;
    char *global;
    u32 zero;
};
struct Kept {
    u32 r[4];
};
#define OP(name, text, ...)                                                                                \
    struct name {                                                                                          \
        template <int k> DEV void issue(const Place &p, Kept &x) { asm volatile(text __VA_ARGS__); }        \
    };
#define OUT1 : "=r"(x.r[0])
#define OUT2 : "=r"(x.r[0]), "=r"(x.r[1])
#define OUT4 : "=r"(x.r[0]), "=r"(x.r[1]), "=r"(x.r[2]), "=r"(x.r[3])
#define S(step) : "r"(p.shared), "n"(step * k) : "memory"
#define G(step) : "l"(p.global), "n"(step * k) : "memory"
#define IN1 , "r"(p.zero)
OP(lds32, "ld.shared.u32 %0, [%1+%2];", OUT1 S(128))
OP(lds64, "ld.shared.v2.u32 {%0,%1}, [%2+%3];", OUT2 S(256))
OP(lds128, "ld.shared.v4.u32 {%0,%1,%2,%3}, [%4+%5];", OUT4 S(512))
OP(ldsm1, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1+%2];", OUT1 S(512))
OP(ldsm4, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4+%5];", OUT4 S(512))
OP(lds4b, "ld.shared.u32 %0, [%1+%2];", OUT1 S(4))
OP(sts32, "st.shared.u32 [%0+%1], %2;", : : "r"(p.shared), "n"(128 * k), "r"(p.zero) : "memory")
OP(sts128, "st.shared.v4.u32 [%0+%1], {%2,%2,%2,%2};", : : "r"(p.shared), "n"(512 * k), "r"(p.zero) : "memory")
OP(ldg32, "ld.global.u32 %0, [%1+%2];", OUT1 G(128))
OP(ldg64, "ld.global.v2.u32 {%0,%1}, [%2+%3];", OUT2 G(256))
OP(ldg128, "ld.global.v4.u32 {%0,%1,%2,%3}, [%4+%5];", OUT4 G(512))
OP(ldg4b, "ld.global.u32 %0, [%1+%2];", OUT1 G(4))
OP(ldcg32, "ld.global.cg.u32 %0, [%1+%2];", OUT1 G(128))
OP(ldcg128, "ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4+%5];", OUT4 G(512))
OP(stg32, "st.global.u32 [%0+%1], %2;", : : "l"(p.global), "n"(128 * k), "r"(p.zero) : "memory")
OP(stg128, "st.global.v4.u32 [%0+%1], {%2,%2,%2,%2};", : : "l"(p.global), "n"(512 * k), "r"(p.zero) : "memory")
OP(stg4b, "st.global.u32 [%0+%1], %2;", : : "l"(p.global), "n"(4 * k), "r"(p.zero) : "memory")
OP(atoms, "atom.shared.add.u32 %0, [%1+%2], %3;", OUT1 : "r"(p.shared), "n"(128 * k), "r"(p.zero + 2) : "memory")
OP(atoms1, "atom.shared.add.u32 %0, [%1+%2], %3;", OUT1 : "r"(p.shared & ~127u), "n"(128 * k), "r"(p.shared & 127) : "memory")
OP(reds, "red.shared.add.u32 [%0+%1], %2;", : : "r"(p.shared), "n"(128 * k), "r"(p.zero + 2) : "memory")
OP(reds1, "red.shared.add.u32 [%0+%1], %2;", : : "r"(p.shared & ~127u), "n"(128 * k), "r"(p.shared & 127) : "memory")
OP(cass, "atom.shared.cas.b32 %0, [%1+%2], %3, %3;", OUT1 : "r"(p.shared), "n"(128 * k), "r"(p.zero + 2) : "memory")
OP(atomg, "atom.global.add.u32 %0, [%1+%2], %3;", OUT1 : "l"(p.global), "n"(128 * k), "r"(p.zero + 2) : "memory")
OP(redg, "red.global.add.u32 [%0+%1], %2;", : : "l"(p.global), "n"(128 * k), "r"(p.zero + 2) : "memory")
OP(redgf, "red.global.add.f32 [%0+%1], %2;", : : "l"(p.global), "n"(128 * k), "f"(__uint_as_float(p.zero)) : "memory")
OP(ldgsts4, "cp.async.ca.shared.global [%0+%2], [%1+%2], 4;", : : "r"(p.shared), "l"(p.global), "n"(128 * k) : "memory")
OP(ldgsts16, "cp.async.cg.shared.global [%0+%2], [%1+%2], 16;", : : "r"(p.shared), "l"(p.global), "n"(512 * k) : "memory")

template <class Op, int k, int K> struct Each {
    DEV void run(Op &op, const Place &p, Kept *kept) {
        op.template issue<k>(p, kept[k]);
        Each<Op, k + 1, K>::run(op, p, kept);
    }
};
template <class Op, int K> struct Each<Op, K, K> {
    DEV void run(Op &, const Place &, Kept *) {}
};

const int TILE = 12288;
// group, stride: lanes of a group are side by side (`width` bytes), groups are `stride` bytes apart.
// out: for each warp the clock before, after the last issue, after the last result.
template <class Op, int K>
__global__ void __launch_bounds__(512) sequence(char *memory, u64 *out, u32 zero, int width, int group, int stride) {
    __shared__ __align__(1024) u32 tile[TILE];
    for (int i = threadIdx.x; i < TILE; i += blockDim.x) tile[i] = 0;
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 offset = lane / group * stride + lane % group * width;
    Place p = {(u32)__cvta_generic_to_shared(tile) + offset, memory + offset, zero};
    Op op;
    u64 before = 0, issued = 0, done = 0;
#pragma unroll 1
    for (int round = 0; round < 3; round++) {
        Kept kept[K] = {};
        __syncthreads();
        before = now();
        Each<Op, 0, K>::run(op, p, kept);
        issued = now();
        u32 sum = 0;
#pragma unroll
        for (int k = 0; k < K; k++) sum ^= kept[k].r[0] ^ kept[k].r[1] ^ kept[k].r[2] ^ kept[k].r[3];
        if (sum == 0x12345677) out[1] = sum;
        asm volatile("" ::: "memory");
        done = now();
        asm volatile("cp.async.wait_all;" ::: "memory");
    }
    if (lane == 0) {
        out[3 * warp] = before;
        out[3 * warp + 1] = issued;
        out[3 * warp + 2] = done;
    }
}

// `: issued done`, from the first start to the last warp's end, and the same of warp 0 alone.
template <class Op, int K> void one_sequence(const char *name, int width, int group, int stride) {
    for (int warps : {1, 2, 4, 8, 16}) {
        sequence<Op, K><<<1, 32 * warps>>>(memory, out, 0, width, group, stride);
        auto t = fetched(3 * warps);
        u64 first = ~0ull, issued = 0, done = 0;
        for (int w = 0; w < warps; w++) {
            first = std::min(first, t[3 * w]);
            issued = std::max(issued, t[3 * w + 1]);
            done = std::max(done, t[3 * w + 2]);
        }
        printf("sequence op=%s k=%d warps=%d width=%d group=%d stride=%d : %llu %llu %llu %llu\n", name, K, warps, width,
               group, stride, issued - first, done - first, t[1] - t[0], t[2] - t[0]);
    }
}
template <class Op> void sequences(const char *name, int width, int group = 32, int stride = 0) {
    one_sequence<Op, 1>(name, width, group, stride);
    one_sequence<Op, 2>(name, width, group, stride);
    one_sequence<Op, 3>(name, width, group, stride);
    one_sequence<Op, 4>(name, width, group, stride);
    one_sequence<Op, 6>(name, width, group, stride);
    one_sequence<Op, 8>(name, width, group, stride);
    one_sequence<Op, 10>(name, width, group, stride);
    one_sequence<Op, 12>(name, width, group, stride);
    one_sequence<Op, 16>(name, width, group, stride);
    one_sequence<Op, 24>(name, width, group, stride);
}
template <class Op> void patterns(const char *name, int width, int group, int stride) {
    one_sequence<Op, 1>(name, width, group, stride);
    one_sequence<Op, 2>(name, width, group, stride);
    one_sequence<Op, 8>(name, width, group, stride);
    one_sequence<Op, 16>(name, width, group, stride);
}

int main() {
    start();
#define RUN(op, ...) sequences<op>(#op, __VA_ARGS__)
    RUN(lds32, 4); RUN(lds64, 8); RUN(lds128, 16); RUN(ldsm1, 16); RUN(ldsm4, 16);
    RUN(sts32, 4); RUN(sts128, 16); RUN(ldg32, 4); RUN(ldg64, 8); RUN(ldg128, 16);
    RUN(ldcg32, 4); RUN(ldcg128, 16); RUN(stg32, 4); RUN(stg128, 16);
    RUN(atoms, 4); RUN(atoms1, 4); RUN(reds, 4); RUN(reds1, 4); RUN(cass, 4); RUN(atomg, 4); RUN(redg, 4); RUN(redgf, 4);
    RUN(ldgsts4, 4); RUN(ldgsts16, 16);
    RUN(lds4b, 4, 1, 8); RUN(lds4b, 4, 1, 32); RUN(lds4b, 4, 1, 128); RUN(ldg4b, 4, 1, 128); RUN(ldg4b, 4, 1, 132); RUN(stg4b, 4, 1, 128);
    for (int stride : {32, 64, 256, 384, 512, 640, 1024, 2048, 4096, 8192, 16384}) patterns<ldg4b>("ldg4b", 4, 1, stride);
    for (int group : {2, 4, 8, 16}) patterns<ldg4b>("ldg4b", 4, group, 128);
    for (int group : {2, 4, 8, 16}) patterns<ldg4b>("ldg4b", 4, group, 4096);
    for (int group : {4, 8, 16}) patterns<ldg128>("ldg128", 16, group, 8192);
    for (int stride : {32, 256, 4096}) patterns<stg4b>("stg4b", 4, 1, stride);
    for (int group : {4, 8}) patterns<stg128>("stg128", 16, group, 8192);
    for (int group : {1, 8}) patterns<redg>("redg", 4, group, 4096);
    for (int group : {1, 8}) patterns<atomg>("atomg", 4, group, 4096);
}
