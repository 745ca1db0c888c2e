"""What an edit of rows adds to a source: the CUDA C++ of a row along which a thread walks.

Both ways are used alike: an object for each row, called for each element that is loaded, `put` for each that
is stored, and `close` behind the loop. Both hold for every length and alignment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memsim.arch.units import WARP

WORD_OF_PADDING = 4  # bytes behind each row of the tile, which the banks of neighbouring rows differ by
CHUNKS = (64, 48, 32)  # bytes of a row in the tile, the best first
SHORT = 8  # of rows that are shorter than those


@dataclass(frozen=True, slots=True)
class RowText:
    """A way to move rows. name: in reports; text: what is added before the kernel; opening: of an object, in
    which {array}, {number}, {warps} and {bytes} are replaced. staged: whether it takes shared memory.
    """

    name: str
    text: str
    opening: str
    staged: bool

    def chunk(self, rows: int, warps: int, room: int, chunks: Sequence[int]) -> int | None:
        """How many bytes of each row are held for so many rows in `room` bytes of shared memory; None if
        these are too few.
        """
        of_byte = rows * warps * WARP
        fitting = (each for each in chunks if of_byte * (each + 2 * WORD_OF_PADDING) <= room)
        return next(fitting, None) if self.staged else 16


IN_PAIRS = RowText(
    "rows of threads moved 32 bytes at a time",
    """\
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

""",
    "row_along({array})",
    staged=False,
)

BY_WARPS = RowText(
    "rows of threads moved by their warp side by side",
    """\
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

""",
    "row_along<{bytes}, {warps}, {number}>({array})",
    staged=True,
)
