// log[lane * 64 + n] = (site + 1, activemask, low clock, extra); Y is a mark that becomes YIELD, Z one that becomes NOP or YIELD
#define Y asm volatile("pmevent 7;" ::: "memory")
__device__ __forceinline__ void probe(uint4 *&at, int site, int extra = 0) {
    unsigned m, c;
    asm volatile("activemask.b32 %0;" : "=r"(m) :: "memory");
    asm volatile("mov.u32 %0, %%clock;" : "=r"(c) :: "memory");
    *at++ = make_uint4(site + 1, m, c, extra);
}
#define START int lane = threadIdx.x, role = given[lane], n = given[32 + lane]; (void)role; (void)n; uint4 *at = log + lane * 64; probe(at, 0);
#define LOOP(s) _Pragma("unroll 1") for (int i = 0; i < n; i++) { Y; probe(at, s, i); }
extern "C" {
// 4, 6: four loops of different pc, counts in registers
__global__ void four(uint4 *log, const int *given) { START
    if (role & 2) { if (role & 1) { LOOP(1) probe(at, 11); } else { LOOP(2) probe(at, 12); } probe(at, 15); }
    else { if (role & 1) { LOOP(3) probe(at, 13); } else { LOOP(4) probe(at, 14); } probe(at, 16); }
    probe(at, 17);
}
// 4, 5: two loops
__global__ void two(uint4 *log, const int *given) { START
    if (role & 1) { LOOP(1) probe(at, 11); } else { LOOP(2) probe(at, 12); }
    probe(at, 13);
}
__global__ void two_swapped(uint4 *log, const int *given) { START
    if (!(role & 1)) { LOOP(2) probe(at, 12); } else { LOOP(1) probe(at, 11); }
    probe(at, 13);
}
// only loop 1 yields
__global__ void two_one(uint4 *log, const int *given) { START
    if (role & 1) { LOOP(1) probe(at, 11); } else {
        #pragma unroll 1
        for (int i = 0; i < n; i++) probe(at, 2, i);
        probe(at, 12); }
    probe(at, 13);
}
// one after the other, as two_loops, counts in registers
__global__ void seq(uint4 *log, const int *given) { START int k = role;
    _Pragma("unroll 1") for (int i = 0; i < k; i++) { Y; probe(at, 1, i); }
    _Pragma("unroll 1") for (int i = 0; i < n; i++) { Y; probe(at, 2, i); }
    probe(at, 3);
}
__global__ void seq3(uint4 *log, const int *given) { START int k = role;
    _Pragma("unroll 1") for (int i = 0; i < k; i++) { Y; probe(at, 1, i); }
    probe(at, 5);
    _Pragma("unroll 1") for (int i = 0; i < n; i++) { Y; probe(at, 2, i); }
    probe(at, 6);
    _Pragma("unroll 1") for (int i = 0; i < k; i++) { Y; probe(at, 3, i); }
    probe(at, 4);
}
__global__ void nest(uint4 *log, const int *given) { START int k = role;
    _Pragma("unroll 1") for (int i = 0; i < k; i++) { Y; probe(at, 1, i);
        _Pragma("unroll 1") for (int j = 0; j < n; j++) { Y; probe(at, 2, j); }
        probe(at, 3, i); }
    probe(at, 4);
}
// no loops
__global__ void line(uint4 *log, const int *given) { START
    switch (role & 3) {
    case 0: Y; probe(at, 10); Y; probe(at, 11); Y; probe(at, 12); Y; probe(at, 13); break;
    case 1: Y; probe(at, 20); Y; probe(at, 21); Y; probe(at, 22); Y; probe(at, 23); break;
    case 2: Y; probe(at, 30); Y; probe(at, 31); Y; probe(at, 32); Y; probe(at, 33); break;
    case 3: Y; probe(at, 40); Y; probe(at, 41); Y; probe(at, 42); Y; probe(at, 43); break;
    }
    probe(at, 50);
}
// one YIELD on one way only, after some work on the others
__global__ void once(uint4 *log, const int *given) { START
    if (role & 1) { probe(at, 1); Y; probe(at, 2); if (role & 2) { probe(at, 3); Y; probe(at, 4); } probe(at, 5); }
    else { probe(at, 6); if (role & 2) { probe(at, 7); Y; probe(at, 8); } probe(at, 9); }
    probe(at, 10);
}
// 7: how often lane 0 looks until lane 10 stores
__global__ void spin(uint4 *log, const int *given) {
    __shared__ volatile int flag; int lane = threadIdx.x, n = given[32]; uint4 *at = log + lane * 64;
    flag = 0; __syncthreads(); probe(at, 0);
    if (lane == 0) { int k = 0; while (flag == 0 && k < 100000) k++; probe(at, 1, k); }
    else if (lane == 10) { int v = 1;
        #pragma unroll 1
        for (int i = 0; i < n; i++) asm volatile("mul.lo.s32 %0, %0, %0;" : "+r"(v));
        probe(at, 2); flag = v; probe(at, 3); }
    probe(at, 4);
}
__global__ void spin_other(uint4 *log, const int *given) {
    __shared__ volatile int flag; int lane = threadIdx.x, n = given[32]; uint4 *at = log + lane * 64;
    flag = 0; __syncthreads(); probe(at, 0);
    if (lane == 10) { int k = 0; while (flag == 0 && k < 100000) k++; probe(at, 1, k); }
    else { int v = 1;
        #pragma unroll 1
        for (int i = 0; i < n; i++) asm volatile("mul.lo.s32 %0, %0, %0;" : "+r"(v));
        probe(at, 2); flag = v; probe(at, 3); }
    probe(at, 4);
}
// 8: NANOSLEEP where others have YIELD
__global__ void sleep(uint4 *log, const int *given) { START
    #pragma unroll 1
    for (int i = 0; i < n; i++) { asm volatile("nanosleep.u32 20;" ::: "memory"); probe(at, 1, i); if (i == role) break; probe(at, 2, i); }
    probe(at, 3);
}
__global__ void sleep_not(uint4 *log, const int *given) { START
    #pragma unroll 1
    for (int i = 0; i < n; i++) { Y; probe(at, 1, i); if (i == role) break; probe(at, 2, i); }
    probe(at, 3);
}
__global__ void sleep_two(uint4 *log, const int *given) { START
    if (role & 1) {
        #pragma unroll 1
        for (int i = 0; i < n; i++) { asm volatile("nanosleep.u32 20;" ::: "memory"); probe(at, 1, i); } probe(at, 11); }
    else { LOOP(2) probe(at, 12); }
    probe(at, 13);
}
// 9: yields in a function that is called from a region of an outer barrier
__device__ __noinline__ uint4 *inner(uint4 *at, int n, int k) {
    #pragma unroll 1
    for (int i = 0; i < n; i++) { Y; probe(at, 1, i); if (i == k) break; }
    probe(at, 2);
    return at;
}
__global__ void function(uint4 *log, const int *given) { START
    if (role & 1) { at = inner(at, n, role >> 1); probe(at, 3); } else { probe(at, 4); Y; probe(at, 5); at = inner(at, n + 1, role >> 1); probe(at, 6); }
    probe(at, 7);
}
__global__ void function2(uint4 *log, const int *given) { START
    _Pragma("unroll 1") for (int i = 0; i < (role & 3); i++) { at = inner(at, n, role >> 2); probe(at, 3); }
    probe(at, 7);
}
// as those of meeting.npz, with the clock
#define GIVEN const volatile int *in = given; int i = threadIdx.x; uint4 *at = log + i * 64; probe(at, 0);
__global__ void v_two_loops(uint4 *log, const int *given) { GIVEN
    int k = 0; while (k < (in[i] & 3)) { probe(at, 1, k); k++; } while (k < (in[i + 32] & 7)) { probe(at, 2, k); k++; } probe(at, 3); }
__global__ void v_nested(uint4 *log, const int *given) { GIVEN
    for (int k = 0; k < (in[i] & 3); k++) { for (int j = 0; j < (in[i + 32] & 3); j++) probe(at, 1, j); probe(at, 2, k); } probe(at, 3); }
__global__ void v_dowhile(uint4 *log, const int *given) { GIVEN
    int k = 0; do { probe(at, 1, k); k++; } while (k < (in[i] & 7)); probe(at, 2); }
__global__ void v_whiletrue(uint4 *log, const int *given) { GIVEN
    int k = 0; while (true) { probe(at, 1, k); k++; if (k > (in[i] & 7)) break; probe(at, 2, k); } probe(at, 3); if (in[i] & 8) probe(at, 4); probe(at, 5); }
}
