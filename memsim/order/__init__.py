"""Happens-before: which accesses to memory come one after the other in every run, not only in this one.

The emulator runs warps and blocks in one order of many that the chip may take. What it counts is certain
if no other order changes an address or a branch. So a listener (`order_listener.py`) is told of each
access and of each wait, and keeps, for each place in memory, who accessed it last. An access *happens
before* another one if one thread makes both, or if whoever made the first has told so, by a barrier or the
like, to the one that makes the second, directly or through others. Two accesses, one of which writes, with
neither before the other, are a race. A race by itself is no finding here: `memsim.simt.order_of_launch`
says whether it decides anything.

    shared memory   `SharedListener`: vector clocks of warps and copies (`warp_clocks.py`), marks of words
                    and lanes of a warp that diverged (`word_marks.py`, `shared_order.py`)
    global memory   `GlobalListener`: the thread, and the block barriers that its block has passed

The terms are those of PTX ISA, "Memory Consistency Model", by the titles of its sections, whose numbers
change. Followed in shared memory:

- Conflict and Data-races, by words, or by smaller elements as soon as a kernel accesses such.
- Program Order. Of lanes: they are ordered if they execute together, as the chip does, or have met
  since; in PTX only `bar.warp.sync` does that, and a warp is no scope.
- Asynchronous operations: a copy is after what its thread did before, and before those that wait
  for it: its own warp by `cp.async.wait_group`, or all that wait for the phase of the mbarrier where it
  completes. Its completion tells nothing else of the thread that made it.
- Memory synchronization: `bar.sync` and `bar.red` with those that wait or arrive at the same barrier,
  `barrier.cluster.arrive` with `.wait`. An arrival at an mbarrier is a release pattern, and a wait for its
  phase an acquire pattern.
- Causality Order is transitive: who waits learns all that was told there.

Beyond the model: stores of the same value, and atomics that may change places, leave the same in any
order. They are no races. Lanes of one instruction that store different values to one place are.

Not followed. Fences and release and acquire patterns by loads, stores and atomics: a flag in
memory orders nothing, so what it protects is a race. Scopes and moral strength: volatile
accesses are as others, and a wait counts for all that it names. Proxies: no `fence.proxy.async` is
asked for, and a copy that *reads* shared memory is done at once. Races of overlapping elements of several
sizes are those of their smallest parts. Lanes of a warp arrive and wait as one. In global memory
only program order and block barriers order anything; not `grid.sync()`, mbarriers or named barriers.
"""
