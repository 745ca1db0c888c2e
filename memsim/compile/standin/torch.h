/* What device code says of PyTorch's scalar types, at their sizes; arithmetic is done in float, as PyTorch does. */
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#define C10_WARP_SIZE 32
#define C10_LAUNCH_BOUNDS_0 __launch_bounds__(256)
#define C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)
#define C10_RESTRICT __restrict__
#define CUDA_KERNEL_ASSERT(condition)
#define WARP_SHFL_XOR(value, mask) __shfl_xor_sync(0xffffffffu, value, mask)
#define WARP_SHFL_DOWN(value, delta) __shfl_down_sync(0xffffffffu, value, delta)
#define WARP_SHFL(value, lane) __shfl_sync(0xffffffffu, value, lane)
#define CUDA_KERNEL_LOOP(i, n) for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)

namespace c10 {
#define MEMSIM_SCALAR(Name, raw, from, to)                                                 \
    struct alignas(2) Name {                                                               \
        unsigned short x;                                                                  \
        Name() = default;                                                                  \
        __device__ Name(float value) { raw h = from(value); x = *(unsigned short *)&h; }   \
        __device__ Name(const raw &value) { x = *(const unsigned short *)&value; }         \
        __device__ operator float() const { return to(*(const raw *)&x); }                 \
    };                                                                                     \
    __device__ inline Name operator+(const Name &a, const Name &b) { return float(a) + float(b); } \
    __device__ inline Name operator-(const Name &a, const Name &b) { return float(a) - float(b); } \
    __device__ inline Name operator*(const Name &a, const Name &b) { return float(a) * float(b); } \
    __device__ inline Name operator/(const Name &a, const Name &b) { return float(a) / float(b); } \
    __device__ inline Name operator-(const Name &a) { return -float(a); }                  \
    __device__ inline Name &operator+=(Name &a, const Name &b) { return a = a + b; }       \
    __device__ inline Name &operator-=(Name &a, const Name &b) { return a = a - b; }       \
    __device__ inline Name &operator*=(Name &a, const Name &b) { return a = a * b; }       \
    __device__ inline Name &operator/=(Name &a, const Name &b) { return a = a / b; }
#define MEMSIM_MIXED(Name, op)                                                             \
    template <typename T> __device__ inline float operator op(const Name &a, const T &b) { return float(a) op float(b); } \
    template <typename T> __device__ inline float operator op(const T &a, const Name &b) { return float(a) op float(b); }
MEMSIM_SCALAR(Half, __half, __float2half, __half2float)
MEMSIM_SCALAR(BFloat16, __nv_bfloat16, __float2bfloat16, __bfloat162float)
MEMSIM_MIXED(Half, +)
MEMSIM_MIXED(Half, -)
MEMSIM_MIXED(Half, *)
MEMSIM_MIXED(Half, /)
MEMSIM_MIXED(BFloat16, +)
MEMSIM_MIXED(BFloat16, -)
MEMSIM_MIXED(BFloat16, *)
MEMSIM_MIXED(BFloat16, /)
#undef MEMSIM_SCALAR
#undef MEMSIM_MIXED
} // namespace c10

namespace at {
using c10::BFloat16;
using c10::Half;
template <typename T> struct OpMathType { using type = T; };
template <> struct OpMathType<Half> { using type = float; };
template <> struct OpMathType<BFloat16> { using type = float; };
template <typename T> using opmath_type = typename OpMathType<T>::type;
template <typename T, bool on_device> using acc_type = opmath_type<T>;
} // namespace at
namespace torch {
using namespace at;
}
template <typename T> __device__ inline T gpuAtomicAdd(T *address, T value) { return atomicAdd(address, value); }
__device__ inline at::Half gpuAtomicAdd(at::Half *address, at::Half value) { return at::Half(atomicAdd((__half *)address, __half(float(value)))); }
