// Graphs: a part of runtime.c, on top of the driver's.

API cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) { START; ANSWER(cuStreamBeginCapture(stream, (CUstreamCaptureMode)mode)); }
API cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) { START; ANSWER(cuStreamEndCapture(stream, graph)); }
API cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status) {
  ANSWER(cuStreamIsCapturing(stream, (CUstreamCaptureStatus *)status));
}
static int capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *number, cudaGraph_t *graph,
                        const cudaGraphNode_t **nodes, size_t *count) {
  if (nodes) *nodes = NULL;
  if (count) *count = 0;
  if (graph) *graph = NULL;
  if (number) *number = 1;
  return (int)cuStreamIsCapturing(stream, (CUstreamCaptureStatus *)status);
}
#if CUDART_VERSION >= 13000
API cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *number,
                             cudaGraph_t *graph, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges, size_t *count) {
  ANSWER(capture_info(stream, status, number, graph, nodes, count));
}
#else
API cudaStreamGetCaptureInfo_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *number,
                                cudaGraph_t *graph, const cudaGraphNode_t **nodes, size_t *count) {
  ANSWER(capture_info(stream, status, number, graph, nodes, count));
}
#if CUDART_VERSION >= 12030
API cudaStreamGetCaptureInfo_v3(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *number,
                                cudaGraph_t *graph, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges, size_t *count) {
  ANSWER(capture_info(stream, status, number, graph, nodes, count));
}
#endif
#endif
API cudaGraphCreate(cudaGraph_t *graph, unsigned flags) { START; ANSWER(cuGraphCreate(graph, flags)); }
API cudaGraphDestroy(cudaGraph_t graph) { ANSWER(cuGraphDestroy(graph)); }
API cudaGraphClone(cudaGraph_t *made, cudaGraph_t from) { ANSWER(cuGraphClone(made, from)); }
API cudaGraphNodeFindInClone(cudaGraphNode_t *found, cudaGraphNode_t node, cudaGraph_t clone) { ANSWER(cuGraphNodeFindInClone(found, node, clone)); }

// What the driver's node is made of.
static int kernel_of(CUDA_KERNEL_NODE_PARAMS *made, const struct cudaKernelNodeParams *p) {
  CUfunction f;
  int failed = function_of(p->func, &f);
  *made = (CUDA_KERNEL_NODE_PARAMS){f, p->gridDim.x, p->gridDim.y, p->gridDim.z, p->blockDim.x, p->blockDim.y, p->blockDim.z,
                                    p->sharedMemBytes, p->kernelParams, p->extra};
  return failed;
}
static CUDA_MEMSET_NODE_PARAMS fill_of(const struct cudaMemsetParams *p) {
  return (CUDA_MEMSET_NODE_PARAMS){DEVICE(p->dst), p->pitch, p->value, p->elementSize, p->width, p->height};
}
static CUDA_HOST_NODE_PARAMS host_of(const struct cudaHostNodeParams *p) { return (CUDA_HOST_NODE_PARAMS){.fn = p->fn, .userData = p->userData}; }
static CUDA_MEMCPY3D box_of_bytes(void *to, const void *from, size_t bytes) {
  CUDA_MEMCPY3D box = box_of(to, NULL, from, NULL);
  box.WidthInBytes = bytes;
  return box;
}
#define AFTER cudaGraphNode_t *made, cudaGraph_t graph, const cudaGraphNode_t *after, size_t n
API cudaGraphAddKernelNode(AFTER, const struct cudaKernelNodeParams *p) {
  CUDA_KERNEL_NODE_PARAMS how;
  int failed = kernel_of(&how, p);
  ANSWER(failed ? failed : (int)cuGraphAddKernelNode(made, graph, after, n, &how));
}
API cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const struct cudaKernelNodeParams *p) {
  CUDA_KERNEL_NODE_PARAMS how;
  int failed = kernel_of(&how, p);
  ANSWER(failed ? failed : (int)cuGraphKernelNodeSetParams(node, &how));
}
API cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaKernelNodeParams *p) {
  CUDA_KERNEL_NODE_PARAMS how;
  int failed = kernel_of(&how, p);
  ANSWER(failed ? failed : (int)cuGraphExecKernelNodeSetParams(exec, node, &how));
}
API cudaGraphAddMemcpyNode(AFTER, const struct cudaMemcpy3DParms *p) {
  CUDA_MEMCPY3D box = box_of_parameters(p);
  ANSWER(cuGraphAddMemcpyNode(made, graph, after, n, &box, NULL));
}
API cudaGraphAddMemcpyNode1D(AFTER, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  CUDA_MEMCPY3D box = box_of_bytes(to, from, bytes);
  ANSWER(cuGraphAddMemcpyNode(made, graph, after, n, &box, NULL));
}
API cudaGraphAddMemcpyNodeToSymbol(AFTER, const void *symbol, const void *from, size_t bytes, size_t offset, enum cudaMemcpyKind kind) {
  CUdeviceptr at;
  size_t size;
  int failed = symbol_at(symbol, &at, &size);
  if (failed) ANSWER(failed);
  CUDA_MEMCPY3D box = box_of_bytes((char *)(uintptr_t)at + offset, from, bytes);
  ANSWER(cuGraphAddMemcpyNode(made, graph, after, n, &box, NULL));
}
API cudaGraphAddMemcpyNodeFromSymbol(AFTER, void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind) {
  CUdeviceptr at;
  size_t size;
  int failed = symbol_at(symbol, &at, &size);
  if (failed) ANSWER(failed);
  CUDA_MEMCPY3D box = box_of_bytes(to, (char *)(uintptr_t)at + offset, bytes);
  ANSWER(cuGraphAddMemcpyNode(made, graph, after, n, &box, NULL));
}
API cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const struct cudaMemcpy3DParms *p) {
  CUDA_MEMCPY3D box = box_of_parameters(p);
  ANSWER(cuGraphMemcpyNodeSetParams(node, &box));
}
API cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  CUDA_MEMCPY3D box = box_of_bytes(to, from, bytes);
  ANSWER(cuGraphMemcpyNodeSetParams(node, &box));
}
API cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaMemcpy3DParms *p) {
  CUDA_MEMCPY3D box = box_of_parameters(p);
  ANSWER(cuGraphExecMemcpyNodeSetParams(exec, node, &box, NULL));
}
API cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void *to, const void *from, size_t bytes,
                                       enum cudaMemcpyKind kind) {
  CUDA_MEMCPY3D box = box_of_bytes(to, from, bytes);
  ANSWER(cuGraphExecMemcpyNodeSetParams(exec, node, &box, NULL));
}
API cudaGraphAddMemsetNode(AFTER, const struct cudaMemsetParams *p) {
  CUDA_MEMSET_NODE_PARAMS fill = fill_of(p);
  ANSWER(cuGraphAddMemsetNode(made, graph, after, n, &fill, NULL));
}
API cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const struct cudaMemsetParams *p) {
  CUDA_MEMSET_NODE_PARAMS fill = fill_of(p);
  ANSWER(cuGraphMemsetNodeSetParams(node, &fill));
}
API cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaMemsetParams *p) {
  CUDA_MEMSET_NODE_PARAMS fill = fill_of(p);
  ANSWER(cuGraphExecMemsetNodeSetParams(exec, node, &fill, NULL));
}
API cudaGraphAddHostNode(AFTER, const struct cudaHostNodeParams *p) {
  CUDA_HOST_NODE_PARAMS host = host_of(p);
  ANSWER(cuGraphAddHostNode(made, graph, after, n, &host));
}
API cudaGraphHostNodeSetParams(cudaGraphNode_t node, const struct cudaHostNodeParams *p) {
  CUDA_HOST_NODE_PARAMS host = host_of(p);
  ANSWER(cuGraphHostNodeSetParams(node, &host));
}
API cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaHostNodeParams *p) {
  CUDA_HOST_NODE_PARAMS host = host_of(p);
  ANSWER(cuGraphExecHostNodeSetParams(exec, node, &host));
}
API cudaGraphAddChildGraphNode(AFTER, cudaGraph_t child) { ANSWER(cuGraphAddChildGraphNode(made, graph, after, n, child)); }
API cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *child) { ANSWER(cuGraphChildGraphNodeGetGraph(node, child)); }
API cudaGraphAddEmptyNode(AFTER) { ANSWER(cuGraphAddEmptyNode(made, graph, after, n)); }
API cudaGraphAddEventRecordNode(AFTER, cudaEvent_t event) { ANSWER(cuGraphAddEventRecordNode(made, graph, after, n, event)); }
API cudaGraphAddEventWaitNode(AFTER, cudaEvent_t event) { ANSWER(cuGraphAddEventWaitNode(made, graph, after, n, event)); }
#if CUDART_VERSION >= 13000
API cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, const cudaGraphEdgeData *data,
                             size_t n) {
  ANSWER(cuGraphAddDependencies(graph, from, to, NULL, n));
}
#else
API cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t n) {
  ANSWER(cuGraphAddDependencies(graph, from, to, n));
}
#endif
API cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type) { ANSWER(cuGraphNodeGetType(node, (CUgraphNodeType *)type)); }
API cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) { ANSWER(cuGraphGetNodes(graph, nodes, count)); }
API cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) { ANSWER(cuGraphGetRootNodes(graph, nodes, count)); }
API cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled) { ANSWER(cuGraphNodeSetEnabled(exec, node, enabled)); }
API cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned *enabled) { ANSWER(cuGraphNodeGetEnabled(exec, node, enabled)); }
#undef cudaGraphInstantiate
API cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long flags) {
  ANSWER(cuGraphInstantiateWithFlags(made, graph, flags));
}
API cudaGraphInstantiateWithFlags(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long flags) {
  ANSWER(cuGraphInstantiateWithFlags(made, graph, flags));
}
API cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) { return cudaSuccess; }
API cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) { START; ANSWER(cuGraphLaunch(exec, stream)); }
API cudaGraphExecDestroy(cudaGraphExec_t exec) { ANSWER(cuGraphExecDestroy(exec)); }
API cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info) {
  ANSWER(cuGraphExecUpdate(exec, graph, (CUgraphExecUpdateResultInfo *)info));
}
