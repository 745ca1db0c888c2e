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

/* A tensor passed by value: a pointer, then sizes and strides in elements, as torch/headeronly/core/TensorAccessor.h
   lays it out. */
template <typename T> struct DefaultPtrTraits { typedef T *PtrType; };
template <typename T> struct RestrictPtrTraits { typedef T *__restrict__ PtrType; };
template <typename T, size_t N, template <typename U> class PtrTraits = DefaultPtrTraits, typename index_t = int64_t>
class TensorAccessor {
public:
    typedef typename PtrTraits<T>::PtrType PtrType;
    __device__ TensorAccessor(PtrType data, const index_t *sizes, const index_t *strides)
        : data_(data), sizes_(sizes), strides_(strides) {}
    __device__ index_t size(index_t i) const { return sizes_[i]; }
    __device__ index_t stride(index_t i) const { return strides_[i]; }
    __device__ PtrType data() const { return data_; }
    __device__ TensorAccessor<T, N - 1, PtrTraits, index_t> operator[](index_t i) const {
        return TensorAccessor<T, N - 1, PtrTraits, index_t>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
    }

private:
    PtrType data_;
    const index_t *sizes_, *strides_;
};
template <typename T, template <typename U> class PtrTraits, typename index_t>
class TensorAccessor<T, 1, PtrTraits, index_t> {
public:
    typedef typename PtrTraits<T>::PtrType PtrType;
    __device__ TensorAccessor(PtrType data, const index_t *sizes, const index_t *strides)
        : data_(data), sizes_(sizes), strides_(strides) {}
    __device__ index_t size(index_t i) const { return sizes_[i]; }
    __device__ index_t stride(index_t i) const { return strides_[i]; }
    __device__ PtrType data() const { return data_; }
    __device__ T &operator[](index_t i) const { return data_[strides_[0] * i]; }

private:
    PtrType data_;
    const index_t *sizes_, *strides_;
};
template <typename T, size_t N, template <typename U> class PtrTraits = DefaultPtrTraits, typename index_t = int64_t>
class GenericPackedTensorAccessor {
public:
    typedef typename PtrTraits<T>::PtrType PtrType;
    __device__ index_t size(index_t i) const { return sizes_[i]; }
    __device__ index_t stride(index_t i) const { return strides_[i]; }
    __device__ PtrType data() const { return data_; }
    __device__ decltype(auto) operator[](index_t i) const {
        return TensorAccessor<T, N, PtrTraits, index_t>(data_, sizes_, strides_)[i];
    }

private:
    PtrType data_;
    index_t sizes_[N], strides_[N];
};
template <typename T, size_t N, template <typename U> class PtrTraits = DefaultPtrTraits, typename index_t = int64_t>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, PtrTraits, index_t>;
template <typename T, size_t N, template <typename U> class PtrTraits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, PtrTraits, int32_t>;
template <typename T, size_t N, template <typename U> class PtrTraits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, PtrTraits, int64_t>;
} // namespace at
namespace torch {
using namespace at;
}
template <typename T> __device__ inline T gpuAtomicAdd(T *address, T value) { return atomicAdd(address, value); }
__device__ inline at::Half gpuAtomicAdd(at::Half *address, at::Half value) { return at::Half(atomicAdd((__half *)address, __half(float(value)))); }
