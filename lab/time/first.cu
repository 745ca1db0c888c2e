// What is met for the first time in a launch, or by few: code beyond a jump, constants, textures, atomics to one place,
// columns, pages, and printf. Clocks of a warp's steps are printed; a profiler measures the launches.
#include "clocked.cuh"
#include "printed_texts.cuh"
#include <type_traits>

DEV u32 tick() {
    u32 t;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(t)::"memory");
    return t;
}
// The clock when a value is there.
DEV u32 tick_with(u32 value, u32 *to) {
    if (value == 0x7ffffff3) asm volatile("st.global.u32 [%0], %1;" ::"l"(to + 98), "r"(value) : "memory");
    return tick();
}
static void tell(const char *text, int count) {
    CHECK(cudaDeviceSynchronize());
    std::vector<u32> t(count);
    CHECK(cudaMemcpy(t.data(), out, count * 4, cudaMemcpyDeviceToHost));
    printf("\nR %s :", text);
    for (u32 one : t) printf(" %u", one);
    printf("\n");
}

// --- code: 16 jumps over SKIP instructions that are not executed; twice
#define M1 asm volatile("mad.lo.u32 %0, %0, %0, %1;" : "+r"(y) : "r"(x));
#define M4 M1 M1 M1 M1
#define M16 M4 M4 M4 M4
#define M64 M16 M16 M16 M16
#define M256 M64 M64 M64 M64
#define JUMP(body, k) if (x == 1000 + k) { body } t[k] = tick();
#define JUMPS(name, body)                                                                              \
    __global__ void name(u32 *to, u32 x) {                                                             \
        u32 y = x, t[8];                                                                               \
        for (u32 round = 0; round < 2; round++) {                                                      \
            u32 t0 = tick();                                                                           \
            JUMP(body, 0) JUMP(body, 1) JUMP(body, 2) JUMP(body, 3) JUMP(body, 4) JUMP(body, 5)        \
            JUMP(body, 6) JUMP(body, 7)                                                                \
            if (!threadIdx.x && !blockIdx.x) {                                                         \
                for (int k = 0; k < 8; k++) to[8 * round + k] = t[k] - t0;                             \
                to[99] = y;                                                                            \
            }                                                                                          \
        }                                                                                              \
    }
JUMPS(jumps16, M16)
JUMPS(jumps32, M16 M16)
JUMPS(jumps64, M64)
JUMPS(jumps128, M64 M64)
JUMPS(jumps256, M256)
JUMPS(jumps512, M256 M256)
JUMPS(jumps1024, M256 M256 M256 M256)
// straight code: 8 stretches of so many instructions
#define STEP(body, k) body t[k] = tick();
#define STRAIGHT(name, body)                                                                           \
    __global__ void name(u32 *to, u32 x) {                                                             \
        u32 y = x, t[8];                                                                               \
        for (u32 round = 0; round < 2; round++) {                                                      \
            u32 t0 = tick();                                                                           \
            STEP(body, 0) STEP(body, 1) STEP(body, 2) STEP(body, 3) STEP(body, 4) STEP(body, 5)        \
            STEP(body, 6) STEP(body, 7)                                                                \
            if (!threadIdx.x && !blockIdx.x) {                                                         \
                for (int k = 0; k < 8; k++) to[8 * round + k] = t[k] - t0;                             \
                to[99] = y;                                                                            \
            }                                                                                          \
        }                                                                                              \
    }
STRAIGHT(straight16, M16)
STRAIGHT(straight64, M64)
STRAIGHT(straight256, M256)

// --- constants: a chain of 8 loads by index, and of 8 operands, so many words apart; twice
__constant__ u32 table[16384];
__global__ void constants(u32 *to, u32 at, u32 apart) {
    u32 t[8];
    for (u32 round = 0; round < 2; round++) {
        u32 t0 = tick();
#pragma unroll
        for (int k = 0; k < 8; k++) {
            at = table[at] + at + apart;
            t[k] = tick_with(at, to);
        }
        at -= 8 * apart;
        if (!threadIdx.x && !blockIdx.x)
            for (int k = 0; k < 8; k++) to[8 * round + k] = t[k] - t0;
    }
}
template <int APART> __global__ void operands(u32 *to, u32 y) {
    u32 t[8];
    for (u32 round = 0; round < 2; round++) {
        u32 t0 = tick();
#pragma unroll
        for (int k = 0; k < 8; k++) {
            y = y * table[k * APART] + 3;
            t[k] = tick_with(y, to);
        }
        if (!threadIdx.x && !blockIdx.x)
            for (int k = 0; k < 8; k++) to[8 * round + k] = t[k] - t0;
    }
}

// --- textures: 4 fetches one after the other; of 16 that do not depend on each other
enum Shape { LINEAR, FLAT, SOLID, LAYERED, CUBE };
template <Shape S> DEV float fetch(cudaTextureObject_t from, float x, float y) {
    if (S == LINEAR) return tex1Dfetch<float>(from, int(x));
    if (S == FLAT) return tex2D<float>(from, x, y);
    if (S == SOLID) return tex3D<float>(from, x, y, 1.5f);
    if (S == LAYERED) return tex2DLayered<float>(from, x, y, 1);
    return texCubemap<float>(from, x * 0.01f - 1, y * 0.01f - 1, 1.0f);
}
template <Shape S> __global__ void textures(u32 *to, cudaTextureObject_t from, int) {
    float x = threadIdx.x % 32 + 0.5f, y = threadIdx.x / 32 + 0.5f;
    u32 t[5], t0 = tick();
#pragma unroll
    for (int k = 0; k < 4; k++) {
        x += fetch<S>(from, x, y) + (S == LINEAR ? 32 : 0);
        y += 1;
        t[k] = tick_with(__float_as_uint(x), to);
    }
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 16; k++) sum += fetch<S>(from, x, y + k);
    t[4] = tick_with(__float_as_uint(sum), to);
    if (!threadIdx.x && !blockIdx.x)
        for (int k = 0; k < 5; k++) to[k] = t[k] - t0;
}

// --- atomics: 8 by each warp, one after the other; of each warp's lanes `of_word` one word, words `apart` bytes
template <class T, bool RETURNS, bool SWAPS> __global__ void atomics(u32 *to, char *memory, u32 of_word, u32 apart, u32 of_warp) {
    T *at = (T *)(memory + threadIdx.x / 32 * of_warp + threadIdx.x % 32 / of_word * apart);
    u32 t0 = tick();
    T sum = 0;
#pragma unroll 1
    for (int k = 0; k < 8; k++) {
        if (SWAPS) sum += T(atomicCAS((typename std::conditional<sizeof(T) == 4, u32, u64>::type *)at, 7, 9));
        else if (RETURNS) sum += atomicAdd(at, T(1));
        else atomicAdd(at, T(1));
        if (RETURNS || SWAPS) at += sum == T(1 << 28);
        u32 now = RETURNS || SWAPS ? tick_with(u32(sum), to) : tick();
        if (!threadIdx.x && !blockIdx.x) to[k] = now - t0;
    }
    if (sum == T(1 << 28)) to[99] = 1;
}

// --- histograms: 16 atomics by each lane, to words in no order, or the lanes' own, of so many words; by so many lanes
__global__ void histogram(u32 *to, u32 *table, u32 words, u32 lanes, u32 orderly) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x % 32 >= lanes) return;
    for (u32 k = 0; k < 16; k++) {
        u32 at = (i * 16 + k) * 2654435761u;
        at = orderly ? threadIdx.x + k * 256 : (at ^ at >> 15) * 2246822519u >> 8;
        asm volatile("red.global.add.u32 [%0], 1;" ::"l"(table + at % words) : "memory");
    }
}

// --- columns: a transpose as everybody writes it first, `pitch` words between the rows of what is written
__global__ void columns(u32 *to, const float *in, float *written, int pitch) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) written[x * pitch + y + k] = in[(y + k) * 1024 + x];
}
__global__ void only_columns(u32 *to, float *written, int pitch) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) written[x * pitch + y + k] = x;
}
// --- pages: each thread loads one word, so many words from the next
__global__ void spread(u32 *to, const u32 *from, int apart) {
    u32 t0 = tick(), v = from[(blockIdx.x * blockDim.x + threadIdx.x) * apart];
    u32 t1 = tick_with(v, to);
    if (!threadIdx.x && !blockIdx.x) to[0] = t1 - t0;
}

// --- printf: four times by so many lanes of each warp
#define PRINT(name, ...)                                                                  \
    __global__ void name(u32 *to, u32 lanes) {                                            \
        u32 t0 = tick();                                                                  \
        for (int k = 0; k < 4; k++) {                                                     \
            if (threadIdx.x % 32 < lanes) printf(__VA_ARGS__);                            \
            __syncwarp();                                                                 \
            u32 now = tick();                                                             \
            if (!threadIdx.x && !blockIdx.x) to[k] = now - t0;                            \
        }                                                                                 \
    }
PRINTED_TEXTS(PRINT)

static cudaTextureObject_t texture(Shape shape) {
    cudaResourceDesc from = {};
    cudaTextureDesc how = {};
    how.addressMode[0] = how.addressMode[1] = how.addressMode[2] = cudaAddressModeClamp;
    how.filterMode = shape == LINEAR ? cudaFilterModePoint : cudaFilterModeLinear;
    how.readMode = cudaReadModeElementType;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    if (shape == LINEAR) {
        from.resType = cudaResourceTypeLinear;
        from.res.linear.devPtr = memory + (64 << 20);
        from.res.linear.desc = format;
        from.res.linear.sizeInBytes = 1 << 20;
    } else {
        cudaArray_t array;
        if (shape == FLAT) CHECK(cudaMallocArray(&array, &format, 512, 512));
        else {
            cudaExtent size = make_cudaExtent(256, 256, shape == CUBE ? 6 : 4);
            CHECK(cudaMalloc3DArray(&array, &format, size, shape == CUBE ? cudaArrayCubemap : shape == LAYERED ? cudaArrayLayered : 0));
        }
        from.resType = cudaResourceTypeArray;
        from.res.array.array = array;
    }
    cudaTextureObject_t made = 0;
    CHECK(cudaCreateTextureObject(&made, &from, &how, nullptr));
    return made;
}

template <class F> static void both(const char *name, int count, F launch) {
    for (int grid : {1, 132})
        for (int block : {32, 256}) {
            launch(grid, block);
            char text[200];
            sprintf(text, "%s grid=%d block=%d", name, grid, block);
            tell(text, count);
        }
}
template <Shape S> static void textures_of(const char *name) {
    cudaTextureObject_t from = texture(S);
    both(name, 5, [&](int grid, int block) { textures<S><<<grid, block>>>((u32 *)out, from, 0); });
}
template <class T, bool RETURNS, bool SWAPS> static void atomics_of(const char *name) {
    for (int warps : {1, 8})
        for (int pattern = 0; pattern < 5; pattern++) {
            const u32 of_word[] = {32, 4, 1, 1, 1}, apart[] = {0, sizeof(T), sizeof(T), 32, sizeof(T)}, of_warp[] = {0, 0, 0, 0, 1024};
            atomics<T, RETURNS, SWAPS><<<1, 32 * warps>>>((u32 *)out, memory + (128 << 20), of_word[pattern], apart[pattern], of_warp[pattern]);
            char text[200];
            sprintf(text, "atomics op=%s warps=%d of_word=%u apart=%u of_warp=%u", name, warps, of_word[pattern], apart[pattern], of_warp[pattern]);
            tell(text, 8);
        }
}

int main(int count, char **names) {
    start();
    std::string what = names[1];
    u32 *to = (u32 *)out;
    if (what == "code") {
#define ALL(name) both(#name, 16, [&](int grid, int block) { name<<<grid, block>>>(to, 3); });
        ALL(jumps16) ALL(jumps32) ALL(jumps64) ALL(jumps128) ALL(jumps256) ALL(jumps512) ALL(jumps1024)
        ALL(straight16) ALL(straight64) ALL(straight256)
    } else if (what == "constants") {
        for (u32 apart : {1, 8, 16, 32, 64, 256, 1024})
            both(("constants apart=" + std::to_string(apart)).c_str(), 16, [&](int grid, int block) { constants<<<grid, block>>>(to, 0, apart); });
        both("operands apart=1", 16, [&](int grid, int block) { operands<1><<<grid, block>>>(to, 3); });
        both("operands apart=16", 16, [&](int grid, int block) { operands<16><<<grid, block>>>(to, 3); });
        both("operands apart=64", 16, [&](int grid, int block) { operands<64><<<grid, block>>>(to, 3); });
        both("operands apart=512", 16, [&](int grid, int block) { operands<512><<<grid, block>>>(to, 3); });
    } else if (what == "textures") {
        textures_of<LINEAR>("linear"), textures_of<FLAT>("flat"), textures_of<SOLID>("solid"), textures_of<LAYERED>("layered"), textures_of<CUBE>("cube");
    } else if (what == "atomics") {
        atomics_of<u32, false, false>("red.u32"), atomics_of<float, false, false>("red.f32"), atomics_of<double, false, false>("red.f64");
        atomics_of<u64, false, false>("red.u64"), atomics_of<u32, true, false>("atom.u32"), atomics_of<float, true, false>("atom.f32");
        atomics_of<u64, true, false>("atom.u64"), atomics_of<u32, true, true>("cas.u32"), atomics_of<u64, true, true>("cas.u64");
        for (u32 lanes : {32, 1})
            for (u32 orderly : {0, 1})
                for (u32 words : {1, 8, 32, 64, 128, 256, 512, 1024, 2048, 8192, 65536})
                    histogram<<<132, 256>>>(to, (u32 *)(memory + (192 << 20)), words, lanes, orderly);
    } else if (what == "columns") {
        float *in = (float *)memory, *written = (float *)(memory + (256 << 20));
        for (int pitch : {1024, 1032, 1056, 1280, 2048, 4096}) {
            columns<<<dim3(32, 32), dim3(32, 8)>>>(to, in, written, pitch);
            only_columns<<<dim3(32, 32), dim3(32, 8)>>>(to, written, pitch);
        }
        for (int grid : {1, 26, 132})
            for (int apart : {1, 8, 32, 256, 1024, 4096, 6000}) {
                spread<<<grid, 256>>>(to, (u32 *)memory, apart);
                char text[200];
                sprintf(text, "spread grid=%d apart=%d", grid, apart), tell(text, 1);
            }
    } else if (what == "printf") {
#define PRINTS(name)                                                                          \
    for (int grid : {1, 4, 132})                                                              \
        for (int block : {32, 128})                                                           \
            for (u32 lanes : {1, 2, 8, 32}) {                                                 \
                if (grid * block / 32 * lanes > 600) continue;                                \
                name<<<grid, block>>>(to, lanes);                                             \
                char text[200];                                                               \
                sprintf(text, #name " grid=%d block=%d lanes=%u", grid, block, lanes), tell(text, 4); \
            }
        PRINTS(print1) PRINTS(print16) PRINTS(print64) PRINTS(print_int) PRINTS(print_4_ints) PRINTS(print_8_ints) PRINTS(print_double) PRINTS(print_text)
    }
    CHECK(cudaDeviceSynchronize());
}
