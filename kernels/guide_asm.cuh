// Shared and global memory by PTX, as the later kernels of the guide use it. Macros and not functions, so that an
// access belongs to the line that asks for it. `address` is a 32-bit address in shared memory: see shared_address().
#pragma once

#include <cstdint>

__device__ inline uint32_t shared_address(const void *pointer)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// 16 bytes from shared memory to r[0..3], or from r[0..3] to shared memory.
#define LDS128(r, address)                                                \
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"               \
                 : "=f"((r)[0]), "=f"((r)[1]), "=f"((r)[2]), "=f"((r)[3]) \
                 : "r"(address)                                           \
                 : "memory")
#define STS128(r, address)                                                          \
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};"                         \
                 :                                                                  \
                 : "r"(address), "f"((r)[0]), "f"((r)[1]), "f"((r)[2]), "f"((r)[3]) \
                 : "memory")

// 4 bytes to shared memory.
#define STS32(r, address) asm volatile("st.shared.f32 [%0], %1;" : : "r"(address), "f"(r) : "memory")

// 4 bytes from global memory that no one writes (.nc), and the wish that L2 fetch the 128 bytes around them; 0 and no
// access where `inside` is false.
#define LDG32_NC_0(r, pointer, inside)                        \
    asm volatile("{\n\t"                                      \
                 ".reg .pred p;\n\t"                          \
                 "setp.ne.b32 p, %2, 0;\n\t"                  \
                 "mov.f32 %0, 0f00000000;\n\t"                \
                 "@p ld.global.nc.L2::128B.f32 %0, [%1];\n\t" \
                 "}"                                          \
                 : "=f"(r)                                    \
                 : "l"(pointer), "r"(static_cast<int>(inside)))
