// A kernel as operations on the lanes of a warp, and what executes them.
// memsim/interpreter/native_launch.py has the same structures.
#pragma once
#include <stdint.h>

#define LANES 32
#define ALL 0xffffffffu

typedef union {  // of a register only the first 128 bytes exist
  uint32_t w[LANES]; int32_t i[LANES]; float f[LANES];
  uint64_t W[LANES]; int64_t I[LANES]; double d[LANES];
} Vector;

// Operands are places in bytes; their upper bits say of what: registers, scratch vectors, constants.
#define PLACE_BITS 24

typedef struct {
  uint16_t code, k;
  int32_t d, a, b, c, next;  // next: of control flow, and of the end of a basic block, where it goes on
  int64_t n;
} Operation;

enum { GLOBAL, SHARED, LOCAL, GENERIC, CONSTANT };

typedef struct {  // an access to memory; registers: places, -1 for none
  int32_t space, size, count, is_signed;
  int32_t registers[4];
  int32_t instruction, operation, type, answer;
  int32_t operands[2], uppers[2];  // -1: zero, -2: one; and their upper words
  const uint8_t *content;  // of a constant bank
  int64_t bytes;
  int64_t allocation;  // that it accessed last, -1 for none
} Access;

enum { DONE, OUTSIDE, MISALIGNED, DEADLOCK, TRAP, ENDLESS, LOST, NO_MEMORY };

typedef struct {  // of a launch's blocks, for all threads that run them
  int64_t next, end;  // the block that begins next, and the one that does not run any more: there is none, or one before it failed
} Turns;

typedef struct {
  const Operation *operations;
  const char *constants;
  Access *accesses;
  const uint32_t *of_threads;  // tables of what depends on the thread alone, of so many threads
  int64_t threads;
  const int32_t *places;       // operation by address of the instruction / 16, -1 for none
  int64_t places_count;
  uint8_t *global;
  uint64_t global_base;
  const uint64_t *starts, *ends;  // of allocations, ascending
  uint8_t *touched;               // 1: read, 2: written
  int64_t allocations;
  const uint8_t *window, *parameters;  // what generic addresses of constants lead to
  int64_t window_bytes, parameters_bytes;
  uint64_t shared_window, local_window, constant_window, parameter_window, window_size;
  int64_t shared_base, shared_end, local_bytes, register_bytes, budget;
  int64_t zeroed_bytes;               // of the registers: those that may be read before they are written come first
  uint32_t grid[3], block[3];
  int32_t count_place, answer_place;  // results of block barriers
  int32_t fault, instruction;         // what went wrong, and where
  int64_t faulty_block;
  Turns *turns;
  int32_t waits, has_others;  // whether a block may wait for another; whether other threads run blocks, too
} Launch;
