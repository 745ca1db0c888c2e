// Instructions across the lanes of a warp, and barriers.
__global__ void shuffles(int *out, const float *in) {
  unsigned all = 0xffffffff;
  int i = threadIdx.x;
  float x = in[i];
  for (int d = 16; d; d >>= 1) x += __shfl_xor_sync(all, x, d);
  x += __shfl_sync(all, x, 3, 8) + __shfl_up_sync(all, x, 1) + __shfl_down_sync(all, x, 2, 16);
  out[0] = __ballot_sync(all, i & 1) + __any_sync(all, i > 3) + __all_sync(all, i > 4) + __activemask();
  int same;
  out[1] = __match_any_sync(all, i & 3) + __match_all_sync(all, i, &same) + same;
  out[2] = __reduce_add_sync(all, i) + __reduce_min_sync(all, i) + int(__reduce_xor_sync(all, unsigned(i)));
  asm volatile("{ .reg .pred p; elect.sync _|p, %1; selp.s32 %0, 1, 0, p; }" : "=r"(out[3]) : "r"(all));
  asm volatile("{ .reg .pred q;\n\t shfl.sync.bfly.b32 %0|q, %1, 1, 31, -1;\n\t @!q mov.b32 %0, 0; }"
               : "=r"(out[4]) : "r"(i));
  __syncwarp();
  out[5] = int(x);
}

__global__ void barriers(int *out, int n) {
  __shared__ int s[64];
  int i = threadIdx.x;
  s[i] = i;
  __syncthreads();
  out[0] = __syncthreads_count(i > 3) + __syncthreads_and(i > 4) + __syncthreads_or(i > 5);
  asm volatile("barrier.sync %0, %1;" ::"r"(1 + (n & 1)), "n"(64));
  asm volatile("bar.sync 3, 64;\n\tbar.arrive 4, 64;\n\tbarrier.sync.aligned 5;");
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;");
  __threadfence();
  __threadfence_block();
  __threadfence_system();
  asm volatile("fence.proxy.async.shared::cta;\n\tfence.acq_rel.cluster;");
  __nanosleep(100);
  asm volatile("griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;");
  out[1] = s[63 - i] + clock() + int(clock64()) + warpSize;
  unsigned lane, warp, eq, size;
  asm("mov.u32 %0, %%laneid;\n\tmov.u32 %1, %%warpid;\n\tmov.u32 %2, %%lanemask_eq;\n\tmov.u32 %3, %%dynamic_smem_size;"
      : "=r"(lane), "=r"(warp), "=r"(eq), "=r"(size));
  asm("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(out[2]));
  out[3] = lane + warp + eq + size + gridDim.z + blockIdx.y + blockDim.z + threadIdx.z;
}
