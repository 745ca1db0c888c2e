// One instruction in a loop, for each row of a table: `times[block][row]` says how often a block executes it.
// A row has for each lane {address, address it copies from, flags, 0}. Flags: 1 executes it; of copies 2 writes zeros;
// of generic addresses the rest is the space: 0 global, 2 shared, 4 local memory. `nothing` is 0, which the compiler
// does not know: so the guard stays on the instruction. Used by record_requests.py.

#include <stdint.h>

__constant__ unsigned constants[8192];

#define REQUESTS(NAME, ADDRESS, CODE) \
    extern "C" __global__ void NAME(const uint4 *table, const unsigned *times, int rows, char *memory, \
                                    unsigned *result, int nothing) \
    { \
        __shared__ __align__(1024) char tile[32768]; \
        __align__(16) char own[2048]; \
        uint64_t mine = (uint64_t)own; \
        asm volatile("" : "+l"(mine)::"memory"); \
        unsigned v0 = 0, v1 = 0, v2 = 0, v3 = 0; \
        for (int row = 0; row < rows; ++row) { \
            unsigned at, from, flags, unused, left; \
            asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];" \
                         : "=r"(at), "=r"(from), "=r"(flags), "=r"(unused) : "l"(table + row * 32 + threadIdx.x)); \
            asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(left) : "l"(times + blockIdx.x * rows + row)); \
            const unsigned space = flags >> 1; \
            const uint64_t to = ADDRESS, source = (uint64_t)memory + from; \
            _Pragma("unroll 1") for (; left > 0; --left) { \
                const unsigned now = flags + left * nothing, on = now & 1, zeros = now & 2; \
                asm volatile("{.reg .pred p, q; .reg .b16 h; .reg .b64 d; .reg .b32 s; mov.b16 h, 0;" \
                             "mov.b64 d, 0; cvt.u32.u64 s, %4;" \
                             "setp.ne.u32 p, %6, 0; setp.ne.u32 q, %7, 0;" CODE "}" \
                             : "+r"(v0), "+r"(v1), "+r"(v2), "+r"(v3) \
                             : "l"(to), "l"(source), "r"(on), "r"(zeros) : "memory"); \
            } \
            __syncthreads(); \
        } \
        if ((v0 ^ v1 ^ v2 ^ v3) == 12345) result[threadIdx.x] = v0; \
    }

#define SHARED (uint64_t)__cvta_generic_to_shared(tile) + at
#define GENERIC (space == 1 ? (uint64_t)tile : space == 2 ? mine : (uint64_t)memory) + at
#define CONSTANT __cvta_generic_to_constant(constants) + at
#define WAIT "cp.async.wait_all;"

REQUESTS(copy_cg16, SHARED, "@p cp.async.cg.shared.global [s], [%5], 16, q;" WAIT)
REQUESTS(copy_ca4, SHARED, "@p cp.async.ca.shared.global [s], [%5], 4, q;" WAIT)
REQUESTS(copy_ca8, SHARED, "@p cp.async.ca.shared.global [s], [%5], 8, q;" WAIT)
REQUESTS(copy_ca16, SHARED, "@p cp.async.ca.shared.global [s], [%5], 16, q;" WAIT)
REQUESTS(load1, GENERIC, "@p ld.u8 h, [%4]; cvt.u32.u16 %0, h;")
REQUESTS(load4, GENERIC, "@p ld.u32 %0, [%4];")
REQUESTS(load8, GENERIC, "@p ld.v2.u32 {%0, %1}, [%4];")
REQUESTS(load16, GENERIC, "@p ld.v4.u32 {%0, %1, %2, %3}, [%4];")
REQUESTS(store4, GENERIC, "@p st.u32 [%4], %1;")
REQUESTS(store8, GENERIC, "@p st.v2.u32 [%4], {%1, %2};")
REQUESTS(store16, GENERIC, "@p st.v4.u32 [%4], {%0, %1, %2, %3};")
REQUESTS(add4, GENERIC, "@p atom.add.u32 %0, [%4], 1;")
REQUESTS(max4, GENERIC, "@p red.max.u32 [%4], 1;")
REQUESTS(cas4, GENERIC, "@p atom.cas.b32 %0, [%4], 7, %1;")
REQUESTS(constant4, CONSTANT, "@p ld.const.u32 %0, [%4];")
