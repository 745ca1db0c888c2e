// Kernel names: templates, namespaces, packs, enums, internal linkage.
namespace ns {
namespace inner {
enum class Mode : int { A, B = 5 };
struct Tag {};
template <int BM, int BN = 64, typename T = float> __global__ void sgemm(T *a) { a[BM] = BN; }
}  // namespace inner
}  // namespace ns
template <typename T> struct Vec { T x; };
template <typename T, int N> struct Array { T x[N]; };

template <int A, int B> __global__ void sg(float *a) { a[A] = B; }
template <bool B> __global__ void flag(float *a) { a[0] = B; }
template <char C> __global__ void letter(float *a) { a[0] = C; }
template <unsigned long long C> __global__ void wide(float *a) { a[0] = C; }
template <ns::inner::Mode M> __global__ void mode(float *a) { a[0] = int(M); }
template <typename... T> __global__ void pack(float *a) { a[0] = sizeof...(T); }
template <int... I> __global__ void numbers(float *a) { a[0] = sizeof...(I); }
template <typename T, typename U> __global__ void types(T *a, U *b) { a[0] = T(), b[0] = U(); }
template <void (*F)(float *)> __global__ void function(float *a) { F(a); }
__device__ void callee(float *a) { a[0] = 1; }
static __global__ void internal(float *a) { a[0] = 1; }
extern "C" __global__ void plain(float *a) { a[0] = 1; }

template __global__ void ns::inner::sgemm<128>(float *);
template __global__ void ns::inner::sgemm<128, 32, double>(double *);
template __global__ void sg<128, 0>(float *);
template __global__ void sg<-1, 2>(float *);
template __global__ void flag<true>(float *);
template __global__ void letter<'a'>(float *);
template __global__ void wide<18446744073709551615ull>(float *);
template __global__ void mode<ns::inner::Mode::B>(float *);
template __global__ void pack<>(float *);
template __global__ void pack<int, ns::inner::Tag, float4>(float *);
template __global__ void numbers<1, 2, 3>(float *);
template __global__ void types<Vec<Vec<float>>, Vec<Vec<float>>>(Vec<Vec<float>> *, Vec<Vec<float>> *);
template __global__ void types<const float *, Array<unsigned char, 4>>(const float **, Array<unsigned char, 4> *);
template __global__ void function<callee>(float *);
