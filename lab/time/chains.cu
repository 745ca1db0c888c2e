// Latencies by chains of dependent instructions, and what a barrier costs; of one block.
#include "clocked.cuh"

__constant__ u32 constants[4096];
struct Chain {
    u32 a;            // the chain's register, zero
    u64 p;            // the same of 64 bits
    double d;
    float f;
    u32 m[4];
    float x[4];
    u32 tile;
    char *global;
};
#define STEP(name, ...)                                                                                    \
    struct name {                                                                                          \
        DEV void step(Chain &c) { asm volatile(__VA_ARGS__); }                                              \
    };
#define A "+r"(c.a)
namespace steps {
STEP(ffma, "fma.rn.f32 %0, %0, %0, %0;" : "+f"(c.f))
STEP(fadd, "add.rn.f32 %0, %0, %0;" : "+f"(c.f))
STEP(imad, "mad.lo.u32 %0, %0, %0, %0;" : A)
STEP(imad_wide, "{.reg .u32 x, y; mov.b64 {x,y}, %0; mad.wide.u32 %0, x, y, %0;}" : "+l"(c.p))
STEP(iadd3, "add.u32 %0, %0, %0;" : A)
STEP(lop3, "lop3.b32 %0, %0, %0, 7, 0x96;" : A)
STEP(shf, "shf.l.wrap.b32 %0, %0, %0, 7;" : A)
STEP(prmt, "prmt.b32 %0, %0, %0, 0x3201;" : A)
STEP(hfma2, "fma.rn.f16x2 %0, %0, %0, %0;" : A)
STEP(fmnmx, "min.f32 %0, %0, 0f3f000000;" : "+f"(c.f))
STEP(sel, "{.reg .pred p; setp.ne.u32 p, %0, 0; selp.u32 %0, %0, 7, p;}" : A)
STEP(dfma, "fma.rn.f64 %0, %0, %0, %0;" : "+d"(c.d))
STEP(dadd, "add.rn.f64 %0, %0, %0;" : "+d"(c.d))
STEP(mufu_ex2, "ex2.approx.ftz.f32 %0, %0;" : "+f"(c.f))
STEP(mufu_rsq, "rsqrt.approx.ftz.f32 %0, %0;" : "+f"(c.f))
STEP(mufu_sin, "sin.approx.ftz.f32 %0, %0;" : "+f"(c.f))
STEP(popc, "popc.b32 %0, %0;" : A)
STEP(flo, "bfind.u32 %0, %0;" : A)
STEP(brev, "brev.b32 %0, %0;" : A)
STEP(f2i, "{.reg .f32 g; mov.b32 g, %0; cvt.rni.s32.f32 %0, g;}" : A)
STEP(i2f, "{.reg .f32 g; cvt.rn.f32.u32 g, %0; mov.b32 %0, g;}" : A)
STEP(f2f, "{.reg .f32 g; cvt.rn.f32.f64 g, %0; cvt.f64.f32 %0, g;}" : "+d"(c.d))
STEP(frnd, "cvt.rni.f32.f32 %0, %0;" : "+f"(c.f))
STEP(vote, "{.reg .pred p; setp.ne.u32 p, %0, 3; vote.sync.ballot.b32 %0, p, -1;}" : A)
STEP(match_any, "match.any.sync.b32 %0, %0, -1;" : A)
STEP(redux, "redux.sync.add.u32 %0, %0, -1;" : A)
STEP(shfl, "shfl.sync.idx.b32 %0, %0, %0, 31, -1;" : A)
STEP(lds32, "ld.shared.u32 %0, [%0];" : "+r"(c.tile))
STEP(ldsm1, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%0];" : "+r"(c.tile))
STEP(ldsm4, "{.reg .u32 x,y,z; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, x, y, z}, [%0];}" : "+r"(c.tile))
STEP(sts_lds, "st.shared.u32 [%0], %0; ld.shared.u32 %0, [%0];" : "+r"(c.tile) : : "memory")
STEP(atoms, "atom.shared.or.b32 %0, [%0], 0;" : "+r"(c.tile) : : "memory")
STEP(atoms_add, "{.reg .u32 z; and.b32 z, %0, 0; atom.shared.add.u32 %0, [%0], z;}" : "+r"(c.tile) : : "memory")
STEP(cass, "atom.shared.cas.b32 %0, [%0], %0, %0;" : "+r"(c.tile) : : "memory")
#define FAR(text) "{.reg .u32 x, y, z, w; mov.b64 {x, y}, %0; " text " mov.b64 %0, {x, y};}" : "+l"(c.global) : : "memory"
STEP(ldg32, FAR("ld.global.u32 x, [%0];"))
STEP(ldg64, "ld.global.u64 %0, [%0];" : "+l"(c.global) : : "memory")
STEP(ldcg32, FAR("ld.global.cg.u32 x, [%0];"))
STEP(ldcg64, "ld.global.cg.u64 %0, [%0];" : "+l"(c.global) : : "memory")
STEP(ld_volatile, FAR("ld.volatile.global.u32 x, [%0];"))
STEP(stg_ldg, FAR("st.global.u32 [%0], x; ld.global.u32 x, [%0];"))
STEP(atomg, FAR("atom.global.or.b32 x, [%0], 0;"))
STEP(casg, FAR("atom.global.cas.b32 x, [%0], x, x;"))
STEP(membar_cta, "membar.cta; add.u32 %0, %0, 1;" : A : : "memory")
STEP(membar_gl, "membar.gl; add.u32 %0, %0, 1;" : A : : "memory")
STEP(bar_sync, "bar.sync 0; add.u32 %0, %0, 1;" : A : : "memory")
STEP(bar_warp, "bar.warp.sync -1; add.u32 %0, %0, 1;" : A : : "memory")
STEP(hmma_f32, "{.reg .b32 t; mov.b32 t, %0; mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{t,t,t,t},{t,t},{%0,%1,%2,%3};}" : "+f"(c.x[0]), "+f"(c.x[1]), "+f"(c.x[2]), "+f"(c.x[3]))
STEP(hmma_c, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%4,%4,%4},{%4,%4},{%0,%1,%2,%3};" : "+f"(c.x[0]), "+f"(c.x[1]), "+f"(c.x[2]), "+f"(c.x[3]) : "r"(c.a))
STEP(hmma_k8, "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%4},{%4},{%0,%1,%2,%3};" : "+f"(c.x[0]), "+f"(c.x[1]), "+f"(c.x[2]), "+f"(c.x[3]) : "r"(c.a))
STEP(hmma_f16, "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1},{%2,%2,%2,%2},{%2,%2},{%0,%1};" : "+r"(c.m[0]), "+r"(c.m[1]) : "r"(c.a))
STEP(hmma_tf32, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%4,%4,%4},{%4,%4},{%0,%1,%2,%3};" : "+f"(c.x[0]), "+f"(c.x[1]), "+f"(c.x[2]), "+f"(c.x[3]) : "r"(c.a))
STEP(imma, "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%4,%4,%4},{%4,%4},{%0,%1,%2,%3};" : "+r"(c.m[0]), "+r"(c.m[1]), "+r"(c.m[2]), "+r"(c.m[3]) : "r"(c.a))
STEP(dmma, "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%0},{%0},{%0},{%0,%0};" : "+d"(c.d))
struct ldc {
    DEV void step(Chain &c) { c.a = constants[c.a]; asm volatile("" : "+r"(c.a)); }
};
struct empty {
    DEV void step(Chain &c) { asm volatile("" : "+r"(c.a)); }
};
}  // namespace steps

const int STEPS = 16;
// The clock of each warp before and after `rounds` of STEPS dependent instructions, after one round.
template <class Op> __global__ void chain(char *memory, u64 *out, int rounds, u32 zero, int width) {
    __shared__ __align__(1024) u32 tile[8192];
    u32 base = __cvta_generic_to_shared(tile), lane = threadIdx.x % 32;
    for (int i = threadIdx.x; i < 8192; i += blockDim.x) tile[i] = base + i * 4 / width * width;
    char *own = memory + threadIdx.x * width;
    for (int i = 0; i < width / 4; i++) ((u32 *)own)[i] = i == 0 ? (u32)(u64)own : i == 1 ? u32((u64)own >> 32) : 0;
    __threadfence();
    __syncthreads();
    Chain c = {zero * lane, zero * lane, (double)zero, (float)zero, {zero, zero, zero, zero}, {}, base + lane * width, own};
    Op op;
    u64 before = 0;
#pragma unroll 1
    for (int round = -1; round < rounds; round++) {
        if (!round) before = now();
#pragma unroll
        for (int i = 0; i < STEPS; i++) op.step(c);
    }
    u32 sum = c.a ^ (u32)c.p ^ __float_as_uint(c.f) ^ (u32)__double2loint(c.d) ^ c.m[0] ^ c.m[1] ^ c.m[2] ^ c.m[3] ^ __float_as_uint(c.x[0] + c.x[1] + c.x[2] + c.x[3]) ^ c.tile ^ (u32)(u64)c.global;
    if (sum == 0x12345677) out[1] = sum;
    u64 after = now();
    if (!lane) out[threadIdx.x / 32] = after - before;
}
static int first, last, number = 0;
template <class Op> void run(const char *name, std::vector<int> warps, int width = 4) {
    if (number++ < first || number > last) return;
    for (int w : warps) {
        u64 found[2];
        for (int i = 0; i < 2; i++) {
            chain<Op><<<1, 32 * w>>>(memory, out, i ? 40 : 8, 0, width);
            auto t = fetched(w);
            found[i] = *std::max_element(t.begin(), t.end());
        }
        printf("chain op=%s warps=%d : %.3f\n", name, w, (found[1] - found[0]) / (32.0 * STEPS));
    }
}

// argv: the first and last number of the chains to run, all without.
int main(int argc, char **argv) {
    first = argc > 1 ? atoi(argv[1]) : 0, last = argc > 2 ? atoi(argv[2]) : 1000;
    start();
    std::vector<int> one = {1}, some = {1, 4, 8}, all = {1, 2, 3, 4, 5, 8, 12, 16, 24, 32};
#define RUN(op, ...) run<steps::op>(#op, __VA_ARGS__)
    RUN(empty, one);
    RUN(ffma, one); RUN(fadd, one); RUN(imad, one); RUN(imad_wide, one); RUN(iadd3, one); RUN(lop3, one); RUN(shf, one);
    RUN(prmt, one); RUN(hfma2, one); RUN(fmnmx, one); RUN(sel, one); RUN(dfma, some); RUN(dadd, some);
    RUN(mufu_ex2, some); RUN(mufu_rsq, some); RUN(mufu_sin, some); RUN(popc, some); RUN(flo, some);
    RUN(brev, some); RUN(f2i, some); RUN(i2f, some); RUN(f2f, some); RUN(frnd, some); RUN(vote, some); RUN(match_any, some);
    RUN(redux, some); RUN(shfl, all); RUN(ldc, some);
    RUN(lds32, all); RUN(ldsm1, all, 16); RUN(ldsm4, all, 16); RUN(sts_lds, all);
    RUN(atoms, all); RUN(atoms_add, some); RUN(cass, some);
    RUN(ldg32, all); RUN(ldg64, all, 8); RUN(ldcg32, all); RUN(ldcg64, all, 8); 
    RUN(ld_volatile, some); RUN(stg_ldg, some); RUN(atomg, all); RUN(casg, some);
    RUN(membar_cta, some); RUN(membar_gl, some); RUN(bar_sync, all); RUN(bar_warp, some);
    RUN(hmma_f32, some); RUN(hmma_c, some); RUN(hmma_k8, some); RUN(hmma_f16, some); RUN(hmma_tf32, some); RUN(imma, some); RUN(dmma, some);
}
