// The PTX instructions that the sgemm_ kernels are written with, by the names that SASS has for them: LDG and STG load
// and store global memory, LDS and STS shared memory. They are macros, so that a count belongs to the line that asks
// for it. Shared memory is addressed in bytes.
#pragma once

__device__ inline unsigned shared_address(const void *pointer)
{
    unsigned long long address;
    asm("cvta.to.shared.u64 %0, %1;" : "=l"(address) : "l"(pointer));
    return (unsigned)address;
}

// `to` = *from where the guard holds, else 0.
#define LDG_IF(to, from, guard)                                                                                  \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; mov.f32 %0, 0f00000000; @p ld.global.f32 %0, [%1]; }"    \
                 : "=f"(to) : "l"(from), "r"((int)(guard)) : "memory")

// *to = value where the guard holds.
#define STG_IF(to, value, guard)                                                                                 \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p st.global.f32 [%0], %1; }"                            \
                 : : "l"(to), "f"(value), "r"((int)(guard)) : "memory")

// 4 bytes from global to shared memory, 0 where the guard does not hold. They are there after CP_ASYNC_WAIT.
#define CP_ASYNC_IF(address, from, guard)                                                                        \
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"                                                  \
                 : : "r"(address), "l"(from), "r"((guard) ? 4 : 0) : "memory")
#define CP_ASYNC_COMMIT() asm volatile("cp.async.commit_group;" : : : "memory")
#define CP_ASYNC_WAIT() asm volatile("cp.async.wait_group 0;" : : : "memory")

// One float; and four, `to` or `value` and the three after it.
#define LDS1(to, address) asm volatile("ld.shared.f32 %0, [%1];" : "=f"(to) : "r"(address) : "memory")
#define STS1(address, value) asm volatile("st.shared.f32 [%0], %1;" : : "r"(address), "f"(value) : "memory")
#define LDS4(to, address)                                                                                        \
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"                                                      \
                 : "=f"((&(to))[0]), "=f"((&(to))[1]), "=f"((&(to))[2]), "=f"((&(to))[3]) : "r"(address)         \
                 : "memory")
#define STS4(address, value)                                                                                     \
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};"                                                      \
                 : : "r"(address), "f"((&(value))[0]), "f"((&(value))[1]), "f"((&(value))[2]),                   \
                     "f"((&(value))[3]) : "memory")
