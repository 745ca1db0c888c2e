// A row along which a thread walks. The lanes of a warp move pieces of their rows side by side, through tiles
// of shared memory: one for each row of the source, by its NUMBER.
template <int BYTES, int WARPS, int NUMBER, bool WIDE>
struct row_tile {
    static __device__ __forceinline__ unsigned char *of(unsigned warp) {
        __shared__ alignas(8) unsigned char all[WARPS][32 * (BYTES + 8)];
        return all[warp];
    }
};
template <typename T, int BYTES, int WARPS, int NUMBER>
struct row_of_thread {
    static const int LENGTH = BYTES / sizeof(T), PITCH = LENGTH + (sizeof(T) < 4 ? 4 / sizeof(T) : 1);
    static const int AT_ONCE = LENGTH % 8 ? LENGTH % 4 ? 2 : 4 : 8;
    static_assert(LENGTH > 1, "an element is longer than a piece of a row");
    T *all, *own, last; // that was stored
    int place, end;
    static __device__ __forceinline__ unsigned thread() {
        return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    }
    __device__ __forceinline__ row_of_thread(const T *) : place(0), end(0) {
        all = (T *)row_tile<BYTES, WARPS, NUMBER, sizeof(T) == 8>::of(thread() / 32 % WARPS);
        own = all + thread() % 32 * PITCH;
    }
    // Whether a row can be moved by others: the block is no larger than expected, and the row not a thread's.
    static __device__ __forceinline__ bool is_shared(const T *at) {
        return thread() / 32 < WARPS && __isGlobal(at);
    }
    // The active lane of a number.
    static __device__ __forceinline__ unsigned active_lane(unsigned lanes, unsigned number) {
        if ((lanes & (lanes + 1)) == 0) return number;
        unsigned lane = 0;
#pragma unroll
        for (unsigned half = 16; half > 0; half /= 2) {
            const unsigned below = __popc(lanes >> lane & ((1u << half) - 1));
            if (number >= below) number -= below, lane += half;
        }
        return lane;
    }
    // Moves `count` elements of each active lane, from `at` into the tile or back.
    template <bool LOADS>
    __device__ __forceinline__ void moved(const T *at, int count) {
        const unsigned lanes = __activemask(), lane = thread() % 32;
        const unsigned active = __popc(lanes), number = __popc(lanes & ((1u << lane) - 1));
        __syncwarp(lanes);
#pragma unroll 1
        for (unsigned first = 0; first < LENGTH; first += AT_ONCE) {
            T held[AT_ONCE], *memory[AT_ONCE], *staged[AT_ONCE];
#pragma unroll
            for (unsigned one = 0; one < AT_ONCE; ++one) {
                const unsigned index = (first + one) * active + number, element = index % LENGTH;
                const unsigned source = active_lane(lanes, index / LENGTH);
                memory[one] = (T *)__shfl_sync(lanes, (unsigned long long)at, source) + element;
                staged[one] = all + source * PITCH + element;
                if ((int)element >= __shfl_sync(lanes, count, source)) memory[one] = 0;
            }
#pragma unroll
            for (unsigned one = 0; one < AT_ONCE; ++one)
                if (memory[one]) held[one] = LOADS ? *memory[one] : *staged[one];
#pragma unroll
            for (unsigned one = 0; one < AT_ONCE; ++one)
                if (memory[one]) *(LOADS ? staged[one] : memory[one]) = held[one];
        }
        __syncwarp(lanes);
    }
    // The element at `at`, which is the one after the last, of a row that has `left` more from there.
    __device__ __forceinline__ T operator()(const T *at, long long left) {
        if (place == end) {
            if (!is_shared(at)) return *at;
            end = left < LENGTH ? (int)left : LENGTH;
            place = 0;
            moved<true>(at, end);
        }
        return own[place++];
    }
    // Stores a value at `at`, which is the place after the last if it is `along` a row.
    __device__ __forceinline__ void put(T *at, T value, bool along = true) {
        last = value;
        if (!along || !is_shared(at)) {
            *at = value;
            return;
        }
        own[place++] = value;
        if (place == LENGTH) close(at + 1);
    }
    // Stores what was collected before `end`.
    __device__ __forceinline__ void close(T *end) {
        moved<false>(end - place, place);
        place = 0;
    }
};
template <int BYTES, int WARPS, int NUMBER, typename T>
__device__ __forceinline__ row_of_thread<T, BYTES, WARPS, NUMBER> row_along(const T *row) {
    return row_of_thread<T, BYTES, WARPS, NUMBER>(row);
}
