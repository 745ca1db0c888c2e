// Neighbouring elements of a thread. The lanes of a warp move theirs side by side, through shared memory.
#ifndef RECORD_OF_THREAD // which several files may have
#define RECORD_OF_THREAD
template <int ALIGNED> struct record_unit { typedef unsigned char type; };
template <> struct record_unit<2> { typedef unsigned short type; };
template <> struct record_unit<4> { typedef unsigned type; };
template <> struct record_unit<8> { typedef uint2 type; };
template <> struct record_unit<16> { typedef uint4 type; };
// Room for records of all types that have no tile of their own: 16 KiB, and where each lane's record is.
template <int WARPS> struct record_room {
    static const int BYTES = 16384 / WARPS / 16 * 16;
    static __device__ __forceinline__ char *of(unsigned warp) {
        __shared__ alignas(16) char all[WARPS][BYTES + 256];
        return all[warp];
    }
    static __device__ __forceinline__ unsigned *taken(unsigned warp) {
        __shared__ unsigned all[WARPS];
        return all + warp;
    }
    // Where a kernel begins: no lanes have taken the room of their warp yet.
    static __device__ __forceinline__ void open() {
        const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        if (thread % 32 == 0 && thread / 32 < WARPS) *taken(thread / 32) = 0;
        __syncwarp(__activemask());
    }
};
template <typename T, int LENGTH, int WARPS, bool ANY, bool OPEN>
struct record_of_thread {
    typedef typename record_unit<alignof(T)>::type unit;
    static const int BYTES = LENGTH * sizeof(T), UNITS = BYTES / sizeof(unit), BATCH = 8;
    // Narrow units are moved as words, where no padding is between records: else four lanes meet in a bank.
    static const int OF_WORD = sizeof(unit) < 4 && BYTES % 16 != 0 ? 4 / sizeof(unit) : 0;
    static const int ROW = OF_WORD ? UNITS : UNITS | 1;
    static const bool IS_VECTOR = BYTES <= 16 && (BYTES & (BYTES - 1)) == 0;
    static const bool IS_PAIR = BYTES == 32 && sizeof(unit) == 16;
    // Of records that would take half of the shared memory of a block, so many are moved at once.
    static const int AT_ONCE =
        WARPS * 32 * ROW * sizeof(unit) > 24576 ? record_room<WARPS>::BYTES / (ROW * sizeof(unit)) : 32;
    static_assert(AT_ONCE > 0, "a record for which there is room");
    static const int TILES = AT_ONCE < 32 ? 1 : WARPS;
    typedef typename record_unit<IS_VECTOR ? BYTES : alignof(T)>::type vector;
    alignas(vector) unit units[UNITS];
    __device__ __forceinline__ T &operator[](int place) { return ((T *)units)[place]; }
    __device__ __forceinline__ const T &operator[](int place) const { return ((const T *)units)[place]; }
    static __device__ __forceinline__ unsigned thread() {
        return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    }
    // Where the records of the lanes begin, the first of which is at `first`: in a word as in memory.
    static __device__ __forceinline__ unit *tile(const unit *first) {
        __shared__ alignas(16) unit all[TILES][TILES < WARPS ? 1 : 32 * ROW + OF_WORD];
        return all[thread() / 32] + ((unsigned long long)first & (OF_WORD ? 3 : 0)) / sizeof(unit);
    }
    // Room for where the record of each lane is in memory.
    static __device__ __forceinline__ unit **own_starts() {
        __shared__ unit *others[TILES][32];
        return others[thread() / 32];
    }
    // Whether a warp's active lanes have its tile to themselves: others have no lane 0. And, if a
    // function may be given ANY pointer, whether all can access the elements.
    static __device__ __forceinline__ bool together(unsigned lanes, const unit *at) {
        return (lanes & 1) && thread() / 32 < WARPS && (!ANY || __all_sync(lanes, __isGlobal(at)));
    }
    // A lane's number among the active ones.
    static __device__ __forceinline__ unsigned number(unsigned lanes) {
        return __popc(lanes & ((1u << thread() % 32) - 1));
    }
    // So many units, of `count` records or fewer, as words between those with other data.
    static __device__ __forceinline__
    void words_moved(const unit *from, unit *to, unsigned length, unsigned count, unsigned lane) {
        const unsigned each = OF_WORD ? OF_WORD : 1;
        const unsigned ahead = (each - (unsigned long long)from / sizeof(unit) % each) % each;
        const unsigned words = length < ahead ? 0 : (length - ahead) / each;
        for (unsigned one = lane; one < ahead && one < length; one += count) to[one] = from[one];
        for (unsigned one = ahead + words * each + lane; one < length; one += count) to[one] = from[one];
        const unsigned *whole = (const unsigned *)(from + ahead) + lane;
        unsigned held[(BYTES + 3) / 4], *place = (unsigned *)(to + ahead) + lane;
#pragma unroll
        for (int one = 0; one < (BYTES + 3) / 4; ++one)
            if (one * count + lane < words) held[one] = whole[one * count];
#pragma unroll
        for (int one = 0; one < (BYTES + 3) / 4; ++one)
            if (one * count + lane < words) place[one * count] = held[one];
    }
    // Between the tile and memory, in batches, as the compiler keeps the order of loads and stores.
    template <bool LOADS>
    static __device__ __forceinline__ void moved(unsigned lanes, unit *at, unit *first, unit *all) {
        const unsigned count = __popc(lanes), lane = number(lanes);
        const bool side_by_side = __all_sync(lanes, at == first + lane * UNITS);
        if (OF_WORD && side_by_side) {
            if (!LOADS) __syncwarp(lanes);
            words_moved(LOADS ? first : all, LOADS ? all : first, count * UNITS, count, lane);
            if (LOADS) __syncwarp(lanes);
            return;
        }
        unit **const starts = own_starts();
        if (!side_by_side) starts[lane] = at;
        __syncwarp(lanes);
        // The units ahead of the first whole sector alone, so that each batch begins with one.
        const unsigned of_sector = 32 / sizeof(unit);
        const unsigned ahead = !side_by_side || count % of_sector != 0
            ? 0 : (of_sector - (unsigned long long)first / sizeof(unit) % of_sector) % of_sector;
        if (lane < ahead) {
            unit *const staged = all + lane + lane / UNITS * (ROW - UNITS);
            *(LOADS ? staged : first + lane) = *(LOADS ? first + lane : staged);
        }
#pragma unroll
        for (int begin = 0; begin < UNITS; begin += BATCH) {
            unit held[BATCH], *memory[BATCH], *staged[BATCH];
#pragma unroll
            for (int one = 0; one < BATCH && begin + one < UNITS; ++one) {
                const unsigned place = ahead + (begin + one) * count + lane, record = place / UNITS;
                memory[one] = side_by_side ? first + place : starts[record] + place % UNITS;
                staged[one] = all + place + record * (ROW - UNITS);
            }
#pragma unroll
            for (int one = 0; one < BATCH && begin + one < UNITS; ++one)
                if (begin + one < UNITS - 1 || lane + ahead < count)
                    held[one] = LOADS ? *memory[one] : *staged[one];
#pragma unroll
            for (int one = 0; one < BATCH && begin + one < UNITS; ++one)
                if (begin + one < UNITS - 1 || lane + ahead < count)
                    *(LOADS ? staged[one] : memory[one]) = held[one];
        }
        __syncwarp(lanes);
    }
    // Whether a warp's active lanes have its room: if it is OPEN no others do, else others have no lane 0.
    static __device__ __forceinline__ bool take_room(unsigned lanes) {
        if (!OPEN) return lanes & 1;
        unsigned other = 0;
        if (number(lanes) == 0) other = atomicCAS(record_room<WARPS>::taken(thread() / 32), 0, 1);
        return __shfl_sync(lanes, other, __ffs(lanes) - 1) == 0;
    }
    // Moves records through that room, some of the lanes' at a time. Returns whether it has.
    template <bool LOADS>
    __device__ __forceinline__ bool moved_in_parts(unsigned lanes, unit *at) {
        if (thread() / 32 >= WARPS || (ANY && !__all_sync(lanes, __isGlobal(at))) || !take_room(lanes))
            return false;
        const unsigned count = __popc(lanes), lane = number(lanes);
        const unsigned whole = count < UNITS ? 1 : count / UNITS; // records of a request, which none splits
        char *const room = record_room<WARPS>::of(thread() / 32);
        unit *const all = (unit *)room, **const starts = (unit **)(room + record_room<WARPS>::BYTES);
        starts[lane] = at;
        for (unsigned begin = 0; begin < count; begin += AT_ONCE) {
            const bool is_own = lane - begin < AT_ONCE;
            unit *const own = all + (lane - begin) * ROW;
            const unsigned records = count - begin < AT_ONCE ? count - begin : AT_ONCE;
            if (!LOADS && is_own) {
#pragma unroll
                for (int one = 0; one < UNITS; ++one) own[one] = units[one];
            }
            __syncwarp(lanes);
            for (unsigned first = 0; first < records; first += whole)
                for (unsigned place = lane; place < whole * UNITS; place += count) {
                    const unsigned record = first + place / UNITS;
                    if (record >= records) break;
                    unit *const memory = starts[begin + record] + place % UNITS;
                    unit *const staged = all + record * ROW + place % UNITS;
                    *(LOADS ? staged : memory) = *(LOADS ? memory : staged);
                }
            __syncwarp(lanes);
            if (LOADS && is_own) {
#pragma unroll
                for (int one = 0; one < UNITS; ++one) units[one] = own[one];
            }
            __syncwarp(lanes);
        }
        if (OPEN && lane == 0) {
            __threadfence_block();
            atomicExch(record_room<WARPS>::taken(thread() / 32), 0);
        }
        return true;
    }
    // Whether a whole warp has such records as two neighbouring lanes exchange in registers: each of them
    // moves the same half of both their records, so that each sector is moved once.
    static __device__ __forceinline__ bool in_pairs(unsigned lanes, const unit *at) {
        return IS_PAIR && lanes == ~0u && (!ANY || __all_sync(~0u, __isGlobal(at)));
    }
    template <bool LOADS>
    __device__ __forceinline__ void halves_moved(unit *at) {
        const bool odd = thread() % 2;
        const unsigned long long own = (unsigned long long)at, beside = __shfl_xor_sync(~0u, own, 1);
        unit *of_even = (unit *)(odd ? beside : own) + odd, *of_odd = (unit *)(odd ? own : beside) + odd;
        if (LOADS) units[0] = *of_even, units[UNITS - 1] = *of_odd;
        unit given = odd ? units[0] : units[UNITS - 1];
#pragma unroll
        for (int one = 0; one < sizeof(unit) / 4; ++one)
            ((unsigned *)&given)[one] = __shfl_xor_sync(~0u, ((unsigned *)&given)[one], 1);
        const unit first = odd ? given : units[0], second = odd ? units[UNITS - 1] : given;
        *(LOADS ? units : of_even) = first;
        *(LOADS ? units + UNITS - 1 : of_odd) = second;
    }
#if __CUDA_ARCH__ >= 800
    // Loads what lies from the first record to the last one, where that is no more than as many records.
    __device__ __forceinline__ bool window_loaded(unsigned lanes, const unit *at, const unit *of_lane_0) {
        const unsigned count = __popc(lanes);
        const long long apart = at - of_lane_0;
        const int place = apart > 32 * UNITS ? 32 * UNITS : apart < -32 * UNITS ? -32 * UNITS : (int)apart;
        const int low = __reduce_min_sync(lanes, place), high = __reduce_max_sync(lanes, place);
        if (high - low > (int)(count - 1) * UNITS) return false;
        const unit *first = of_lane_0 + low;
        unit *all = tile(first);
        words_moved(first, all, high - low + UNITS, count, number(lanes));
        __syncwarp(lanes);
#pragma unroll
        for (int one = 0; one < UNITS; ++one) units[one] = all[place - low + one];
        __syncwarp(lanes);
        return true;
    }
#endif
    __device__ __forceinline__ void load(const T *where) {
        unit *at = (unit *)where;
        const unsigned lanes = __activemask();
        if (IS_VECTOR && __all_sync(lanes, (unsigned long long)at % sizeof(vector) == 0)) {
            *(vector *)units = *(const vector *)at;
            return;
        }
        if (in_pairs(lanes, at)) {
            halves_moved<true>(at);
            return;
        }
        if (AT_ONCE < 32 && moved_in_parts<true>(lanes, at)) return;
        if (AT_ONCE < 32 || !together(lanes, at)) {
#pragma unroll
            for (int one = 0; one < UNITS; ++one) units[one] = at[one];
            return;
        }
        unit *first = (unit *)__shfl_sync(lanes, (unsigned long long)at, 0), *all = tile(first);
#if __CUDA_ARCH__ >= 800
        if (OF_WORD && window_loaded(lanes, at, first)) return;
#endif
        moved<true>(lanes, at, first, all);
        const unit *own = all + number(lanes) * ROW;
#pragma unroll
        for (int one = 0; one < UNITS; ++one) units[one] = own[one];
        __syncwarp(lanes);
    }
    __device__ __forceinline__ void store(T *where) const {
        unit *at = (unit *)where;
        const unsigned lanes = __activemask();
        if (IS_VECTOR && __all_sync(lanes, (unsigned long long)at % sizeof(vector) == 0)) {
            if (ANY) *(vector *)at = *(const vector *)units;
            else __stwb((vector *)at, *(const vector *)units); // which the compiler does not split
            return;
        }
        if (in_pairs(lanes, at)) {
            record_of_thread(*this).template halves_moved<false>(at);
            return;
        }
        if (AT_ONCE < 32 && record_of_thread(*this).template moved_in_parts<false>(lanes, at)) return;
        if (AT_ONCE < 32 || !together(lanes, at)) {
#pragma unroll
            for (int one = 0; one < UNITS; ++one) at[one] = units[one];
            return;
        }
        unit *first = (unit *)__shfl_sync(lanes, (unsigned long long)at, 0), *all = tile(first);
        unit *own = all + number(lanes) * ROW;
#pragma unroll
        for (int one = 0; one < UNITS; ++one) own[one] = units[one];
        moved<false>(lanes, at, first, all);
    }
};
template <int LENGTH, int WARPS, bool ANY = false, bool OPEN = false, typename T>
__device__ __forceinline__ record_of_thread<T, LENGTH, WARPS, ANY, OPEN> record_at(const T *at) {
    record_of_thread<T, LENGTH, WARPS, ANY, OPEN> found;
    found.load(at);
    return found;
}
template <int LENGTH, int WARPS, bool ANY = false, bool OPEN = false, typename T>
__device__ __forceinline__ record_of_thread<T, LENGTH, WARPS, ANY, OPEN> record_for(const T *) {
    return record_of_thread<T, LENGTH, WARPS, ANY, OPEN>();
}
#endif
