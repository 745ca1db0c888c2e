// Atomics and reductions on global and shared memory.
__global__ void atomics(int *g, unsigned *u, float *f, unsigned long long *l, double *d, int n) {
  __shared__ int s[8];
  __shared__ unsigned long long wide;
  int i = threadIdx.x;
  s[i & 7] = 0;
  wide = 0;
  __syncthreads();
  g[0] = atomicAdd(g + 1, i) + atomicSub(g + 2, i) + atomicMin(g + 3, i) + atomicMax(g + 4, i);
  g[1] = atomicAnd(g + 5, i) + atomicOr(g + 6, i) + atomicXor(g + 7, i) + atomicExch(g + 8, i);
  g[2] = atomicCAS(g + 9, i, n) + int(atomicInc(u, 31)) + int(atomicDec(u + 1, 31));
  f[0] = atomicAdd(f + 1, 1.5f) + atomicExch(f + 2, 2.0f) + float(atomicAdd(d, 1.0));
  l[0] = atomicAdd(l + 1, 1ull) + atomicCAS(l + 2, 1ull, 2ull) + atomicMax(l + 3, 5ull);
  g[3] = atomicAdd(s + (i & 7), 1) + atomicCAS(s, 1, 2) + atomicExch(s + 1, i) + int(atomicAdd(&wide, 2ull));
  g[4] = atomicAdd_system(g + 10, 1) + atomicAdd_block(g + 11, 1) + atomicCAS_system(g + 12, 1, 2);
  atomicAdd(g + 13, 1);
  atomicMax(s + 2, i);
  atomicAdd(f + 3, 1.0f);
  asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [%0], %1, [%2];" ::"r"(n), "r"(i), "r"(n));
  asm volatile("atom.global.acq_rel.gpu.exch.b32 _, [%0], %1;" ::"l"(g), "r"(i));
  asm volatile("red.global.add.noftz.f16x2 [%0], %1;" ::"l"(g), "r"(i));
}
