// Executes a kernel's operations: blocks one after the other, their warps in turns, lanes of a warp that went
// apart as groups.
// memsim/interpreter/native_launch.py calls it.
#define _GNU_SOURCE
#include "interpreter.h"

#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "numbers.h"
#include "vectors.h"
#include "warp_groups.h"
#include "warp_matrix.h"
#include "warp_memory.h"

#define EXPORT __attribute__((visibility("default")))
#define QUANTUM (1 << 16)  // operations of a warp before others run
#define PATIENCE 1000      // backward branches of a group before others of its warp run
#define ROUNDS 64          // of a block before the next one runs beside it, which it may wait for
#define MOST_BLOCKS 256

// --- lanes ------------------------------------------------------------------------------------

enum { IDX, UP, DOWN, BFLY };

// The lane that each lane reads, and whether it may. A loop for each mode, so that it becomes one of vectors.
static void source_lanes(int mode, const Vector *by, const Vector *limits, Vector *source, Vector *valid) {
#define SOURCES(from, is_valid) \
  for (int l = 0; l < LANES; l++) { \
    int b = by->w[l] & 31, clamp = limits->w[l] & 31, segment = limits->w[l] >> 8 & 31; \
    int lowest = l & segment, limit = lowest | (clamp & ~segment), s = from, v = is_valid; \
    source->i[l] = v ? s : l, valid->w[l] = (uint32_t)v; \
  }
  switch (mode) {
    case UP: SOURCES(l - b, s >= limit) break;
    case DOWN: SOURCES(l + b, s <= limit) break;
    case BFLY: SOURCES(l ^ b, s <= limit) break;
    default: SOURCES(lowest | (b & ~segment), s <= limit)
  }
#undef SOURCES
}

static uint32_t lanes_of(const Vector *truths) {
  uint32_t found = 0;
#ifdef __AVX2__
  for (int l = 0; l < LANES; l += 8) {
    __m256i upper = _mm256_slli_epi32(_mm256_loadu_si256((const __m256i *)(truths->w + l)), 31);
    found |= (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(upper)) << l;
  }
#else
  for (int l = 0; l < LANES; l++) found |= (truths->w[l] & 1) << l;
#endif
  return found;
}

static void spread(Vector *to, uint32_t word) { for (int l = 0; l < LANES; l++) to->w[l] = word; }
static void spread_lanes(Vector *to, uint32_t lanes) { for (int l = 0; l < LANES; l++) to->w[l] = lanes >> l & 1; }

static uint32_t reduced(int operation, int is_signed, const Vector *values, uint32_t active) {
  uint32_t found = operation == AND ? ALL : operation == MIN ? (is_signed ? 0x7fffffffu : ALL) : operation == MAX && is_signed ? 0x80000000u : 0;
  for (uint32_t left = active; left; left &= left - 1)
    found = (uint32_t)changed(operation, is_signed ? S32 : U32, found, values->w[__builtin_ctz(left)], 0);
  return found;
}

// float64 rounded in a mode; the compiler must not compute before it is set.
static __attribute__((noinline, optimize("rounding-math"))) void rounded(Vector *to, const Vector *a, const Vector *b, const Vector *c, int mode) {
  static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  fesetround(modes[mode & 3]);
  for (int l = 0; l < LANES; l++) {
    volatile double x = a->d[l], y = b->d[l], found;
    if (mode < 4) found = x + y;
    else if (mode < 8) found = x * y;
    else found = fma(x, y, c->d[l]);
    to->d[l] = found;
  }
  fesetround(FE_TONEAREST);
}

// --- operations -------------------------------------------------------------------------------

#define NAME(name, ...) OP_##name,
enum {
  INTEGERS(NAME) FLOATS(NAME) UNARIES(NAME)
  OP_sel_w, OP_sel_W, OP_fma_f, OP_fma_d, OP_ldexp_d, OP_d_to_I, OP_half_to_f, OP_half_to_d, OP_f_to_half, OP_half_bits, OP_table_W, OP_table_h, OP_polynomial, OP_add_rounded, OP_mul_rounded, OP_fma_rounded,
  OP_leader, OP_stretch, OP_goto, OP_all, OP_guard, OP_write,
  OP_thread, OP_block, OP_clock, OP_shuffle, OP_shuffle_valid, OP_vote_mask, OP_vote, OP_match, OP_match_64, OP_match_all, OP_match_all_64, OP_members,
  OP_redux, OP_first, OP_elect, OP_leader_lane, OP_scatter, OP_gather, OP_product,
  OP_load, OP_store, OP_atomic, OP_copy, OP_load_matrix, OP_store_matrix,
  OP_branch, OP_branch_any, OP_branch_diverged, OP_indexed, OP_exit, OP_set_barrier, OP_wait_barrier, OP_leave_barrier,
  OP_warp_sync, OP_yield, OP_sleep, OP_block_barrier, OP_trap, OP_end
};
#define WORD(name, type, ...) #name ":" #type " "
// The names of all operations with the types of their results, in order.
EXPORT const char *memsim_operations(void) {
  return INTEGERS(WORD) FLOATS(WORD) UNARIES(WORD)
    "sel_w:w sel_W:W fma_f:f fma_d:d ldexp_d:d d_to_I:I half_to_f:f half_to_d:d f_to_half:w half_bits:w table_W:W table_h:w polynomial:d add_rounded:d mul_rounded:d fma_rounded:d leader stretch goto all guard write thread:w block:w clock:w shuffle:w shuffle_valid:w vote_mask:w vote:w "
    "match:w match_64:w match_all:w match_all_64:w members:w redux:w first:w elect:w leader_lane:w scatter gather:W product load store atomic copy load_matrix store_matrix "
    "branch branch_any branch_diverged indexed exit set_barrier wait_barrier leave_barrier warp_sync yield sleep block_barrier trap end";
}

enum { STOPPED, TIRED, FAULTY };

#ifdef __F16C__
static inline void floats_of_halves(float *to, const uint32_t *of) {
  __m256i words = _mm256_and_si256(_mm256_loadu_si256((const __m256i *)of), _mm256_set1_epi32(0xffff));
  __m128i halves = _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm256_storeu_ps(to, _mm256_cvtph_ps(halves));
}
static inline void halves_of_floats(uint32_t *to, const float *of) {
  __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(of), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  _mm256_storeu_si256((__m256i *)to, _mm256_cvtepu16_epi32(halves));
}
#else
static inline void floats_of_halves(float *to, const uint32_t *of) { for (int l = 0; l < 8; l++) to[l] = float_of_half(of[l]); }
static inline void halves_of_floats(uint32_t *to, const float *of) { for (int l = 0; l < 8; l++) to[l] = half_of_float(of[l]); }
#endif

#include "interpreter_loop.h"

// Whether the processor has the instructions of the library that is built with AVX2. All of it is: on some processors
// a mixture with functions that are not costs ten times as much.
EXPORT int memsim_has_avx2(void) {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
#else
  return 0;
#endif
}

// --- blocks -----------------------------------------------------------------------------------

// A block that begins; the memory of one that has ended is taken again, because pages of the system cost time.
static Block *new_block(Launch *launch, int64_t number, Block *spare) {
  uint32_t threads = launch->block[0] * launch->block[1] * launch->block[2];
  int warps = (threads + LANES - 1) / LANES;
  size_t shared = (launch->shared_end - launch->shared_base + 127) & ~63ul, local = (LANES * launch->local_bytes + 63) & ~63ul;
  size_t size = shared + warps * (local + launch->register_bytes);
  Block *block = spare ? spare : calloc(1, sizeof *block);
  if (!block) return 0;
  if (!spare) {
    block->warp = malloc(warps * sizeof *block->warp);
    block->memory = malloc(size + 64);
    if (!block->warp || !block->memory) { free(block->warp); free(block->memory); free(block); return 0; }
  }
  uint8_t *at = block->memory + (64 - (uintptr_t)block->memory % 64);
  memset(at, 0, shared);
  memset(block->arrived, 0, sizeof block->arrived);
  block->number = number, block->rounds = 0, block->warps = warps, block->shared = at;
  block->coordinates[0] = number % launch->grid[0];
  block->coordinates[1] = number / launch->grid[0] % launch->grid[1];
  block->coordinates[2] = number / launch->grid[0] / launch->grid[1];
  at += shared;
  for (int i = 0; i < warps; i++) {
    Warp *warp = &block->warp[i];
    uint32_t lanes = threads - i * LANES;
    warp->registers = at, at += launch->register_bytes;
    warp->local = at, at += local;
    warp->alive = lanes >= LANES ? ALL : (1u << lanes) - 1;
    warp->number = i, warp->budget = launch->budget, warp->is_new = 1;
    warp->groups = warp->meetings = warp->barriers = 0;
    add_group(warp, 0, warp->alive, 0);
  }
  return block;
}

static void free_block(Block *block) {
  if (block) { free(block->warp); free(block->memory); free(block); }
}

static int lanes_in(uint32_t mask) { return __builtin_popcount(mask); }

// Releases the barriers at which everybody has come; whether there was one.
static int release_barriers(Launch *launch, Block *block) {
  int released = 0;
  for (int number = 0; number < 16; number++) {
    int waiting = 0, yes = 0, warps = 0, asked = -1, alive = 0, how = 0;
    for (int i = 0; i < block->warps; i++) {
      Warp *warp = &block->warp[i];
      int here = 0;
      alive += lanes_in(warp->alive);
      for (int j = 0; j < warp->barriers; j++)
        if (warp->barrier[j].number == number) {
          AtBarrier *one = &warp->barrier[j];
          here += lanes_in(one->mask & warp->alive), yes += lanes_in(one->votes & one->mask);
          if (one->asked >= 0) asked = one->asked;
          how |= one->how;
        }
      waiting += here, warps += here > 0;
    }
    if (!waiting || !(asked < 0 ? waiting == alive : warps * LANES + block->arrived[number] >= asked)) continue;
    released = 1, block->arrived[number] = 0;
    for (int i = 0; i < block->warps; i++) {
      Warp *warp = &block->warp[i];
      for (int j = warp->barriers - 1; j >= 0; j--) {
        AtBarrier one = warp->barrier[j];
        if (one.number != number) continue;
        warp->barrier[j] = warp->barrier[--warp->barriers];
        if (one.how) {
          uint32_t answer = one.how == 2 ? yes == waiting : yes > 0, count = one.how == 1 ? (uint32_t)yes : answer ? ALL : 0;
          for (int l = 0; l < LANES; l++)
            if (one.mask >> l & 1) {
              if (launch->count_place >= 0) register_at(warp, launch->count_place)[l] = count;
              if (launch->answer_place >= 0) register_at(warp, launch->answer_place)[l] = answer;
            }
        }
        add_group(warp, one.pc, one.mask, 0);
      }
    }
  }
  return released;
}

// One turn of each warp of a block: 1 if it has ended, 0 if not, -1 for a fault.
static int turn_of_block(Machine *machine, Block *block) {
  int progress = 0, alive = 0;
  machine->block = block;
  for (int i = 0; i < block->warps; i++) {
    Warp *warp = &block->warp[i];
    while (warp->groups) {
      progress = 1;
      int how = run_warp(machine, warp);
      if (how == FAULTY) { machine->launch->faulty_block = block->number; return -1; }
      if (how == TIRED) break;
      if (!warp->groups && warp->meetings && !warp->barriers) excuse_stuck(warp);
    }
    if (!warp->groups && warp->meetings) progress |= excuse_stuck(warp);
    alive += warp->groups + warp->meetings + warp->barriers;
  }
  if (!alive) return 1;
  if (progress && alive) {
    int ready = 0;
    for (int i = 0; i < block->warps; i++) ready += block->warp[i].groups;
    if (ready) return 0;
  }
  if (release_barriers(machine->launch, block) || progress) return 0;
  machine->launch->fault = DEADLOCK, machine->launch->faulty_block = block->number;
  return -1;
}

typedef struct {
  Machine machine;  // first, as its vectors are aligned
  Block *running[MOST_BLOCKS], *spare;
  int count;
} BlockRun;

// Begins to run blocks of a launch, in a thread of its own; 0 if there is no memory.
EXPORT void *memsim_begin(Launch *launch) {
  BlockRun *run = aligned_alloc(64, (sizeof *run + 63) & ~63ul);
  if (!run) return 0;
  run->machine.launch = launch, run->machine.allocation = -1;
  run->spare = 0, run->count = 0;
  launch->fault = DONE;
  return run;
}

// Whether a block has to run: none before it has failed.
static int counts(Turns *turns, int64_t number) { return number < __atomic_load_n(&turns->end, __ATOMIC_RELAXED); }

// The number of the block that begins next; -1 if all have begun.
static int64_t take_block(Turns *turns) {
  int64_t found = __atomic_fetch_add(&turns->next, 1, __ATOMIC_RELAXED);
  return counts(turns, found) ? found : -1;
}

// Blocks from this one on do not run any more.
static void end_at(Turns *turns, int64_t number) {
  int64_t end = turns->end;
  while (number < end && !__atomic_compare_exchange_n(&turns->end, &end, number, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

// Goes on for about so long; whether there is more to do. A fault is that of the first block that has one: those before
// it run to their ends, unless they may wait for it.
EXPORT int memsim_go_on(BlockRun *it, double limit) {
  Launch *launch = it->machine.launch;
  Turns *turns = launch->turns;
  limit += seconds();
  for (;;) {
    if (!it->count || (it->count < MOST_BLOCKS && it->running[it->count - 1]->rounds > ROUNDS)) {
      int64_t number = take_block(turns);
      if (number < 0 && !it->count) return 0;
      if (number >= 0) {
        if (!(it->running[it->count] = new_block(launch, number, it->spare))) {
          launch->fault = NO_MEMORY, launch->faulty_block = number;
          end_at(turns, 0);
          return 0;
        }
        it->spare = 0, it->count++;
      }
    }
    for (int i = 0; i < it->count; i++) {
      Block *block = it->running[i];
      block->rounds++;
      int how = counts(turns, block->number) ? turn_of_block(&it->machine, block) : 1;
      if (how < 0) end_at(turns, launch->waits ? 0 : block->number);
      if (how) {
        free_block(it->spare);
        it->spare = block;
        memmove(it->running + i, it->running + i + 1, sizeof *it->running * (--it->count - i));
        i--;
      }
    }
    if (seconds() > limit) return 1;
  }
}

// Bytes of the structures that Python makes: of an operation, an access, a launch.
EXPORT int64_t memsim_size(int which) {
  return which == 0 ? sizeof(Operation) : which == 1 ? sizeof(Access) : sizeof(Launch);
}

EXPORT void memsim_end(BlockRun *run) {
  for (int i = 0; i < run->count; i++) free_block(run->running[i]);
  free_block(run->spare);
  free(run);
}
