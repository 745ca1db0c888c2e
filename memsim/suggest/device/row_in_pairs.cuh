// A row along which a thread walks, 32 bytes at a time: two neighbouring lanes move the halves of both their
// rows, so that each sector is moved once. Where one of them is elsewhere, the other moves 16 bytes alone.
template <typename T>
struct row_of_thread {
    static const int LENGTH = 16 / sizeof(T);
    static_assert(16 % sizeof(T) == 0, "elements of 1, 2, 4, 8 or 16 bytes");
    union {
        uint4 all;
        T one[LENGTH];
    };
    uint4 other; // behind what is held of a row that is read, ahead of it of one that is stored
    T last; // that was stored
    int held, lane;
    bool has_other;
    __device__ __forceinline__ row_of_thread(const T *)
        : all(make_uint4(0, 0, 0, 0)), other(all), held(0), has_other(false) {
        lane = (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
    }
    __device__ __forceinline__ T shifted(T last) {
        const T first = one[0];
        if (sizeof(T) < 4) {
            const int bits = 8 * sizeof(T) % 32;
            all.x = __funnelshift_r(all.x, all.y, bits);
            all.y = __funnelshift_r(all.y, all.z, bits);
            all.z = __funnelshift_r(all.z, all.w, bits);
            all.w >>= bits;
        } else {
#pragma unroll
            for (int place = 1; place < LENGTH; ++place) one[place - 1] = one[place];
        }
        one[LENGTH - 1] = last;
        return first;
    }
    // The active lanes of pairs that both have 32 bytes at an address that all can access; 0 in others.
    __device__ __forceinline__ unsigned pairs(const T *at, bool whole) const {
        const unsigned ready = __ballot_sync(__activemask(), whole && __isGlobal(at));
        const unsigned even = ready & ready >> 1 & 0x55555555, lanes = even | even << 1;
        return lanes >> lane & 1 ? lanes : 0;
    }
    // One of two, without a branch.
    __device__ __forceinline__ uint4 of_odd(uint4 odd, uint4 even) const {
        const bool is_odd = lane % 2;
        return make_uint4(is_odd ? odd.x : even.x, is_odd ? odd.y : even.y, is_odd ? odd.z : even.z,
                          is_odd ? odd.w : even.w);
    }
    static __device__ __forceinline__ uint4 exchanged(unsigned lanes, uint4 one) {
        return make_uint4(__shfl_xor_sync(lanes, one.x, 1), __shfl_xor_sync(lanes, one.y, 1),
                          __shfl_xor_sync(lanes, one.z, 1), __shfl_xor_sync(lanes, one.w, 1));
    }
    // Where the even lane's row and the odd one's have the half that this lane moves.
    __device__ __forceinline__ void halves(unsigned lanes, const T *at, uint4 *&even, uint4 *&odd) const {
        const unsigned long long own = (unsigned long long)at, beside = __shfl_xor_sync(lanes, own, 1);
        even = (uint4 *)(lane % 2 ? beside : own) + lane % 2;
        odd = (uint4 *)(lane % 2 ? own : beside) + lane % 2;
    }
    // The element at `at`, which is the one after the last, of a row that has `left` more from there.
    __device__ __forceinline__ T operator()(const T *at, long long left) {
        if (held == 0 && has_other) {
            all = other;
            has_other = false;
            held = LENGTH;
        } else if (held == 0) {
            if (left < LENGTH || (unsigned long long)at % 16) return *at;
            const unsigned lanes = pairs(at, left >= 2 * LENGTH);
            has_other = lanes != 0;
            if (has_other) {
                uint4 *even, *odd;
                halves(lanes, at, even, odd);
                const uint4 first = *even, second = *odd;
                const uint4 given = exchanged(lanes, of_odd(first, second));
                all = of_odd(given, first);
                other = of_odd(second, given);
            } else {
                all = *(const uint4 *)at;
            }
            held = LENGTH;
        }
        --held;
        return shifted(one[0]);
    }
    // Stores a value at `at`, which is the place after the last if it is `along` a row.
    __device__ __forceinline__ void put(T *at, T value, bool along = true) {
        last = value;
        if (!along || (held == 0 && (unsigned long long)at % 16)) {
            *at = value;
            return;
        }
        shifted(value);
        if (++held < LENGTH) return;
        held = 0;
        has_other = !has_other;
        if (has_other) {
            other = all;
            return;
        }
        T *start = at + 1 - 2 * LENGTH;
        const unsigned lanes = pairs(start, true);
        if (lanes) {
            uint4 *even, *odd;
            halves(lanes, start, even, odd);
            const uint4 given = exchanged(lanes, of_odd(other, all));
            *even = of_odd(given, other);
            *odd = of_odd(all, given);
        } else {
            *(uint4 *)start = other;
            *(uint4 *)(start + LENGTH) = all;
        }
    }
    // Stores what was collected before `end`.
    __device__ __forceinline__ void close(T *end) {
        if (has_other) *(uint4 *)(end - held - LENGTH) = other;
#pragma unroll
        for (int back = LENGTH; back > 0; --back)
            if (back <= held) end[-back] = one[LENGTH - back];
    }
};
template <typename T>
__device__ __forceinline__ row_of_thread<T> row_along(const T *row) { return row_of_thread<T>(row); }
