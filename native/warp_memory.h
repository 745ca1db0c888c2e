// What the lanes of a warp do to memory: loads, stores, copies, atomics; each lane is checked.
#pragma once
#include <math.h>
#include <string.h>

#include "numbers.h"
#include "warp_groups.h"

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

enum { NOWHERE, ANYWHERE, IN_ROW, AT_ONE };
#define FEW 8  // lanes that are as fast one by one

// Where the bytes of each active lane's access are. IN_ROW: of all lanes a word or less, one behind the other, AT_ONE: of
// all lanes the same, which is loaded; then only where the first one is. NOWHERE: a fault.
static inline int locate_all(Machine *machine, Warp *warp, const Access *access, const Vector *address, uint32_t width, int kind, uint32_t active, uint8_t *at[LANES]) {
  Launch *launch = machine->launch;
  uint64_t kept = ~0ull, odd = 0, uneven = 0, other = 0;
  int64_t start = 0, room = -1, apart = 0, wrong = 0;
  intptr_t to = 0;
  int where = ANYWHERE;
  if (access->space == SHARED) {
    start = launch->shared_base, room = launch->shared_end - start - width, kept = 0xffffff;
    to = (intptr_t)machine->block->shared - start;
  } else if (access->space == LOCAL) {
    room = launch->local_bytes - width, kept = 0xffffffff, apart = launch->local_bytes;
    to = (intptr_t)warp->local;
  } else if (machine->allocation >= 0) {
    start = (int64_t)launch->starts[machine->allocation], room = (int64_t)launch->ends[machine->allocation] - start - width;
    to = (intptr_t)launch->global - (intptr_t)launch->global_base;
  }
  if (active == ALL && !apart) {
    for (int l = 0; l < LANES; l++) {
      uneven |= address->W[l] - address->W[0] - (uint64_t)l * width;
      other |= address->W[l] ^ address->W[0];
    }
    if (!uneven) where = IN_ROW;
    else if (!other && kind == 1) where = AT_ONE;
  }
#define CHECK(lanes, live) \
  for (int l = 0; l < lanes; l++) { \
    int64_t offset = (int64_t)(address->W[l] & kept) - start; \
    wrong |= (offset | (room - offset)) & live, odd |= address->W[l] & (uint64_t)live; \
  }
  if (where != ANYWHERE) {
    room -= where == IN_ROW ? (LANES - 1) * width : 0;
    CHECK(1, -1)
  } else if (active == ALL) CHECK(LANES, -1)
  else if (__builtin_popcount(active) >= FEW) CHECK(LANES, -(int64_t)(active >> l & 1))
  else wrong = -1;
#undef CHECK
  if (room >= 0 && wrong >= 0 && !(odd & (width - 1))) {
    if (access->space == GLOBAL || access->space == GENERIC) launch->touched[machine->allocation] |= kind;
    at[0] = (uint8_t *)((intptr_t)(address->W[0] & kept) + to);
    if (where == AT_ONE || (where == IN_ROW && width <= 4)) return where;
    for (int l = 1; l < LANES; l++) at[l] = (uint8_t *)((intptr_t)(address->W[l] & kept) + to + l * apart);
    return ANYWHERE;
  }
  for (uint32_t left = active; left; left &= left - 1) {
    int l = __builtin_ctz(left);
    if (!(at[l] = locate(machine, warp, access->space, address->W[l], width, l, kind))) return NOWHERE;
  }
  return ANYWHERE;
}

#define EACH_ACTIVE(l) for (uint32_t left = active, l; left && (l = __builtin_ctz(left), 1); left &= left - 1)

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
  uint8_t *from[LANES];
  int where = locate_all(machine, warp, access, address, width, 1, active, from);
  if (where == NOWHERE) return 0;
  if (where == IN_ROW)
    for (int i = 0; i < 4 * LANES; i += 64) __builtin_prefetch(from[0] + 16 * LANES + i);  // what warps behind it may load
  for (int i = 0; i < access->count; i++) {
    if (access->registers[i] < 0) continue;
    uint32_t *to = register_at(warp, access->registers[i]);
#define LOAD(type) { \
    const uint8_t *row = from[0] + i * sizeof(type); \
    if (where == AT_ONE) { type one; memcpy(&one, row, sizeof one); for (int l = 0; l < LANES; l++) to[l] = (uint32_t)one; } \
    else if (where == IN_ROW) for (int l = 0; l < LANES; l++) { type one; memcpy(&one, row + l * sizeof one, sizeof one); to[l] = (uint32_t)one; } \
    else if (active == ALL) for (int l = 0; l < LANES; l++) { type one; memcpy(&one, from[l] + i * sizeof one, sizeof one); to[l] = (uint32_t)one; } \
    else EACH_ACTIVE(l) { type one; memcpy(&one, from[l] + i * sizeof one, sizeof one); to[l] = (uint32_t)one; } \
  }
    if (access->size == 4) LOAD(uint32_t)
    else if (access->size == 2) { if (access->is_signed) LOAD(int16_t) else LOAD(uint16_t) }
    else if (access->is_signed) LOAD(int8_t)
    else LOAD(uint8_t)
#undef LOAD
  }
  return 1;
}

static int store(Machine *machine, Warp *warp, const Access *access, const Vector *address, uint32_t active) {
  static const uint32_t zeros[LANES];
  uint8_t *to[LANES];
  int where = locate_all(machine, warp, access, address, access->size * access->count, 2, active, to);
  if (where == NOWHERE) return 0;
  for (int i = 0; i < access->count; i++) {
    const uint32_t *of = access->registers[i] < 0 ? zeros : register_at(warp, access->registers[i]);
    if (where == IN_ROW && access->size == 4) { memcpy(to[0], of, 4 * LANES); continue; }
    if (where == IN_ROW) for (int l = 1; l < LANES; l++) to[l] = to[0] + l * access->size;
    if (access->size == 1) EACH_ACTIVE(l) *to[l] = (uint8_t)of[l];
    else if (access->size == 2) EACH_ACTIVE(l) memcpy(to[l], of + l, 2);
    else if (active == ALL) for (int l = 0; l < LANES; l++) memcpy(to[l] + 4 * i, of + l, 4);
    else EACH_ACTIVE(l) memcpy(to[l] + 4 * i, of + l, 4);
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
  int where = locate_all(machine, warp, access, address, 16, 1 + stores, ALL >> (LANES - 8 * access->count), row);
  if (where == NOWHERE) return 0;
  if (where == AT_ONE) for (int l = 1; l < LANES; l++) row[l] = row[0];
  for (int m = 0; m < access->count; m++) {
    static const uint32_t zeros[LANES];
    if (access->registers[m] < 0 && !stores) continue;
    uint32_t *words = access->registers[m] < 0 ? (uint32_t *)zeros : register_at(warp, access->registers[m]);
    for (int i = 0; i < 8; i++) {
      if (!access->operation) {
        if (stores) memcpy(row[8 * m + i], words + 4 * i, 16);
        else memcpy(words + 4 * i, row[8 * m + i], 16);
      } else
        for (int l = 0; l < 8; l++) {  // transposed: element i of row l is half of a word
          uint8_t *at = row[8 * m + l] + 2 * i, *half = (uint8_t *)(words + 4 * i + l / 2) + l % 2 * 2;
          if (stores) memcpy(at, half, 2);
          else memcpy(half, at, 2);
        }
    }
  }
  return 1;
}

enum { ADD, MIN, MAX, AND, OR, XOR, EXCH, CAS, INC, DEC };
enum { U32, S32, U64, S64, F32, F64, F32_FLUSHED, HALVES, BF16_HALVES };

static float flushed(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }
static float f_of(uint32_t w) { float f; memcpy(&f, &w, 4); return f; }
static uint32_t w_of(float f) { uint32_t w; memcpy(&w, &f, 4); return w; }

static uint32_t changed_half(int type, uint32_t old, uint32_t b) {
  if (type == BF16_HALVES) return bf16_of(odd_float(sum_to_odd(f_of(old << 16), f_of(b << 16))));
  double sum = (double)float_of_half(old) + (double)float_of_half(b);
  return sum != sum ? 0x7fff : half_of_double(sum);
}

static uint64_t changed(int operation, int type, uint64_t old, uint64_t b, uint64_t c) {
  if (type == F32 && operation == ADD) return w_of(f_of((uint32_t)old) + f_of((uint32_t)b));
  if (type == F32_FLUSHED) return w_of(flushed(flushed(f_of((uint32_t)old)) + flushed(f_of((uint32_t)b))));
  if (type >= HALVES) return changed_half(type, old & 0xffff, b & 0xffff) | changed_half(type, old >> 16 & 0xffff, b >> 16 & 0xffff) << 16;
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

// Updates an integer that other threads update, too, by an operation whose order does not matter.
static void update_shared(const Access *access, uint8_t *at, uint64_t b) {
#define UPDATE(word) { \
  word *place = (word *)at, old = __atomic_load_n(place, __ATOMIC_RELAXED); \
  while (!__atomic_compare_exchange_n(place, &old, (word)changed(access->operation, access->type, old, b, 0), 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)); }
  if (access->size == 4) UPDATE(uint32_t) else UPDATE(uint64_t)
#undef UPDATE
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
    if (address->W[l] & (width * access->count - 1)) { launch->fault = MISALIGNED; return 0; }
    uint8_t *at = locate(machine, warp, access->space, address->W[l], width, l, 3);
    if (!at) return 0;
    uint64_t b = operand(warp, access, 0, l);
    if (launch->has_others && access->space != SHARED && !is_shared) {  // lanes side by side with one place do it at once
      for (uint32_t rest = left & (left - 1); rest && address->W[__builtin_ctz(rest)] == address->W[l]; rest &= rest - 1) {
        b = changed(access->operation, access->type, b, operand(warp, access, 0, __builtin_ctz(rest)), 0);
        left ^= rest & -rest;
      }
      update_shared(access, at, b);
      continue;
    }
    memcpy(&old[l], at, width);
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
