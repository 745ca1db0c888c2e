// The lanes of a warp: groups with one place in the code, and those that wait for each other. The rules are those of
// memsim/simt/convergence.py and groups.py.
#pragma once
#include "interpreter.h"

enum { NO_BARRIER = -1, APART = -2 };  // of a Meeting at WARPSYNC; APART: lanes of each mask go on by themselves
typedef struct { uint32_t pc, mask; int turns, parked, yields; } Group;
typedef struct { uint32_t pc, mask; int32_t barrier; uint32_t members[LANES]; } Meeting;
typedef struct { uint32_t pc, mask, votes; int32_t number, asked, how; } AtBarrier;

typedef struct {
  uint8_t *registers, *local;
  uint32_t alive, number;
  int is_new;  // its registers and local memory are still to become zero
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
  double matrix[1024];  // of warp_matrix.h
} Machine;

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

// Lanes go on together, or `apart`, those that waited for the same lanes each.
static void go_on(Warp *warp, uint32_t pc, uint32_t lanes, const uint32_t *members, int apart) {
  for (uint32_t alike; lanes; lanes &= ~alike) {
    alike = 0;
    for (int l = 0; l < LANES; l++) alike |= (uint32_t)(!apart || members[l] == members[__builtin_ctz(lanes)]) << l;
    alike &= lanes;
    add_group(warp, pc, alike, 0);
  }
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
  go_on(warp, meeting->pc, going, meeting->members, meeting->barrier == APART);
  if (!meeting->mask) *meeting = warp->meeting[--warp->meetings];
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
