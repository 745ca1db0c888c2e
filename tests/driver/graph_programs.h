// Programs with graphs: a part of programs.cu.

__global__ void plus(int *a, int n) { a[threadIdx.x] += n; }
static void count_call(void *calls) { ++*(int *)calls; }
static int captured() {
  int *a, back[32], calls = 0;
  cudaStream_t one, other;
  cudaEvent_t forked, joined;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  size_t nodes;
  CHECK(cudaMalloc(&a, sizeof back));
  CHECK(cudaMemset(a, 1, sizeof back));
  CHECK(cudaStreamCreate(&one));
  CHECK(cudaStreamCreate(&other));
  CHECK(cudaEventCreate(&forked));
  CHECK(cudaEventCreate(&joined));
  if (cudaStreamEndCapture(one, &graph) != cudaErrorIllegalState || cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal) == cudaSuccess) return 1;
  CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
  CHECK(cudaMemsetAsync(a, 0, sizeof back, one));
  plus<<<1, 32, 0, one>>>(a, 5);
  CHECK(cudaEventRecord(forked, one));
  CHECK(cudaStreamWaitEvent(other, forked, 0));
  plus<<<1, 32, 0, other>>>(a, 2);
  CHECK(cudaEventRecord(joined, other));
  CHECK(cudaStreamWaitEvent(one, joined, 0));
  CHECK(cudaLaunchHostFunc(one, count_call, &calls));
  CHECK(cudaMemcpyAsync(back, a, sizeof back, cudaMemcpyDeviceToHost, one));
  CHECK(cudaStreamEndCapture(one, &graph));
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  if (nodes != 5 || calls) return 2;
  CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  for (int i = 0; i < 3; i++) CHECK(cudaGraphLaunch(exec, one));
  plus<<<1, 32, 0, other>>>(a, 1);  // no longer captured
  CHECK(cudaDeviceSynchronize());
  if (back[31] != 7 || calls != 3) return 3;
  CHECK(cudaMemcpy(back, a, sizeof back, cudaMemcpyDefault));
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  return back[0] == 8 ? 0 : 4;
}
static int graphs() {
  int *a, back[32], n = 3;
  cudaGraph_t graph, parent;
  cudaGraphNode_t kernel, fill, copy, child;
  cudaGraphExec_t exec, outer;
  cudaGraphExecUpdateResultInfo info;
  CHECK(cudaMalloc(&a, sizeof back));
  void *arguments[] = {&a, &n};
  cudaKernelNodeParams launch = {};
  launch.func = (void *)plus;
  launch.gridDim = 1;
  launch.blockDim = 32;
  launch.kernelParams = arguments;
  cudaMemsetParams ones = {};
  ones.dst = a;
  ones.value = 1;
  ones.elementSize = 4;
  ones.width = 32;
  ones.height = 1;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphAddKernelNode(&kernel, graph, nullptr, 0, &launch));
  CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, &kernel, 1, back, a, sizeof back, cudaMemcpyDeviceToHost));
  CHECK(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &ones));
#if CUDART_VERSION >= 13000
  CHECK(cudaGraphAddDependencies(graph, &fill, &kernel, nullptr, 1));  // added last, done first
#else
  CHECK(cudaGraphAddDependencies(graph, &fill, &kernel, 1));
#endif
  CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  n = 99;  // parameters are those of when the node was made
  CHECK(cudaGraphLaunch(exec, 0));
  if (back[7] != 4) return 1;
  n = 10;
  CHECK(cudaGraphExecKernelNodeSetParams(exec, kernel, &launch));
  CHECK(cudaGraphLaunch(exec, 0));
  if (back[7] != 11) return 2;
  n = 100;
  CHECK(cudaGraphKernelNodeSetParams(kernel, &launch));
  CHECK(cudaGraphLaunch(exec, 0));
  if (back[7] != 11) return 3;  // what is instantiated is a copy
  CHECK(cudaGraphExecUpdate(exec, graph, &info));
  CHECK(cudaGraphNodeSetEnabled(exec, fill, 0));
  CHECK(cudaGraphLaunch(exec, 0));
  if (back[7] != 111) return 4;
  CHECK(cudaGraphCreate(&parent, 0));
  CHECK(cudaGraphAddChildGraphNode(&child, parent, nullptr, 0, graph));
  CHECK(cudaGraphInstantiateWithFlags(&outer, parent, 0));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphLaunch(outer, 0));
  if (back[7] != 101) return 5;
  return cudaGraphExecUpdate(exec, parent, &info) == cudaErrorGraphExecUpdateFailure && cudaGraphLaunch(nullptr, 0) ? 0 : 6;
}
