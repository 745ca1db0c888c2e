// A warp-specialised GEMM for sm_90a: one warpgroup copies tiles by TMA, two multiply them (wgmma).
// C [M, N] = A [M, K] * B [N, K]^T, float16 to float32; tiles of 128 x 128 x 64, four stages.
#include <cstdint>
struct alignas(64) Map { char bytes[128]; };
typedef uint32_t u32; typedef uint64_t u64;
constexpr int STAGES = 4, TILE_M = 128, TILE_N = 128, TILE_K = 64, TILE = 128 * 64 * 2;
__device__ u32 at(const void *p) { return (u32)__cvta_generic_to_shared(p); }
__device__ void init(u32 b, u32 n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(n)); }
__device__ void arrive(u32 b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b) : "memory"); }
__device__ void expect(u32 b, u32 n) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(n) : "memory");
}
__device__ void wait(u32 b, u32 parity) {
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra W; }"
                 ::"r"(b), "r"(parity) : "memory");
}
__device__ void load(u32 to, const Map *map, int x, int y, u32 b) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3}], [%4];" ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(b) : "memory");
}
__device__ u64 descriptor(u32 address) {  // 128-byte swizzle, 8 rows are 1024 bytes apart
    return (u64)(address >> 4 & 0x3fff) | (u64)1 << 16 | (u64)64 << 32 | (u64)1 << 62;
}
__device__ void multiply(float (&d)[64], u64 a, u64 b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, %64, %65, 1, 1, 1, 0, 0;"
                 : "+f"(d[0]),"+f"(d[1]),"+f"(d[2]),"+f"(d[3]),"+f"(d[4]),"+f"(d[5]),"+f"(d[6]),"+f"(d[7]),"+f"(d[8]),"+f"(d[9]),"+f"(d[10]),"+f"(d[11]),"+f"(d[12]),"+f"(d[13]),"+f"(d[14]),"+f"(d[15]),"+f"(d[16]),"+f"(d[17]),"+f"(d[18]),"+f"(d[19]),"+f"(d[20]),"+f"(d[21]),"+f"(d[22]),"+f"(d[23]),"+f"(d[24]),"+f"(d[25]),"+f"(d[26]),"+f"(d[27]),"+f"(d[28]),"+f"(d[29]),"+f"(d[30]),"+f"(d[31]),"+f"(d[32]),"+f"(d[33]),"+f"(d[34]),"+f"(d[35]),"+f"(d[36]),"+f"(d[37]),"+f"(d[38]),"+f"(d[39]),"+f"(d[40]),"+f"(d[41]),"+f"(d[42]),"+f"(d[43]),"+f"(d[44]),"+f"(d[45]),"+f"(d[46]),"+f"(d[47]),"+f"(d[48]),"+f"(d[49]),"+f"(d[50]),"+f"(d[51]),"+f"(d[52]),"+f"(d[53]),"+f"(d[54]),"+f"(d[55]),"+f"(d[56]),"+f"(d[57]),"+f"(d[58]),"+f"(d[59]),"+f"(d[60]),"+f"(d[61]),"+f"(d[62]),"+f"(d[63]) : "l"(a), "l"(b));
}
extern "C" __global__ void __launch_bounds__(384, 1)
hopper_gemm(const __grid_constant__ Map a, const __grid_constant__ Map b, float *c, int n, int k) {
    extern __shared__ __align__(1024) unsigned char tiles[];
    __shared__ u64 full[STAGES], empty[STAGES];
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) { init(at(full + i), 1); init(at(empty + i), 2); }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    const int group = threadIdx.x / 128, steps = k / TILE_K;
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0)
            for (int i = 0; i < steps; i++) {
                const int stage = i % STAGES;
                wait(at(empty + stage), (i / STAGES & 1) ^ 1);
                expect(at(full + stage), 2 * TILE);
                load(at(tiles + 2 * stage * TILE), &a, i * TILE_K, blockIdx.y * TILE_M, at(full + stage));
                load(at(tiles + (2 * stage + 1) * TILE), &b, i * TILE_K, blockIdx.x * TILE_N, at(full + stage));
            }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        float d[64];
        for (int i = 0; i < 64; i++) d[i] = 0;
        for (int i = 0; i < steps; i++) {
            const int stage = i % STAGES;
            wait(at(full + stage), i / STAGES & 1);
            const u32 of_a = at(tiles + 2 * stage * TILE) + (group - 1) * 8192;
            const u32 of_b = at(tiles + (2 * stage + 1) * TILE);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            for (int j = 0; j < TILE_K / 16; j++) multiply(d, descriptor(of_a + 32 * j), descriptor(of_b + 32 * j));
            asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
            if (threadIdx.x % 128 == 0) arrive(at(empty + stage));
        }
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
        const int row = blockIdx.y * TILE_M + (group - 1) * 64 + warp * 16 + lane / 4;
        float *to = c + (size_t)row * n + blockIdx.x * TILE_N + lane % 4 * 2;
        for (int i = 0; i < 16; i++) {
            *(float2 *)(to + 8 * i) = make_float2(d[4 * i], d[4 * i + 1]);
            *(float2 *)(to + 8 * n + 8 * i) = make_float2(d[4 * i + 2], d[4 * i + 3]);
        }
    }
}
