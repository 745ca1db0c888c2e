// Executes a kernel's operations: blocks one after the other, their warps in turns, lanes of a warp that went
// apart as groups. The rules of reconvergence are those of memsim/simt/convergence.py.
// memsim/interpreter/native_launch.py calls it.
#define _GNU_SOURCE
#include "interpreter.h"

#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vectors.h"

#define EXPORT __attribute__((visibility("default")))
#define ALL 0xffffffffu
#define QUANTUM (1 << 16)  // operations of a warp before others run
#define PATIENCE 1000      // backward branches of a group before others of its warp run
#define ROUNDS 64          // of a block before the next one runs beside it, which it may wait for
#define MOST_BLOCKS 256

static int32_t exponent_of(double x) { int e; frexp(x, &e); return isfinite(x) ? e : 0; }

// x * 2**y, by one exact product where the power is a normal number.
static inline double scaled(double x, int32_t y) {
  uint64_t bits = (uint64_t)(y + 1023) << 52;
  double power;
  memcpy(&power, &bits, 8);
  return y >= -1022 && y <= 1023 ? x * power : ldexp(x, y);
}

static double fraction_of(double x) { int e; return frexp(x, &e); }

static float float_of_half(uint32_t h) {
  uint32_t sign = (h & 0x8000u) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff, bits;
  if (exponent == 31) bits = 0x7f800000u | fraction << 13;
  else if (exponent) bits = (exponent + 112) << 23 | fraction << 13;
  else { float tiny = (float)fraction * 0x1p-24f; memcpy(&bits, &tiny, 4); }
  bits |= sign;
  float x; memcpy(&x, &bits, 4); return x;
}

// float64 to float16, rounded once to nearest even; the quiet bit of a NaN is set.
static uint32_t half_of_double(double x) {
  uint64_t bits; memcpy(&bits, &x, 8);
  uint32_t sign = bits >> 48 & 0x8000u;
  double size = fabs(x);
  if (x != x) { uint32_t f = bits >> 42 & 0x3ff; return sign | 0x7c00u | (f ? f : 1); }
  if (size >= 65520.0) return sign | 0x7c00u;
  if (size < 0x1p-14) return sign | (uint32_t)rint(size * 0x1p24);
  uint64_t magnitude = bits & 0x7fffffffffffffffull, low = magnitude & ((1ull << 42) - 1), cut = magnitude >> 42;
  cut += low > 1ull << 41 || (low == 1ull << 41 && (cut & 1));
  return sign | (uint32_t)(cut - ((1023ull - 15) << 10));
}
static uint32_t half_of_float(float x) { return half_of_double(x); }

static uint32_t next_half(uint32_t x, uint32_t y) {
  float from = float_of_half(x), to = float_of_half(y);
  if (from != from || to != to) return 0x7fff;
  if (from == to) return y;
  if (from == 0) return (y & 0x8000u) | 1;
  return (to > from) == (from > 0) ? x + 1 : x - 1;
}

typedef struct { uint32_t pc, mask; int turns, parked, yields; } Group;
typedef struct { uint32_t pc, mask; int32_t barrier; uint32_t members[LANES]; } Meeting;
typedef struct { uint32_t pc, mask, votes; int32_t number, asked, how; } AtBarrier;

typedef struct {
  uint8_t *registers, *local;
  uint32_t alive, number;
  int groups, meetings, barriers;
  int64_t budget;
  Group group[LANES];
  Meeting meeting[LANES];
  AtBarrier barrier[LANES];
} Warp;

typedef struct {
  int64_t number, rounds;
  int warps;
  Warp *warp;
  uint8_t *shared, *memory;
  uint32_t coordinates[3];
  int32_t arrived[16];
} Block;

typedef struct {
  Launch *launch;
  Block *block;
  int64_t allocation;  // of the access before that is made
  Vector scratch[256];
} Machine;

// --- groups of lanes --------------------------------------------------------------------------

static void add_group(Warp *warp, uint32_t pc, uint32_t mask, int turns) {
  if (mask) warp->group[warp->groups++] = (Group){pc, mask, turns, 0, 0};
}

// The group that is farthest behind; -1 if none is ready.
static int next_group(Warp *warp) {
  int found = -1;
  for (int i = 0; i < warp->groups; i++)
    if (!warp->group[i].parked && (found < 0 || warp->group[i].pc < warp->group[found].pc)) found = i;
  return found;
}

static int is_behind(Warp *warp, uint32_t pc) {
  for (int i = 0; i < warp->groups; i++)
    if (!warp->group[i].parked && warp->group[i].pc <= pc) return 1;
  return 0;
}

static uint32_t yielded(Warp *warp) {
  uint32_t lanes = 0;
  for (int i = 0; i < warp->groups; i++)
    if (warp->group[i].parked && warp->group[i].yields) lanes |= warp->group[i].mask;
  return lanes;
}

// Those of a meeting whose lanes have all come go on. stuck: lanes that nobody waits for at a BSYNC.
static int release(Warp *warp, int at, uint32_t stuck) {
  Meeting *meeting = &warp->meeting[at];
  uint32_t excused = meeting->barrier < 0 ? 0 : yielded(warp) | stuck, going = 0;
  meeting->mask &= warp->alive;
  for (int l = 0; l < LANES; l++) {
    if (!(meeting->mask >> l & 1)) continue;
    uint32_t here = meeting->mask, members = meeting->members[l];
    if (meeting->barrier >= 0) {  // it sees those that wait for the same lanes: a function may call itself
      here = 0;
      for (int o = 0; o < LANES; o++)
        if (meeting->mask >> o & 1 && meeting->members[o] == members) here |= 1u << o;
    }
    uint32_t missing = members & warp->alive & ~here;
    if (!missing || !(missing & ~excused)) going |= 1u << l;
  }
  if (!going && meeting->mask) return 0;
  meeting->mask &= ~going;
  uint32_t pc = meeting->pc;
  if (!meeting->mask) *meeting = warp->meeting[--warp->meetings];
  add_group(warp, pc, going, 0);
  return going != 0;
}

static void check_meetings(Warp *warp) {
  for (int i = warp->meetings - 1; i >= 0; i--)
    if (i < warp->meetings) release(warp, i, 0);
}

static void meet(Warp *warp, uint32_t pc, int32_t barrier, uint32_t lanes, const uint32_t *members) {
  int at = 0;
  while (at < warp->meetings && (warp->meeting[at].pc != pc || warp->meeting[at].barrier != barrier)) at++;
  Meeting *meeting = &warp->meeting[at];
  if (at == warp->meetings) { warp->meetings++; *meeting = (Meeting){.pc = pc, .barrier = barrier}; }
  for (int l = 0; l < LANES; l++)
    if (lanes >> l & 1) meeting->members[l] = members[l];
  meeting->mask |= lanes;
  release(warp, at, 0);
}

// Nothing of a warp is ready: lanes at a WARPSYNC that wait for lanes that wait, too, are stuck.
static int excuse_stuck(Warp *warp) {
  uint32_t blocked = 0, stuck = 0;
  for (int i = 0; i < warp->meetings; i++) blocked |= warp->meeting[i].mask;
  for (int i = 0; i < warp->meetings; i++)
    for (int l = 0; l < LANES; l++)
      if (warp->meeting[i].barrier < 0 && warp->meeting[i].mask >> l & 1 &&
          !(warp->meeting[i].members[l] & warp->alive & ~blocked))
        stuck |= 1u << l;
  if (stuck)
    for (int i = 0; i < warp->meetings; i++)
      if (warp->meeting[i].barrier >= 0 && release(warp, i, stuck)) return 1;
  return 0;
}

// --- memory -----------------------------------------------------------------------------------

static uint8_t *in_global(Machine *machine, uint64_t address, uint32_t width, int kind) {
  Launch *launch = machine->launch;
  int64_t at = machine->allocation;
  if (!(at >= 0 && address >= launch->starts[at] && address + width <= launch->ends[at])) {
    int64_t low = 0, high = launch->allocations;
    while (low < high) {
      int64_t middle = (low + high) / 2;
      if (launch->starts[middle] <= address) low = middle + 1; else high = middle;
    }
    at = low - 1;
    if (at < 0 || address + width > launch->ends[at]) { launch->fault = OUTSIDE; return 0; }
    machine->allocation = at;
  }
  launch->touched[at] |= kind;
  if (address & (width - 1)) { launch->fault = MISALIGNED; return 0; }
  return launch->global + (address - launch->global_base);
}

// Where the bytes of a lane's access are; 0 with a fault if nowhere. kind: 1 for reads, 2 for writes, 3.
static inline uint8_t *locate(Machine *machine, Warp *warp, int space, uint64_t address, uint32_t width, int lane, int kind) {
  Launch *launch = machine->launch;
  if (space == GENERIC) {
    if (address - launch->shared_window < launch->window_size) { space = SHARED; address -= launch->shared_window; }
    else if (address - launch->local_window < launch->window_size) { space = LOCAL; address -= launch->local_window; }
    else if (address >= launch->constant_window && address < launch->constant_window + launch->window_size && kind == 1) {
      if (address & (width - 1)) { launch->fault = MISALIGNED; return 0; }
      if (address - launch->constant_window + width <= (uint64_t)launch->window_bytes)
        return (uint8_t *)launch->window + (address - launch->constant_window);
      if (address >= launch->parameter_window && address - launch->parameter_window + width <= (uint64_t)launch->parameters_bytes)
        return (uint8_t *)launch->parameters + (address - launch->parameter_window);
      launch->fault = OUTSIDE; return 0;
    } else space = GLOBAL;
  }
  if (space == GLOBAL) return in_global(machine, address, width, kind);
  int64_t at = space == SHARED ? (int64_t)(address & 0xffffff) : (int64_t)(int32_t)address;
  if (at & (width - 1)) { launch->fault = MISALIGNED; return 0; }
  if (space == SHARED) {
    if (at < launch->shared_base || at + width > launch->shared_end) { launch->fault = OUTSIDE; return 0; }
    return machine->block->shared + (at - launch->shared_base);
  }
  if (at < 0 || at + width > launch->local_bytes) { launch->fault = OUTSIDE; return 0; }
  return warp->local + lane * launch->local_bytes + at;
}

static inline uint32_t *register_at(Warp *warp, int32_t place) { return (uint32_t *)(warp->registers + place); }

// Where the lanes of a warp access memory, if that is quickly known: all in one allocation, or in shared memory.
// Returns what to add to an address; 0 if it is not. bits: of the addresses that are not those of memory.
static inline intptr_t together(Machine *machine, const Access *access, const Vector *address, uint32_t width, int kind, uint64_t *bits) {
  Launch *launch = machine->launch;
  int64_t start, room, wrong = 0;
  uint64_t odd = 0, kept = ~0ull;
  intptr_t to;
  if (access->space == SHARED) {
    start = launch->shared_base, room = launch->shared_end - start - width, kept = 0xffffff;
    to = (intptr_t)machine->block->shared - start;
  } else {
    int64_t at = machine->allocation;
    if (access->space == LOCAL || access->space == CONSTANT || at < 0) return 0;
    start = (int64_t)launch->starts[at], room = (int64_t)launch->ends[at] - start - width;
    to = (intptr_t)launch->global - (intptr_t)launch->global_base;
  }
  if (room < 0) return 0;
  for (int l = 0; l < LANES; l++) {
    int64_t offset = (int64_t)(address->W[l] & kept) - start;
    wrong |= offset | (room - offset);
    odd |= address->W[l];
  }
  if (wrong < 0 || odd & (width - 1)) return 0;
  if (access->space != SHARED) launch->touched[machine->allocation] |= kind;
  *bits = kept;
  return to;
}

static int load(Machine *machine, Warp *warp, const Access *access, const Vector *address, uint32_t active) {
  uint32_t width = access->size * access->count;
  if (access->space == CONSTANT) {
    for (uint32_t left = active; left; left &= left - 1) {
      int l = __builtin_ctz(left);
      uint32_t at = (uint32_t)address->I[l];
      if (at & (width - 1)) { machine->launch->fault = MISALIGNED; return 0; }
      if ((int64_t)at + width > access->bytes) { machine->launch->fault = LOST; return 0; }
      const uint8_t *from = access->content + at;
      for (int i = 0; i < access->count; i++) {
        if (access->registers[i] < 0) continue;
        uint32_t word = 0;
        memcpy(&word, from + i * access->size, access->size);
        if (access->is_signed) word = access->size == 1 ? (uint32_t)(int8_t)word : (uint32_t)(int16_t)word;
        register_at(warp, access->registers[i])[l] = word;
      }
    }
    return 1;
  }
  uint64_t kept;
  intptr_t base;
  if (active == ALL && access->size == 4 && (base = together(machine, access, address, width, 1, &kept))) {
    Vector words[2];
    for (int l = 0; l < LANES; l++) {
      const uint8_t *at = (const uint8_t *)((address->W[l] & kept) + base);
      if (access->count == 1) memcpy(&words[0].w[l], at, 4);
      else if (access->count == 2) memcpy(&words[0].W[l], at, 8);
      else { memcpy(&words[0].W[l], at, 8); memcpy(&words[1].W[l], at + 8, 8); }
    }
    for (int i = 0; i < access->count; i++) {
      if (access->registers[i] < 0) continue;
      uint32_t *to = register_at(warp, access->registers[i]);
      if (access->count == 1) memcpy(to, words[0].w, 4 * LANES);
      else for (int l = 0; l < LANES; l++) to[l] = words[i / 2].W[l] >> 32 * (i & 1);
    }
    return 1;
  }
  // Addresses first: a register of them may be written.
  const uint8_t *from[LANES];
  for (uint32_t left = active; left; left &= left - 1) {
    int l = __builtin_ctz(left);
    if (!(from[l] = locate(machine, warp, access->space, address->W[l], width, l, 1))) return 0;
  }
  if (access->size == 4)
    for (int i = 0; i < access->count; i++) {
      if (access->registers[i] < 0) continue;
      uint32_t *to = register_at(warp, access->registers[i]);
      if (active == ALL) for (int l = 0; l < LANES; l++) memcpy(to + l, from[l] + 4 * i, 4);
      else for (uint32_t left = active; left; left &= left - 1) { int l = __builtin_ctz(left); memcpy(to + l, from[l] + 4 * i, 4); }
    }
  else if (access->registers[0] >= 0)
    for (uint32_t left = active; left; left &= left - 1) {
      int l = __builtin_ctz(left);
      uint32_t word = 0;
      memcpy(&word, from[l], access->size);
      if (access->is_signed) word = access->size == 1 ? (uint32_t)(int8_t)word : (uint32_t)(int16_t)word;
      register_at(warp, access->registers[0])[l] = word;
    }
  return 1;
}

static int store(Machine *machine, Warp *warp, const Access *access, const Vector *address, uint32_t active) {
  uint32_t width = access->size * access->count;
  uint64_t kept;
  intptr_t base;
  if (active == ALL && access->size == 4 && (base = together(machine, access, address, width, 2, &kept))) {
    for (int i = 0; i < access->count; i++) {
      static const uint32_t zeros[LANES];
      const uint32_t *of = access->registers[i] < 0 ? zeros : register_at(warp, access->registers[i]);
      for (int l = 0; l < LANES; l++) memcpy((uint8_t *)((address->W[l] & kept) + base) + 4 * i, of + l, 4);
    }
    return 1;
  }
  for (uint32_t left = active; left; left &= left - 1) {
    int l = __builtin_ctz(left);
    uint8_t *to = locate(machine, warp, access->space, address->W[l], width, l, 2);
    if (!to) return 0;
    for (int i = 0; i < access->count; i++) {
      uint32_t word = access->registers[i] < 0 ? 0 : register_at(warp, access->registers[i])[l];
      memcpy(to + i * access->size, &word, access->size);
    }
  }
  return 1;
}

// cp.async: from global memory (b) to shared memory (a); lanes without `reads` write zeros.
static int copy(Machine *machine, Warp *warp, const Access *access, const Vector *into, const Vector *origin, uint32_t active, uint32_t reads) {
  uint32_t width = access->size * access->count;
  for (uint32_t left = active; left; left &= left - 1) {
    int l = __builtin_ctz(left);
    uint8_t *to = locate(machine, warp, SHARED, into->W[l], width, l, 2);
    if (!to) return 0;
    uint32_t missing = access->operation ? origin->W[l] & (width - 1) : 0;
    if (!(reads >> l & 1)) { memset(to, 0, width); continue; }
    const uint8_t *from = locate(machine, warp, GLOBAL, origin->W[l] - missing, width, l, 1);
    if (!from) return 0;
    memcpy(to, from, width);
    memset(to + width - missing, 0, missing);
  }
  return 1;
}

// Matrices of 8 rows of 16 bytes (PTX ISA, ldmatrix): row i of matrix m lies at the address of lane 8 m + i.
static int matrices(Machine *machine, Warp *warp, const Access *access, const Vector *address, int stores) {
  uint8_t *row[LANES];
  for (int l = 0; l < 8 * access->count; l++)
    if (!(row[l] = locate(machine, warp, SHARED, address->W[l], 16, l, 1 + stores))) return 0;
  for (int m = 0; m < access->count; m++) {
    if (access->registers[m] < 0 && !stores) continue;
    uint32_t words[LANES];
    if (stores && access->registers[m] >= 0) memcpy(words, register_at(warp, access->registers[m]), sizeof words);
    else memset(words, 0, sizeof words);
    for (int l = 0; l < LANES; l++)
      for (int half = 0; half < 2; half++) {
        uint8_t *at = access->operation ? row[8 * m + l % 4 * 2 + half] + 2 * (l / 4) : row[8 * m + l / 4] + 4 * (l % 4) + 2 * half;
        uint16_t piece = words[l] >> 16 * half;
        if (stores) memcpy(at, &piece, 2);
        else { memcpy(&piece, at, 2); words[l] |= (uint32_t)piece << 16 * half; }
      }
    if (!stores) memcpy(register_at(warp, access->registers[m]), words, sizeof words);
  }
  return 1;
}

enum { ADD, MIN, MAX, AND, OR, XOR, EXCH, CAS, INC, DEC };
enum { U32, S32, U64, S64, F32, F64, F32_FLUSHED, HALVES };

static float flushed(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }
static float f_of(uint32_t w) { float f; memcpy(&f, &w, 4); return f; }
static uint32_t w_of(float f) { uint32_t w; memcpy(&w, &f, 4); return w; }

static uint32_t changed_half(uint32_t old, uint32_t b) {
  return half_of_double((double)float_of_half(old) + (double)float_of_half(b));
}

static uint64_t changed(int operation, int type, uint64_t old, uint64_t b, uint64_t c) {
  if (type == F32 && operation == ADD) return w_of(f_of((uint32_t)old) + f_of((uint32_t)b));
  if (type == F32_FLUSHED) return w_of(flushed(flushed(f_of((uint32_t)old)) + flushed(f_of((uint32_t)b))));
  if (type == HALVES) return changed_half(old & 0xffff, b & 0xffff) | changed_half(old >> 16 & 0xffff, b >> 16 & 0xffff) << 16;
  if (type == F64 && operation == ADD) { double x, y; memcpy(&x, &old, 8); memcpy(&y, &b, 8); x += y; memcpy(&old, &x, 8); return old; }
  switch (operation) {
    case ADD: return old + b;
    case AND: return old & b;
    case OR: return old | b;
    case XOR: return old ^ b;
    case EXCH: return b;
    case CAS: return old == b ? c : old;
    case INC: return old >= b ? 0 : old + 1;
    case DEC: return old == 0 || old > b ? b : old - 1;
  }
  int is_less = type == S32 ? (int32_t)old < (int32_t)b : type == S64 ? (int64_t)old < (int64_t)b : old < b;
  return is_less == (operation == MIN) ? old : b;
}

static uint64_t operand(Warp *warp, const Access *access, int which, int l) {
  int32_t place = access->operands[which];
  if (place == -2) return 1;
  if (place < 0) return 0;
  uint64_t found = register_at(warp, place)[l];
  if (access->uppers[which] >= 0) found |= (uint64_t)register_at(warp, access->uppers[which])[l] << 32;
  return found;
}

// access->answer: -1, or a register of truths: whether the atomic was performed; is_signed: a compare-and-swap
// that tells whether it has swapped, and is tried by the first lane of each bank.
static int atomic(Machine *machine, Warp *warp, const Access *access, const Vector *address, uint32_t active) {
  Launch *launch = machine->launch;
  uint64_t old[LANES] = {0};
  uint32_t done = 0, tried = active, width = access->size;
  if (access->is_signed)
    for (int l = 0; l < LANES; l++) {
      int banks = LANES * 4 / width;
      for (int o = l / banks * banks; o < l; o++)
        if (active >> l & active >> o & 1 && address->W[l] / width % banks == address->W[o] / width % banks) tried &= ~(1u << l);
    }
  for (uint32_t left = tried; left; left &= left - 1) {
    int l = __builtin_ctz(left);
    int is_shared = access->space == GENERIC && address->W[l] - launch->shared_window < launch->window_size;
    if (access->answer >= 0 && !access->is_signed && is_shared) continue;
    uint8_t *at = locate(machine, warp, access->space, address->W[l], width, l, 3);
    if (!at) return 0;
    memcpy(&old[l], at, width);
    uint64_t b = operand(warp, access, 0, l);
    uint64_t now = changed(access->operation, access->type, old[l], b, operand(warp, access, 1, l));
    memcpy(at, &now, width);
    if (!access->is_signed || old[l] == b) done |= 1u << l;
  }
  if (access->answer >= 0)
    for (uint32_t left = active; left; left &= left - 1) { int l = __builtin_ctz(left); register_at(warp, access->answer)[l] = done >> l & 1; }
  uint32_t written = access->is_signed ? active : done;
  for (int i = 0; i < 2; i++)
    for (uint32_t left = access->registers[i] < 0 ? 0 : written; left; left &= left - 1) {
      int l = __builtin_ctz(left);
      register_at(warp, access->registers[i])[l] = access->is_signed ? (i == 0 && done >> l & 1) : (uint32_t)(old[l] >> 32 * i);
    }
  return 1;
}

// --- lanes ------------------------------------------------------------------------------------

enum { IDX, UP, DOWN, BFLY };

static void source_lane(int mode, int lane, uint32_t by, uint32_t limits, int *source, int *valid) {
  int b = by & 31, clamp = limits & 31, segment = limits >> 8 & 31;
  int lowest = lane & segment, limit = lowest | (clamp & ~segment);
  *source = mode == UP ? lane - b : mode == DOWN ? lane + b : mode == BFLY ? lane ^ b : lowest | (b & ~segment);
  *valid = mode == UP ? *source >= limit : *source <= limit;
  if (!*valid) *source = lane;
}

static uint32_t lanes_of(const Vector *truths) {
  uint32_t found = 0;
  for (int l = 0; l < LANES; l++) found |= (truths->w[l] & 1) << l;
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
  INTEGERS(NAME) FLOATS(NAME) UNARIES(NAME) HALVES_OF(NAME)
  OP_sel_w, OP_sel_W, OP_fma_f, OP_fma_d, OP_table_W, OP_add_rounded, OP_mul_rounded, OP_fma_rounded,
  OP_leader, OP_goto, OP_all, OP_guard, OP_write,
  OP_thread, OP_block, OP_clock, OP_shuffle, OP_shuffle_valid, OP_vote_mask, OP_vote, OP_match, OP_match_64, OP_match_all, OP_match_all_64, OP_members,
  OP_redux, OP_first, OP_elect, OP_leader_lane,
  OP_load, OP_store, OP_atomic, OP_copy, OP_load_matrix, OP_store_matrix,
  OP_branch, OP_branch_any, OP_branch_diverged, OP_indexed, OP_exit, OP_set_barrier, OP_wait_barrier, OP_leave_barrier,
  OP_warp_sync, OP_yield, OP_sleep, OP_block_barrier, OP_trap, OP_end
};
#define WORD(name, type, ...) #name ":" #type " "
// The names of all operations with the types of their results, in order.
EXPORT const char *memsim_operations(void) {
  return INTEGERS(WORD) FLOATS(WORD) UNARIES(WORD) HALVES_OF(WORD)
    "sel_w:w sel_W:W fma_f:f fma_d:d table_W:W add_rounded:d mul_rounded:d fma_rounded:d leader goto all guard write thread:w block:w clock:w shuffle:w shuffle_valid:w vote_mask:w vote:w "
    "match:w match_64:w match_all:w match_all_64:w members:w redux:w first:w elect:w leader_lane:w load store atomic copy load_matrix store_matrix "
    "branch branch_any branch_diverged indexed exit set_barrier wait_barrier leave_barrier warp_sync yield sleep block_barrier trap end";
}

enum { STOPPED, TIRED, FAULTY };

#ifdef __F16C__
#include <immintrin.h>
static inline void floats_of_halves(float *to, const uint32_t *of) {
  __m256i words = _mm256_loadu_si256((const __m256i *)of);
  __m128i halves = _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm256_storeu_ps(to, _mm256_cvtph_ps(halves));
}
static inline void halves_of_floats(uint32_t *to, const float *of) {
  __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(of), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  _mm256_storeu_si256((__m256i *)to, _mm256_cvtepu16_epi32(halves));
}
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
  memset(at, 0, size);
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
    warp->number = i, warp->budget = launch->budget;
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

// The number of the block that begins next; -1 if all have begun.
static int64_t take_block(Launch *launch) {
  int64_t found = __atomic_fetch_add(launch->next, 1, __ATOMIC_RELAXED);
  return found < launch->blocks ? found : -1;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

// Goes on for about so long; whether there is more to do.
EXPORT int memsim_go_on(BlockRun *it, double limit) {
  Launch *launch = it->machine.launch;
  limit += seconds();
  while (!launch->fault) {
    if (!it->count || (it->count < MOST_BLOCKS && it->running[it->count - 1]->rounds > ROUNDS)) {
      int64_t number = take_block(launch);
      if (number < 0 && !it->count) return 0;
      if (number >= 0) {
        if (!(it->running[it->count] = new_block(launch, number, it->spare))) { launch->fault = NO_MEMORY; break; }
        it->spare = 0, it->count++;
      }
    }
    for (int i = 0; i < it->count; i++) {
      it->running[i]->rounds++;
      int how = turn_of_block(&it->machine, it->running[i]);
      if (how < 0) break;
      if (how) {
        free_block(it->spare);
        it->spare = it->running[i];
        memmove(it->running + i, it->running + i + 1, sizeof *it->running * (--it->count - i));
        i--;
      }
    }
    if (seconds() > limit) return !launch->fault;
  }
  return 0;
}

EXPORT void memsim_end(BlockRun *run) {
  for (int i = 0; i < run->count; i++) free_block(run->running[i]);
  free_block(run->spare);
  free(run);
}
