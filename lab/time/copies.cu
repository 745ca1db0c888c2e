// How fast copies to shared memory are (`cp.async`), by what their lanes ask for and where they write it
// (docs/validation/copies.json; the first 17 forms in bulk_copies.json, too).
#include "clocked.cuh"

// Warps copy `rounds` times 8 pieces of BYTES a lane, two groups under way. Lane l of warp w copies in step i from
// w * warp + (l / row) * apart + (l % row) * step + i * next, to its own piece, or lanes of a row `pitch` apart.
template <int BYTES>
__global__ void __launch_bounds__(1024) copies(const char *memory, u64 *out, int row, int apart, int step, int warp, int next, int rounds, int pitch) {
    extern __shared__ __align__(128) char tile[];
    int lane = threadIdx.x % 32, w = threadIdx.x / 32;
    const char *from = memory + (size_t)(blockIdx.x % 8) * (1 << 20) + w * warp + lane / row * apart + lane % row * step;
    u32 to = (u32)__cvta_generic_to_shared(tile) + w * 4096 + lane / row * pitch + lane % row * BYTES;
    __syncthreads();
    u64 before = now();
#pragma unroll 1
    for (int i = 0; i < rounds; i++) {
#pragma unroll
        for (int j = 0; j < 8; j++) {
            if (BYTES == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
            else asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
            from += next;
        }
        asm volatile("cp.async.commit_group;\ncp.async.wait_group 2;" ::: "memory");
    }
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    u64 after = now();
    if (!threadIdx.x) out[blockIdx.x] = after - before;
}

int main() {
    start();
    struct { const char *name; int bytes, row, apart, step, warp, next, pitch; } forms[] = {
        {"side_by_side", 16, 32, 0, 16, 512, 8192, 0},   {"same", 16, 32, 0, 0, 512, 8192, 0},
        {"same_of_8", 16, 8, 4096, 0, 32768, 16, 128},   {"rows_of_4", 16, 4, 4096, 16, 32768, 64, 64},
        {"rows_of_8", 16, 8, 4096, 16, 16384, 128, 128}, {"again", 16, 32, 0, 16, 512, 0, 0},
        {"same_again", 16, 32, 0, 0, 512, 0, 0},
        {"words", 4, 32, 0, 4, 128, 2048, 0},            {"words_same", 4, 32, 0, 0, 128, 2048, 0},
        {"words_in_rows", 4, 8, 4096, 4, 16384, 32, 32}, {"words_apart", 4, 8, 4096, 4, 16384, 128, 32},
        {"words_far", 4, 8, 4096, 4, 16384, 64, 32},     {"words_of_8_same", 4, 8, 4096, 0, 16384, 32, 32},
        {"words_again", 4, 32, 0, 4, 128, 0, 0},         {"words_in_rows_again", 4, 8, 4096, 4, 16384, 0, 32},
        {"words_scattered", 4, 8, 4096, 4, 16384, 32, 132}, {"words_column", 4, 1, 4096, 0, 131072, 32, 4},
        {"words_in_halves", 4, 16, 4096, 4, 8192, 64, 64},  {"words_in_halves_again", 4, 16, 4096, 4, 8192, 0, 64},
        {"words_halves_apart", 4, 16, 4096, 4, 8192, 128, 64}, {"words_second", 4, 32, 0, 8, 256, 4096, 0},
        {"words_second_again", 4, 32, 0, 8, 256, 0, 0},      {"words_in_fours", 4, 4, 4096, 4, 32768, 16, 16},
        {"words_fours_apart", 4, 4, 4096, 4, 32768, 128, 16}, {"words_shifted", 4, 32, 0, 4, 2048 + 16, 128, 0},
        {"words_in_fours_again", 4, 4, 4096, 4, 32768, 0, 16}, {"words_in_twos", 4, 2, 4096, 4, 65536, 8, 8},
        {"words_in_twos_again", 4, 2, 4096, 4, 65536, 0, 8},   {"words_column_again", 4, 1, 4096, 0, 131072, 0, 4},
        {"words_column_next", 4, 1, 4096, 0, 131072, 4, 4},    {"words_twos_apart", 4, 2, 4096 + 128, 4, 67584, 8, 8},
    };
    CHECK(cudaFuncSetAttribute(copies<16>, cudaFuncAttributeMaxDynamicSharedMemorySize, 131072));
    CHECK(cudaFuncSetAttribute(copies<4>, cudaFuncAttributeMaxDynamicSharedMemorySize, 131072));
    for (auto &one : forms)
        for (int grid : {1, 132})
            for (int warps : {1, 4, 16}) {
                int rounds = 16;
                for (int warm = 0; warm < 2; warm++)
                    if (one.bytes == 16) copies<16><<<grid, 32 * warps, 131072>>>(memory, out, one.row, one.apart, one.step, one.warp, one.next, rounds, one.pitch);
                    else copies<4><<<grid, 32 * warps, 131072>>>(memory, out, one.row, one.apart, one.step, one.warp, one.next, rounds, one.pitch);
                auto t = fetched(grid);
                printf("copies form=%s bytes=%d grid=%d warps=%d steps=%d : %llu\n", one.name, one.bytes, grid, warps, 8 * rounds, *std::max_element(t.begin(), t.end()));
            }
}
