// Records of FIELDS elements as the caller has to keep them: those of 32 records in whole groups, first the
// fields of TOGETHER, a bit for each, record by record, then the others, each of 32 records side by side. The
// host may store and load elements by this class, too.
template <typename T, int FIELDS, unsigned long long TOGETHER = 0>
struct elements_by_field {
    T *data;
    static __host__ __device__ __forceinline__ int ones(unsigned long long bits) {
#ifdef __CUDA_ARCH__
        return __popcll(bits);
#else
        return bits ? 1 + ones(bits & (bits - 1)) : 0;
#endif
    }
    template <typename I>
    static __host__ __device__ __forceinline__ decltype(I() + 0u) place(I i) {
        const decltype(I() + 0u) at = i, record = at / FIELDS, lane = record % 32, field = at % FIELDS;
        const decltype(I() + 0u) group = (record - lane) * FIELDS;
        if (!TOGETHER) return group + field * 32 + lane;
        const int before = ones(TOGETHER & ((1ull << field) - 1)), count = ones(TOGETHER);
        const bool is_together = TOGETHER >> field & 1;
        return group + (is_together ? lane * count + before : (count + field - before) * 32 + lane);
    }
    template <typename I>
    __host__ __device__ __forceinline__ T &operator[](I i) const { return data[place(i)]; }
    template <typename I>
    struct part {
        T *data;
        I first;
        template <typename J>
        __host__ __device__ __forceinline__ T &operator[](J i) const { return data[place(first + i)]; }
    };
    template <typename I>
    __host__ __device__ __forceinline__ part<I> operator+(I i) const { return {data, i}; }
};
