// Elements that the iterations of a loop store in turn: in one half of sectors, then in the other. Of two
// iterations the halves of a warp exchange one, so that both are stored at once.
template <int BYTES> struct in_turn_unit;
template <> struct in_turn_unit<4> { typedef unsigned type; };
template <> struct in_turn_unit<8> { typedef uint2 type; };
template <> struct in_turn_unit<16> { typedef uint4 type; };
template <typename T, int LENGTH>
struct stored_in_turn {
    typedef typename in_turn_unit<LENGTH * sizeof(T)>::type unit;
    alignas(unit) T own[LENGTH];
    unit first;
    T *at;
    bool held;
    __device__ __forceinline__ stored_in_turn() : at(0), held(false) {}
    __device__ __forceinline__ T &operator[](int place) { return own[place]; }
    static __device__ __forceinline__ void write(T *where, const unit &all) {
#pragma unroll
        for (int one = 0; one < LENGTH; ++one) where[one] = ((const T *)&all)[one];
    }
    // Whether a whole warp has units in the lower halves of sectors, then in the upper ones: no lane stores
    // first where another one does later.
    static __device__ __forceinline__ bool together(const T *one, const T *two) {
        const unsigned long long at = (unsigned long long)one;
        const bool halves = at % 32 < 16 && at + 16 == (unsigned long long)two && at % sizeof(unit) == 0;
        return __activemask() == ~0u && __all_sync(~0u, halves && __isGlobal(one) && __isGlobal(two));
    }
    __device__ __forceinline__ void put(T *where) {
        const unit second = *(const unit *)own;
        held = !held;
        if (held) {
            first = second;
            at = where;
        } else if (together(at, where)) {
            const bool upper = (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) & 16;
            const unsigned long long beside = (unsigned long long)(upper ? at : where);
            T *const to = (T *)__shfl_xor_sync(~0u, beside, 16);
            unit given = upper ? first : second;
#pragma unroll
            for (int one = 0; one < sizeof(unit) / 4; ++one)
                ((unsigned *)&given)[one] = __shfl_xor_sync(~0u, ((unsigned *)&given)[one], 16);
            *(unit *)(upper ? to : at) = upper ? given : first;
            *(unit *)(upper ? where : to) = upper ? second : given;
        } else {
            write(at, first);
            write(where, second);
        }
    }
    // Stores what the last one of an odd number of iterations has.
    __device__ __forceinline__ void close() {
        if (held) write(at, first);
    }
};
template <int LENGTH, typename T>
__device__ __forceinline__ stored_in_turn<T, LENGTH> in_turn(const T *) {
    return stored_in_turn<T, LENGTH>();
}
