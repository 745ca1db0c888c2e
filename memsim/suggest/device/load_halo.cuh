// Rows of an array, `width` apart, by whole sectors; nothing before `first` or behind `last`.
template <int COLUMNS, typename T, int ROWS, int PITCH>
__device__ void load_halo(T (&halo)[ROWS][PITCH], const T *array, long long width, int top, int left, int bottom,
                          int right, long long first, long long last) {
    const int sector = 32 / sizeof(T), span = (COLUMNS + 2 * sector + 31 - 2) / 32 * 32;
    const int threads = blockDim.x * blockDim.y * blockDim.z, all = (bottom - top + 1) * span;
    int place = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    for (; place < all; place += 4 * threads) {
        int to[4];
        T kept[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = (place + i * threads) / span, column = (place + i * threads) % span;
            const long long at = (top + row) * width + left;
            const int before = (size_t)(array + at) % 32 / sizeof(T);
            const int end = (before + right - left + sector) / sector * sector;
            const long long from = at + column - before;
            const bool inside = row <= bottom - top && column < end && from >= first && from <= last;
            to[i] = inside ? row * PITCH + sector + column - before : -1;
            if (inside)
                kept[i] = array[from];
        }
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (to[i] >= 0)
                halo[0][to[i]] = kept[i];
    }
}
