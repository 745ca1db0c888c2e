// Records of FIELDS fields of one size as the caller has to keep them: field by field, those of 32 records
// side by side, in whole groups. The host may store and load fields by this class, too.
template <typename T, int FIELDS>
struct records_by_field {
    T *data;
    // A field of record i: where it would be, `data[i].x`, says which one.
    template <typename I, typename F>
    __host__ __device__ __forceinline__ F &field(I i, F &of) const {
        static_assert(sizeof(F) * FIELDS == sizeof(T), "fields of one size");
        const size_t number = ((const char *)&of - (const char *)(data + i)) / sizeof(F);
        const decltype(I() + 0u) lane = i % 32u;
        return ((F *)(data + (i - lane)))[number * 32 + lane];
    }
};
