// Asynchronous copies, mbarriers and matrix loads by inline assembly, with scopes, labels and predicates.
__device__ __forceinline__ unsigned address(const void *p) { return unsigned(__cvta_generic_to_shared(p)); }

__device__ __forceinline__ void wait(unsigned barrier, unsigned phase) {
  asm volatile(
      "{\n\t"
      ".reg .pred P1;\n\t"
      "LAB_WAIT:\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n\t"
      "@P1 bra DONE;\n\t"
      "bra LAB_WAIT;\n\t"
      "DONE:\n\t"
      "}" ::"r"(barrier), "r"(phase) : "memory");
}

__global__ void copies(float *out, const float *in, int n) {
  __shared__ alignas(128) float tile[1024];
  __shared__ unsigned long long barrier;
  unsigned to = address(tile + threadIdx.x * 4), bar = address(&barrier);
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar), "r"(n));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(in));
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 8, %2;" ::"r"(to), "l"(in), "r"(n));
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0;\n\t@p cp.async.cg.shared.global [%0], [%1], 16; }"
               ::"r"(to), "l"(in), "r"(n));
  asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(bar));
  asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 1;\n\tcp.async.wait_all;");
  unsigned long long state;
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(bar));
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar), "r"(4096));
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 64;" ::"r"(bar));
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               ::"r"(to), "l"(in), "r"(n), "r"(bar));
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out), "r"(to), "r"(n));
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
               ::"r"(to), "l"(in), "r"(n), "r"(8), "r"(bar));
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %1, %1}], [%2];"
               ::"l"(out), "r"(n), "r"(to));
  asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group.read 0;");
  wait(bar, 0);
  wait(bar, n & 1);
  int done;
  asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
               : "=r"(done) : "r"(bar), "l"(state));
  out[threadIdx.x] = tile[threadIdx.x] + done;
}

__global__ void matrices(float *out, const float *in) {
  __shared__ alignas(16) short tile[64 * 64];
  unsigned from = address(tile + threadIdx.x * 8), a[4], b[2];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(from));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2+1024];" : "=r"(b[0]), "=r"(b[1]) : "r"(from));
  float d[4] = {in[0], in[1], in[2], in[3]};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(from), "r"(a[0]), "r"(b[1]));
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(a[0]) : "r"(a[1]));
  out[threadIdx.x] = d[0] + d[1] + d[2] + d[3] + a[0];
}
