// C = alpha * A * B + beta * C, row-major, float32, any M, N and K: tiles of many shapes from one source. A kernel of
// the catalogue that is made of it names its shape by the macros TM ... STAGES, and `sgemm` chooses among them.
// docs/tuning.md tells how fast they are.
//
// A thread makes TM x TN of C, in pieces of 4 x 4; the lanes of a warp are LY x LX, in z-order; WM x WN warps make the
// block's tile. There may be SLICES times as many, which divide the lines of a tile among them, STEP for each, and add
// their sums in the end: so a block with a small tile has warps enough, and each warp a tile that is large enough to
// need few reads. STAGES tiles are in shared memory: the one that is multiplied, and those that are on their way.
//   s_a[k][m ...]     lanes that differ in x only read the same
//   s_b[k][n ...]     lanes that differ in y only read the same
//   s_a[k][m] = ...   a warp copies 32 floats of BK / 4 different k and 32 / (BK / 4) rows; the lines are shifted so
//                     that they lie in 32 banks: clean
// gridDim.z blocks divide K. Each stores its product as if C were its own, behind those of the others, and
// sum_of_parts.cu adds them.
//
// A is copied by floats, which transposes it on the way. Where VEC is 4, N is a multiple of 4: B is copied and C is stored
// by 16 bytes; where it is 1, B is copied by floats, too. Several steps of k share the copies of a tile: a warp that asks
// for all of them at once waits until they are taken, and multiplies nothing meanwhile. memsim shows that rows of A which
// are a multiple of 128 bytes apart conflict where they are read.
// Block 32 * WM * WN * SLICES x 1, BLOCKS to a multiprocessor; grid.x covers N, grid.y covers M, grid.z divides K.
// C is not read if beta is 0.

constexpr int UNIT = 32;  // lines of K that are not divided: which lines a block has does not depend on its tile
constexpr int BM = WM * LY * TM, BN = WN * LX * TN, BK = STEP * SLICES;
constexpr int WARPS = WM * WN, THREADS = 32 * WARPS * SLICES;

// Of the STEP lines of a slice, those at which copies are made: by floats each of the first SPREAD, by 16 bytes one. A
// tile of 8 lines is soon multiplied: B, which comes from farther away, is copied at the first line, A at the next two.
constexpr int SPREAD = STEP < 8 ? 2 : BK == 8 ? 3 : 4, COPY = SPREAD / 2;
static_assert(SPREAD < STEP, "copies are on their way before the barrier");

constexpr int GROUPS = BK / 4, A_ROWS = THREADS / GROUPS, A_LOADS = BM / A_ROWS;  // a thread brings 4 floats of a row
constexpr int A_LINE = BM + 32 / GROUPS;
constexpr int B_LINE = BN / VEC, B_LINES = THREADS / 32;  // by floats, a warp copies a line
constexpr int B_COPIES = VEC == 4 ? (B_LINE * BK + THREADS - 1) / THREADS : BK / B_LINES;
static_assert(BM % A_ROWS == 0 && THREADS % GROUPS == 0 && GROUPS <= 8, "the A tile cannot be divided");
static_assert(VEC == 4 || (BN % 32 == 0 && BK % B_LINES == 0), "the B tile cannot be divided");

constexpr int A_FLOATS = A_LINE * BK, B_FLOATS = BK * BN, FLOATS = STAGES * (A_FLOATS + B_FLOATS);
constexpr int ROWS = TM / SLICES;  // of its sums that a thread stores
// Of C in shared memory, the lines of a warp: they are shifted so that pieces of several lines are clean.
constexpr int C_WIDTH = LX * TN, C_LINE = C_WIDTH + (LX == 4 ? 8 : 16);
static_assert(TM % SLICES == 0 && (SLICES - 1) * WARPS * 32 * ROWS * TN <= FLOATS, "there is no room for sums");
static_assert(VEC == 4 || (C_WIDTH % 32 == 0 && WARPS * SLICES * LY * C_LINE <= FLOATS), "there is no room for lines of C");

template <bool VALUE> struct Constant { constexpr operator bool() const { return VALUE; } };
using First = Constant<true>;
using Other = Constant<false>;

#define LOAD4(x) (*reinterpret_cast<const float4 *>(&(x)))
#define STORE4(x) (*reinterpret_cast<float4 *>(&(x)))

// Copies of 4 and of 16 bytes. What is not `inside` of the matrix is not read: if ZEROS, there are zeros instead.
template <bool ZEROS> __device__ void copy4(unsigned to, const float *from, bool inside)
{
    if constexpr (ZEROS)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                     : : "r"(to), "l"(from), "r"(inside ? 4 : 0) : "memory");
    else
        asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p cp.async.ca.shared.global [%0], [%1], 4; }"
                     : : "r"(to), "l"(from), "r"((int)inside) : "memory");
}

template <bool ZEROS> __device__ void copy16(unsigned to, const float *from, bool inside)
{
    if constexpr (ZEROS)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     : : "r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
    else if (inside)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(to), "l"(from) : "memory");
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
sgemm_tile(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta,
           float *__restrict__ C)
{
    __shared__ __align__(16) float memory[FLOATS];  // STAGES of each tile; in the end, sums of the other slices
    float *const s_a = memory, *const s_b = memory + STAGES * A_FLOATS;

    const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32 % WARPS, slice = tid / 32 / WARPS;
    const int block_m = blockIdx.y * BM, block_n = blockIdx.x * BN;

    // Where this thread multiplies: rows m .. m+3 and every 4 * LY further on, columns n .. n+3 and every 4 * LX.
    const int two = lane % 2 + lane / 8 % 2 * 2, three = lane / 2 % 4 + lane / 16 * 4;  // bits 0, 3 and 1, 2, 4
    const int x = LX == 4 ? two : three, y = LX == 4 ? three : two;
    const int m = warp % WM * (LY * TM) + y * 4;
    const int n = warp / WM * (LX * TN) + x * 4;

    // Which lines of A and B the block has. If they do not fill its tiles, it is the first one that is not full: it
    // begins with `skipped` lines of zeros.
    const int units = (K + UNIT - 1) / UNIT, missing = units * UNIT - K;
    const int fewest = units / gridDim.z, more = units % gridDim.z;  // the first `more` blocks have one unit more
    const int before = blockIdx.z * fewest + min(blockIdx.z, more);
    const int k_begin = max(0, before * UNIT - missing);
    const int lines = max(0, (before + fewest + (blockIdx.z < more)) * UNIT - missing) - k_begin;
    const int tiles = max(1, (lines + BK - 1) / BK), skipped = tiles * BK - lines;

    // What it brings. A row or a column outside of the matrix is the last one again, or zeros: what is made of it is
    // not stored.
    const int a_k = tid % GROUPS, a_m = tid / GROUPS;
    const float *from_a[A_LOADS];
#pragma unroll
    for (int i = 0; i < A_LOADS; ++i)
        from_a[i] = A + (ptrdiff_t)min(block_m + a_m + i * A_ROWS, M - 1) * K + (k_begin - skipped + a_k);
    const int b_line = VEC == 4 ? 0 : tid / 32;
    const float *from_b = B + (ptrdiff_t)(k_begin - skipped + b_line) * N + (VEC == 4 ? 0 : block_n + lane);
    const unsigned first_a = __cvta_generic_to_shared(s_a + a_k * A_LINE + a_m);
    const unsigned first_b = __cvta_generic_to_shared(s_b + (VEC == 4 ? tid * 4 : b_line * BN + lane));

    // A share of the copies of a tile, if there is one. The first tile has zeros in its first lines.
    auto copy_a = [&](auto first, unsigned to, bool real, int share, int shares) {
#pragma unroll
        for (int i = A_LOADS * share / shares; i < A_LOADS * (share + 1) / shares; ++i) {
#pragma unroll
            for (int e = 0; e < 4; ++e)
                copy4<first>(to + 4 * (GROUPS * e * A_LINE + i * A_ROWS), from_a[i] + GROUPS * e,
                             real && (!first || a_k + GROUPS * e >= skipped));
        }
    };
    auto copy_b = [&](auto first, unsigned to, bool real, int share, int shares) {
#pragma unroll
        for (int i = B_COPIES * share / shares; i < B_COPIES * (share + 1) / shares; ++i) {
            if constexpr (VEC == 4) {
                const int at = tid + i * THREADS, line = at / B_LINE, col = at % B_LINE * 4;
                if (B_LINE * BK % THREADS != 0 && at >= B_LINE * BK) break;
                copy16<first>(to + i * THREADS * 16, from_b + line * N + min(block_n + col, N - 4),
                              real && (!first || line >= skipped));
            } else {
#pragma unroll
                for (int col = 0; col < BN; col += 32)
                    copy4<first>(to + 4 * (i * B_LINES * BN + col), from_b + col,
                                 real && (!first || b_line + i * B_LINES >= skipped) && block_n + lane + col < N);
                from_b += (size_t)B_LINES * N;
            }
        }
    };
    auto advance = [&] {
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) from_a[i] += BK;
        if (VEC == 4) from_b += (size_t)BK * N;  // else the copies have done it
    };
    auto commit = [] { asm volatile("cp.async.commit_group;" : : : "memory"); };
    auto arrive = [&] {  // the next tile is there; STAGES - 2 others may be on their way
        asm volatile("cp.async.wait_group %0;" : : "n"(STAGES - 2) : "memory");
        __syncthreads();
    };

    float r_a[2][TM], r_b[2][TN];  // the operands of this step of k, and of the next one
    const float *const my_a = s_a + slice * STEP * A_LINE + m, *const my_b = s_b + slice * STEP * BN + n;
    auto load_operands = [&](int set, int buffer, int k) {
#pragma unroll
        for (int i = 0; i < TM; i += 4) STORE4(r_a[set][i]) = LOAD4(my_a[buffer * A_FLOATS + k * A_LINE + LY * i]);
#pragma unroll
        for (int j = 0; j < TN; j += 4) STORE4(r_b[set][j]) = LOAD4(my_b[buffer * B_FLOATS + k * BN + LX * j]);
    };

    // Down one column and up the next: an FFMA takes an operand over from the one before it.
    float sum[TM][TN] = {};
    auto multiply = [&](int set) {
#pragma unroll
        for (int j = 0; j < TN; ++j) {
#pragma unroll
            for (int step = 0; step < TM; ++step) {
                const int i = j % 2 == 0 ? step : TM - 1 - step;
                sum[i][j] += r_a[set][i] * r_b[set][j];
            }
        }
    };

    copy_a(First{}, first_a, true, 0, 1);
    copy_b(First{}, first_b, true, 0, 1);
    advance();
    commit();
#pragma unroll
    for (int stage = 1; stage < STAGES - 1; ++stage) {
        if (stage < tiles) {
            copy_a(Other{}, first_a + stage * (A_FLOATS * 4), true, 0, 1);
            copy_b(Other{}, first_b + stage * (B_FLOATS * 4), true, 0, 1);
            advance();
        }
        commit();
    }
    arrive();
    load_operands(0, 0, 0);

    // While a tile is multiplied, one of those after it is brought.
    int buffer = 0, empty = STAGES - 1;
    auto next = [](int stage) { return stage + 1 == STAGES ? 0 : stage + 1; };
#pragma unroll 1
    for (int left = tiles - 1; left > 0; --left) {
        const bool is_one = STAGES == 2 || left > STAGES - 2;
        const unsigned to_a = first_a + empty * (A_FLOATS * 4), to_b = first_b + empty * (B_FLOATS * 4);
#pragma unroll
        for (int k = 0; k < STEP; ++k) {
            if (k < SPREAD) copy_a(Other{}, to_a, is_one, k, SPREAD);
            if (k < (BK == 8 ? 1 : SPREAD) && VEC == 1) copy_b(Other{}, to_b, is_one, k, BK == 8 ? 1 : SPREAD);
            if (k == COPY && VEC == 4) copy_b(Other{}, to_b, is_one, 0, 1);
            if (k == SPREAD - 1) commit();
            if (k == STEP - 2) advance();
            if (k == STEP - 1) {
                arrive();
                buffer = next(buffer);
                empty = next(empty);
            }
            load_operands((k + 1) % 2, buffer, (k + 1) % STEP);
            multiply(k % 2);
        }
    }
#pragma unroll
    for (int k = 0; k < STEP; ++k) {  // the last tile: there is nothing to copy
        if (k + 1 < STEP) load_operands((k + 1) % 2, buffer, k + 1);
        multiply(k % 2);
    }

    // Each slice keeps ROWS rows of its threads' sums, and adds what the other slices have of them.
    float4 *const room = reinterpret_cast<float4 *>(memory) + tid % (WARPS * 32);
    float kept[ROWS][TN];
#pragma unroll
    for (int owner = 0; owner < SLICES; ++owner) {
        float(*const rows)[TN] = sum + owner * ROWS;
        if (SLICES > 1) __syncthreads();
        if (slice != owner) {
            float4 *const to = room + (slice - (slice > owner)) * (ROWS * TN / 4) * (WARPS * 32);
#pragma unroll
            for (int at = 0; at < ROWS * TN; at += 4) to[at / 4 * (WARPS * 32)] = LOAD4(rows[at / TN][at % TN]);
        }
        if (SLICES > 1) __syncthreads();
        if (slice == owner) {
#pragma unroll
            for (int at = 0; at < ROWS * TN; at += 4) {
                float4 all = LOAD4(rows[at / TN][at % TN]);
#pragma unroll
                for (int other = 0; other < SLICES - 1; ++other) {
                    const float4 its = room[(other * (ROWS * TN / 4) + at / 4) * (WARPS * 32)];
                    all.x += its.x;
                    all.y += its.y;
                    all.z += its.z;
                    all.w += its.w;
                }
                STORE4(kept[at / TN][at % TN]) = all;
            }
        }
    }

    float *const part = C + (size_t)blockIdx.z * M * N;
    if constexpr (VEC == 4) {
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            const int mine = slice * ROWS + i, row = block_m + m + mine / 4 * (4 * LY) + mine % 4;
            if (row >= M) continue;
#pragma unroll
            for (int j = 0; j < TN; j += 4) {
                const int col = block_n + n + LX * j;
                if (col >= N) continue;
                float *const to = part + (size_t)row * N + col;
                float4 c = {0.0f, 0.0f, 0.0f, 0.0f};
                if (beta != 0.0f) c = LOAD4(to[0]);
                c.x = alpha * kept[i][j + 0] + beta * c.x;
                c.y = alpha * kept[i][j + 1] + beta * c.y;
                c.z = alpha * kept[i][j + 2] + beta * c.z;
                c.w = alpha * kept[i][j + 3] + beta * c.w;
                STORE4(to[0]) = c;
            }
        }
        return;
    }

    // Rows of C begin anywhere: those of a warp go through its own lines of shared memory, one of each thread at a
    // time, so that it stores 32 floats on end.
    float *const mine = memory + tid / 32 * (LY * C_LINE), *const write = mine + y * C_LINE + x * 4;
    const int row = block_m + warp % WM * (LY * TM) + slice * ROWS / 4 * (4 * LY) + slice * ROWS % 4;
    const int col = block_n + warp / WM * C_WIDTH + lane;
    const int rows = M - row, cols = N - col;
    float *const to = part + (size_t)row * N + col;
    const size_t four_rows = (size_t)4 * N;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        const int down = i / 4 * (4 * LY) + i % 4;
        auto each = [&](auto &&act) {  // of the floats that this thread stores: its place in C, and in shared memory
            float *its = to + (size_t)down * N, *c = mine + lane;
#pragma unroll
            for (int line = 0; line < LY; ++line, its += four_rows, c += C_LINE) {
#pragma unroll
                for (int right = 0; right < C_WIDTH; right += 32)
                    if (down + 4 * line < rows && right < cols) act(its[right], c[right]);
            }
        };
        if (i > 0) __syncwarp();
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            STORE4(write[LX * j]) = {alpha * kept[i][j + 0], alpha * kept[i][j + 1],  //
                                     alpha * kept[i][j + 2], alpha * kept[i][j + 3]};
        __syncwarp();
        if (beta != 0.0f) each([&](float &its, float &c) { c += beta * its; });
        each([](float &its, float &c) { its = c; });
    }
}
