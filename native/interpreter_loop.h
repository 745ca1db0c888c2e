// The main loop of interpreter.c.

#define AT(place) ((Vector *)(bases[(place) >> PLACE_BITS] + ((place) & ((1 << PLACE_BITS) - 1))))
#define EACH _Pragma("GCC ivdep") for (int l = 0; l < LANES; l++)
#define CASE2(name, td, ta, tb, expression) \
  case OP_##name: { \
    Vector *D = AT(o->d); const Vector *A = AT(o->a), *B = AT(o->b); \
    EACH { __auto_type x = A->ta[l]; __auto_type y = B->tb[l]; D->td[l] = expression; } \
    pc++; break; \
  }
#define CASE1(name, td, ta, expression) \
  case OP_##name: { \
    Vector *D = AT(o->d); const Vector *A = AT(o->a); \
    EACH { __auto_type x = A->ta[l]; D->td[l] = expression; } \
    pc++; break; \
  }

// Runs a warp until nothing of it is ready (STOPPED), others should run (TIRED), or something is wrong.
static int run_warp(Machine *machine, Warp *warp) {
  Launch *launch = machine->launch;
  const Operation *operations = launch->operations;
  char *bases[3] = {(char *)warp->registers, (char *)machine->scratch, (char *)launch->constants};
  int64_t left = QUANTUM;
  if (warp->is_new) {
    memset(warp->registers, 0, launch->zeroed_bytes);
    memset(warp->local, 0, LANES * launch->local_bytes);
    warp->is_new = 0;
  }

  for (;;) {
    int at = next_group(warp);
    if (at < 0) {
      if (!warp->groups) return STOPPED;
      for (int i = 0; i < warp->groups; i++) warp->group[i].parked = warp->group[i].yields = 0;
      return TIRED;
    }
    Group group = warp->group[at];
    warp->group[at] = warp->group[--warp->groups];
    uint32_t pc = group.pc, mask = group.mask, active = mask;
    int going = 1, is_chosen = 1;  // it runs at least one basic block

#define TO(target) do { \
    uint32_t to_ = (target); \
    if (warp->groups && to_ <= pc && ++group.turns > PATIENCE) { \
      add_group(warp, to_, mask, 0); warp->group[warp->groups - 1].parked = 1; going = 0; break; \
    } \
    pc = to_; \
  } while (0)

    while (going) {
      const Operation *o = &operations[pc];
      switch (o->code) {
        INTEGERS(CASE2) FLOATS(CASE2) UNARIES(CASE1)
        case OP_half_to_f: case OP_f_to_half: {
          Vector *D = AT(o->d); const Vector *A = AT(o->a);
          for (int l = 0; l < LANES; l += 8)
            if (o->code == OP_half_to_f) floats_of_halves(D->f + l, A->w + l); else halves_of_floats(D->w + l, A->f + l);
          pc++; break;
        }
        case OP_half_to_d: {
          Vector *D = AT(o->d), found; const Vector *A = AT(o->a);
          for (int l = 0; l < LANES; l += 8) floats_of_halves(found.f + l, A->w + l);
          EACH D->d[l] = found.f[l];
          pc++; break;
        }
        case OP_half_bits: {  // any NaN is the same
          Vector *D = AT(o->d), found; const Vector *A = AT(o->a);
          for (int l = 0; l < LANES; l += 8) halves_of_floats(found.w + l, A->f + l);
          EACH D->w[l] = A->f[l] != A->f[l] ? 0x7fff : found.w[l];
          pc++; break;
        }
        case OP_d_to_I: {
          Vector *D = AT(o->d); const Vector *A = AT(o->a); int are_small = 1;
          for (int l = 0; l < LANES; l++) are_small &= fabs(A->d[l]) < 0x1p51;
          if (are_small) EACH D->W[l] = bits_of(trunc(A->d[l]) + 0x1.8p52) - bits_of(0x1.8p52);
          else for (int l = 0; l < LANES; l++) D->I[l] = A->d[l] >= -0x1p63 && A->d[l] < 0x1p63 ? (int64_t)A->d[l] : INT64_MIN;
          pc++; break;
        }
        case OP_table_h: {  // n: a table of c entries
          Vector *D = AT(o->d); const Vector *A = AT(o->a); const uint16_t *table = (const uint16_t *)o->n;
          for (int l = 0; l < LANES; l++) D->w[l] = A->w[l] < (uint32_t)o->c ? table[A->w[l]] : 0;
          pc++; break;
        }
        case OP_polynomial: {  // n: a table of k rows, of the constant, linear and quadratic coefficients
          Vector *D = AT(o->d); const Vector *A = AT(o->a), *B = AT(o->b), *C = AT(o->c);
          double rows[3][LANES];
          for (int l = 0; l < LANES; l++) {
            const double *row = (const double *)o->n + 3 * (A->w[l] < o->k ? A->w[l] : 0);
            rows[0][l] = row[0], rows[1][l] = row[1], rows[2][l] = row[2];
          }
          EACH D->d[l] = rows[0][l] + rows[1][l] * B->i[l] + rows[2][l] * C->i[l];
          pc++; break;
        }
        case OP_sel_w: { Vector *D = AT(o->d); const Vector *A = AT(o->a), *B = AT(o->b), *C = AT(o->c); EACH D->w[l] = A->w[l] ? B->w[l] : C->w[l]; pc++; break; }
        case OP_sel_W: { Vector *D = AT(o->d); const Vector *A = AT(o->a), *B = AT(o->b), *C = AT(o->c); EACH D->W[l] = A->w[l] ? B->W[l] : C->W[l]; pc++; break; }
        case OP_fma_f: { Vector *D = AT(o->d); const Vector *A = AT(o->a), *B = AT(o->b), *C = AT(o->c); EACH D->f[l] = __builtin_fmaf(A->f[l], B->f[l], C->f[l]); pc++; break; }
        case OP_fma_d: { Vector *D = AT(o->d); const Vector *A = AT(o->a), *B = AT(o->b), *C = AT(o->c); EACH D->d[l] = __builtin_fma(A->d[l], B->d[l], C->d[l]); pc++; break; }
        case OP_ldexp_d: {  // one exact product where all powers are normal numbers
          Vector *D = AT(o->d); const Vector *A = AT(o->a), *B = AT(o->b); int are_normal = 1;
          for (int l = 0; l < LANES; l++) are_normal &= B->i[l] >= -1022 && B->i[l] <= 1023;
          if (are_normal) EACH D->d[l] = A->d[l] * power_of_2(B->i[l]);
          else for (int l = 0; l < LANES; l++) D->d[l] = ldexp(A->d[l], B->i[l]);
          pc++; break;
        }
        case OP_table_W: {  // n: a table of c entries
          Vector *D = AT(o->d); const Vector *A = AT(o->a); const uint64_t *table = (const uint64_t *)o->n;
          for (int l = 0; l < LANES; l++) D->W[l] = A->W[l] < (uint64_t)o->c ? table[A->W[l]] : 0;
          pc++; break;
        }
        case OP_add_rounded: case OP_mul_rounded: case OP_fma_rounded:
          rounded(AT(o->d), AT(o->a), AT(o->b), AT(o->c), o->k + 4 * (o->code - OP_add_rounded)); pc++; break;
        case OP_leader:  // a basic block of n instructions begins
          active = mask, left -= o->n, warp->budget -= o->n;
          if (warp->budget < 0) { launch->fault = ENDLESS, launch->instruction = o->c; return FAULTY; }
          if (left < 0 || (warp->groups && !is_chosen && is_behind(warp, pc))) {
            add_group(warp, pc, mask, group.turns);
            if (left < 0) return TIRED;
            going = 0; break;
          }
          is_chosen = 0, pc = mask == ALL && o->next ? (uint32_t)o->next : pc + 1;  // operations for whole warps
          break;
        case OP_stretch:  // n: a function that does these operations, up to `next`
          ((void (*)(char *, char *, const char *, const Operation *, uint32_t))o->n)(bases[0], bases[1], bases[2], o, mask);
          pc = (uint32_t)o->next; break;
        case OP_goto: pc = (uint32_t)o->next; break;
        case OP_all: active = mask; pc++; break;
        case OP_guard: {  // lanes where a holds, or with k not; n: where to go on if nobody is left
          uint32_t held = lanes_of(AT(o->a));
          active &= o->k ? ~held : held;
          if (active || !o->n) pc++;
          else active = mask, pc = (uint32_t)o->n;
          break;
        }
        case OP_write: {
          Vector *D = AT(o->d); const Vector *A = AT(o->a);
          if (active == ALL) memcpy(D, A, 4 * LANES);
          else EACH D->w[l] = active >> l & 1 ? A->w[l] : D->w[l];
          pc++; break;
        }
        case OP_thread: memcpy(AT(o->d), launch->of_threads + o->n * launch->threads + warp->number * LANES, 4 * LANES); pc++; break;
        case OP_block: spread(AT(o->d), machine->block->coordinates[o->n]); pc++; break;
        case OP_clock: {
          struct timespec now; clock_gettime(o->k ? CLOCK_REALTIME : CLOCK_MONOTONIC, &now);
          uint64_t time = now.tv_sec * 1000000000ull + now.tv_nsec;
          spread(AT(o->d), o->n ? (uint32_t)(time >> 32) : (uint32_t)time);
          pc++; break;
        }
        case OP_shuffle: case OP_shuffle_valid: {
          Vector *D = AT(o->d); const Vector *A = AT(o->a); Vector source, found;
          source_lanes(o->k, AT(o->b), AT(o->c), &source, &found);
          if (o->code == OP_shuffle) for (int l = 0; l < LANES; l++) found.w[l] = A->w[source.i[l]];
          memcpy(D, &found, 4 * LANES);
          pc++; break;
        }
        case OP_vote_mask: spread(AT(o->d), lanes_of(AT(o->a)) & active); pc++; break;
        case OP_vote: {
          uint32_t yes = lanes_of(AT(o->a)) & active;
          spread(AT(o->d), o->k == 0 ? yes != 0 : o->k == 1 ? yes == active : yes == 0 || yes == active);
          pc++; break;
        }
        case OP_match: case OP_match_64: case OP_match_all: case OP_match_all_64: {
          Vector *D = AT(o->d); const Vector *A = AT(o->a); Vector found;
          int is_wide = o->code == OP_match_64 || o->code == OP_match_all_64, asks_all = o->code >= OP_match_all;
          for (int l = 0; l < LANES; l++) {
            uint32_t same = 0;
            for (int s = 0; s < LANES; s++) same |= (uint32_t)(is_wide ? A->W[s] == A->W[l] : A->w[s] == A->w[l]) << s;
            found.w[l] = asks_all ? (same & active) == active : same & active;
          }
          memcpy(D, &found, 4 * LANES);
          pc++; break;
        }
        case OP_members: { Vector *D = AT(o->d); const Vector *A = AT(o->a); EACH D->w[l] = A->w[l] ? active : 0; pc++; break; }
        case OP_redux: spread(AT(o->d), reduced(o->k, o->n, AT(o->a), active)); pc++; break;
        case OP_first: spread(AT(o->d), AT(o->a)->w[active ? __builtin_ctz(active) : 0]); pc++; break;
        case OP_elect: spread_lanes(AT(o->d), active & -active); pc++; break;
        case OP_scatter: case OP_gather: {  // n: where each lane's number is in the warp's matrices
          uint64_t *to = AT(o->code == OP_gather ? o->d : o->a)->W; const int32_t *places = (const int32_t *)o->n;
          for (int l = 0; l < LANES; l++)
            if (o->code == OP_gather) memcpy(to + l, machine->matrix + places[l], 8);
            else memcpy(machine->matrix + places[l], to + l, 8);
          pc++; break;
        }
        case OP_product:  // k: columns of A; n: its rows; c: bits that are kept, 0: each product is fused
          if (o->c) cut_products(machine->matrix, (int)o->n, o->k, o->c);
          else fused_products(machine->matrix, (int)o->n, o->k);
          pc++; break;
        case OP_leader_lane: spread(AT(o->d), active ? __builtin_ctz(active) : 0); pc++; break;

#define MEMORY(call) { Access *access = &launch->accesses[o->n]; machine->allocation = access->allocation; \
  if (!(call)) { launch->instruction = access->instruction; return FAULTY; } \
  access->allocation = machine->allocation; pc++; break; }
        case OP_load: MEMORY(load(machine, warp, access, AT(o->a), active))
        case OP_store: MEMORY(store(machine, warp, access, AT(o->a), active))
        case OP_atomic: MEMORY(atomic(machine, warp, access, AT(o->a), active))
        case OP_copy: MEMORY(copy(machine, warp, access, AT(o->a), AT(o->b), active, o->k ? lanes_of(AT(o->c)) : ALL))
        case OP_load_matrix: MEMORY(matrices(machine, warp, access, AT(o->a), 0))
        case OP_store_matrix: MEMORY(matrices(machine, warp, access, AT(o->a), 1))
#undef MEMORY

        case OP_branch: {  // k: taken by all or by none
          uint32_t rest = mask & ~active;
          if (!active || (o->k && rest)) { pc = (uint32_t)o->next; break; }
          if (!rest) { TO((uint32_t)o->n); break; }
          add_group(warp, (uint32_t)o->next, rest, group.turns);
          add_group(warp, (uint32_t)o->n, active, group.turns);
          going = 0; break;
        }
        case OP_branch_any: if (active) { active = mask; TO((uint32_t)o->n); } else pc = (uint32_t)o->next; break;
        case OP_branch_diverged: {  // a: whom each lane asks for; k: taken where all are here
          if (!active) { pc = (uint32_t)o->next; break; }
          const Vector *A = AT(o->a); uint32_t away = 0;
          for (int l = 0; l < LANES; l++) away |= (uint32_t)((A->w[l] & warp->alive & ~active) != 0) << l;
          away &= mask;
          uint32_t taking = o->k ? mask & ~away : away;
          if (!taking) { pc = (uint32_t)o->next; break; }
          if (taking == mask) { TO((uint32_t)o->n); break; }
          add_group(warp, (uint32_t)o->next, mask & ~taking, group.turns);
          add_group(warp, (uint32_t)o->n, taking, group.turns);
          going = 0; break;
        }
        case OP_indexed: {  // a: addresses; n: added to them; c: the instruction
          if (!active) { pc = (uint32_t)o->next; break; }
          const Vector *A = AT(o->a);
          add_group(warp, (uint32_t)o->next, mask & ~active, group.turns);
          for (uint32_t rest = active; rest;) {
            int64_t address = A->I[__builtin_ctz(rest)] + o->n;
            uint32_t alike = 0;
            for (int l = 0; l < LANES; l++) alike |= (uint32_t)(A->I[l] + o->n == address) << l;
            alike &= rest, rest &= ~alike;
            int32_t to = address >= 0 && !(address & 15) && address / 16 < launch->places_count ? launch->places[address / 16] : -1;
            if (to < 0) { launch->fault = LOST, launch->instruction = o->c; return FAULTY; }
            add_group(warp, to, alike, group.turns);
          }
          going = 0; break;
        }
        case OP_exit:
          warp->alive &= ~active, mask &= ~active;
          if (active) check_meetings(warp);
          if (mask) { active = mask; pc = (uint32_t)o->next; } else going = 0;
          break;
        case OP_set_barrier: {
          Vector *D = AT(o->d);
          EACH D->w[l] = active >> l & 1 ? active : D->w[l];
          pc = (uint32_t)o->next; break;
        }
        case OP_leave_barrier: {
          Vector *D = AT(o->d);
          EACH D->w[l] &= ~active;
          for (int i = 0; i < warp->meetings; i++)
            if (warp->meeting[i].barrier == o->d) for (int l = 0; l < LANES; l++) warp->meeting[i].members[l] &= ~active;
          if (active) check_meetings(warp);
          pc = (uint32_t)o->next; break;
        }
        case OP_wait_barrier: case OP_warp_sync: {  // n: where they go on; k: each mask's lanes by themselves
          if (!active) { pc = (uint32_t)o->next; break; }
          const Vector *A = AT(o->a);
          int32_t barrier = o->code == OP_wait_barrier ? o->d : o->k ? APART : NO_BARRIER;
          if (active == warp->alive) {  // all are here
            if (barrier == APART) { go_on(warp, (uint32_t)o->n, active, A->w, 1); going = 0; }
            else pc = (uint32_t)o->n, active = mask;
            break;
          }
          add_group(warp, (uint32_t)o->next, mask & ~active, group.turns);
          meet(warp, (uint32_t)o->n, barrier, active, A->w);
          going = 0; break;
        }
        case OP_yield:
          if (!active || !(warp->alive & ~active)) { pc = (uint32_t)o->next; break; }
          add_group(warp, (uint32_t)o->next, mask & ~active, group.turns);
          add_group(warp, (uint32_t)o->next, active, group.turns);
          warp->group[warp->groups - 1].parked = warp->group[warp->groups - 1].yields = 1;
          check_meetings(warp);
          going = 0; break;
        case OP_sleep:
          add_group(warp, (uint32_t)o->next, mask, group.turns + PATIENCE / 10);
          return TIRED;
        case OP_block_barrier: {  // a, b: its number and count, with k & 1, 2; k >> 4: how it votes; k & 8: it only arrives
          if (!active) { pc = (uint32_t)o->next; break; }
          int first = __builtin_ctz(active), number = o->k & 1 ? AT(o->a)->w[first] & 15 : 0, asked = o->k & 2 ? (int)AT(o->b)->w[first] : -1;
          if (o->k & 8) { machine->block->arrived[number] += LANES; pc = (uint32_t)o->next; break; }
          add_group(warp, (uint32_t)o->next, mask & ~active, group.turns);
          uint32_t votes = o->k >> 4 ? lanes_of(AT(o->c)) & active : 0;
          warp->barrier[warp->barriers++] = (AtBarrier){(uint32_t)o->next, active, votes, number, asked, o->k >> 4};
          going = 0; break;
        }
        case OP_trap: if (!active) { pc = (uint32_t)o->next; break; } launch->fault = TRAP, launch->instruction = (int32_t)o->n; return FAULTY;
        case OP_end: warp->alive &= ~mask; check_meetings(warp); going = 0; break;
        default: launch->fault = LOST, launch->instruction = -1; return FAULTY;
      }
    }
#undef TO
  }
}
#undef AT
#undef EACH
#undef CASE1
#undef CASE2
