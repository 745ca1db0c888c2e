// Graphs: a part of driver.c. A graph is a list of calls, which launching it makes; one that is instantiated is a copy.
// While a stream is captured, what is asked for on it becomes a node instead, after the one before it.

struct node {
  CUgraphNodeType type;
  struct graph *graph;
  struct node *next, *original;    // original: in the graph that this is a copy of
  struct node **after;             // what it depends on
  size_t afters;
  int is_disabled, round;          // round: the last launch in which it was done
  struct launch how;               // of kernels, with their parameters
  void *function;
  char *bytes;
  union {
    CUDA_MEMCPY3D copy;
    CUDA_MEMSET_NODE_PARAMS fill;
    CUDA_HOST_NODE_PARAMS host;
    struct graph *child;
    CUevent event;
  };
};
struct graph { struct node *first, *last; size_t count; int round; };
struct capture { struct graph *graph; int is_active; };

static struct graph *captured_by(CUstream stream) {
  struct capture *capture = (uintptr_t)stream > 2 ? ((struct stream *)stream)->capture : NULL;
  return capture && capture->is_active ? capture->graph : NULL;
}
static CUresult add_node(CUgraphNode *made, CUgraph graph, const CUgraphNode *after, size_t afters, struct node content) {
  struct graph *g = (struct graph *)graph;
  if (!g) return CUDA_ERROR_INVALID_VALUE;
  struct node *node = malloc(sizeof *node);
  *node = content;
  node->graph = g;
  node->next = NULL;
  node->after = malloc((afters + 1) * sizeof *node->after);
  node->afters = afters;
  if (afters) memcpy(node->after, after, afters * sizeof *node->after);
  *(g->last ? &g->last->next : &g->first) = node;
  g->last = node;
  g->count++;
  if (made) *made = (CUgraphNode)node;
  return OK;
}
// What was asked for on a stream that is captured becomes a node.
static CUresult capture_node(struct graph *graph, struct node content) {
  CUgraphNode before = (CUgraphNode)graph->last;
  return add_node(NULL, (CUgraph)graph, &before, before != NULL, content);
}
static CUresult capture_copy(struct graph *graph, const CUDA_MEMCPY3D *box) {
  return capture_node(graph, (struct node){.type = CU_GRAPH_NODE_TYPE_MEMCPY, .copy = *box});
}
static CUresult capture_fill(struct graph *graph, CUDA_MEMSET_NODE_PARAMS fill) {
  return capture_node(graph, (struct node){.type = CU_GRAPH_NODE_TYPE_MEMSET, .fill = fill});
}
static CUresult capture_launch(struct graph *graph, const struct launch *how, struct function *f, char *bytes) {
  return capture_node(graph, (struct node){.type = CU_GRAPH_NODE_TYPE_KERNEL, .how = *how, .function = f, .bytes = bytes});
}
API cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data) {
  READY;
  struct graph *graph = captured_by(stream);
  if (graph) return capture_node(graph, (struct node){.type = CU_GRAPH_NODE_TYPE_HOST, .host = {function, data}});
  function(data);
  return OK;
}
static CUresult do_node(struct node *node);
static CUresult do_graph(struct graph *graph) {
  READY;
  graph->round++;
  for (struct node *node = graph->first; node; node = node->next) {
    CUresult failed = do_node(node);
    if (failed) return failed;
  }
  return OK;
}
static CUresult do_node(struct node *node) {
  if (node->round == node->graph->round) return OK;
  node->round = node->graph->round;
  for (size_t i = 0; i < node->afters; i++) {
    CUresult failed = do_node(node->after[i]);
    if (failed) return failed;
  }
  if (node->is_disabled) return OK;
  switch (node->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return send_launch(&node->how, node->function, node->bytes);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return copy_box(&node->copy);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      CUDA_MEMSET_NODE_PARAMS *f = &node->fill;
      return f->elementSize == 4   ? cuMemsetD2D32(f->dst, f->pitch, f->value, f->width, f->height)
             : f->elementSize == 2 ? cuMemsetD2D16(f->dst, f->pitch, (unsigned short)f->value, f->width, f->height)
                                   : cuMemsetD2D8(f->dst, f->pitch, (unsigned char)f->value, f->width, f->height);
    }
    case CU_GRAPH_NODE_TYPE_HOST: node->host.fn(node->host.userData); return OK;
    case CU_GRAPH_NODE_TYPE_GRAPH: return do_graph(node->child);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return cuEventRecord(node->event, NULL);
    default: return OK;
  }
}
static struct graph *copy_graph(const struct graph *from) {
  struct graph *made = calloc(1, sizeof *made);
  for (struct node *node = from->first; node; node = node->next) {
    add_node(NULL, (CUgraph)made, (CUgraphNode *)node->after, node->afters, *node);
    made->last->original = node;
    made->last->round = 0;
    if (node->type == CU_GRAPH_NODE_TYPE_GRAPH) made->last->child = copy_graph(node->child);
    if (node->bytes) {
      uint32_t size = ((struct function *)node->function)->info.bytes;
      made->last->bytes = memcpy(malloc(size + 1), node->bytes, size);
    }
  }
  for (struct node *node = made->first; node; node = node->next)
    for (size_t i = 0; i < node->afters; i++)
      for (struct node *other = made->first; other; other = other->next)
        if (other->original == node->after[i]) { node->after[i] = other; break; }
  return made;
}
static void free_graph(struct graph *graph) {
  for (struct node *node = graph->first, *next; node; node = next) {
    next = node->next;
    if (node->type == CU_GRAPH_NODE_TYPE_GRAPH) free_graph(node->child);
    free(node->bytes);
    free(node->after);
    free(node);
  }
  free(graph);
}
static struct node *copy_in(CUgraphExec made, CUgraphNode of) {
  for (struct node *node = ((struct graph *)made)->first; node; node = node->next)
    if (node->original == (struct node *)of) return node;
  return NULL;
}

API cuGraphCreate(CUgraph *graph, unsigned flags) { READY; *graph = (CUgraph)calloc(1, sizeof(struct graph)); return OK; }
API cuGraphDestroy(CUgraph graph) { if (graph) free_graph((struct graph *)graph); return OK; }
API cuGraphClone(CUgraph *made, CUgraph from) { *made = (CUgraph)copy_graph((struct graph *)from); return OK; }
API cuGraphNodeFindInClone(CUgraphNode *found, CUgraphNode node, CUgraph clone) {
  *found = (CUgraphNode)copy_in((CUgraphExec)clone, node);
  return *found ? OK : CUDA_ERROR_INVALID_VALUE;
}
static CUresult set_kernel(struct node *node, const CUDA_KERNEL_NODE_PARAMS *p) {
  struct launch how = {0, {p->gridDimX, p->gridDimY, p->gridDimZ}, {p->blockDimX, p->blockDimY, p->blockDimZ}, p->sharedMemBytes,
                       {0, 0, 0}, 0};
  char *bytes;
  CUresult failed = pack_launch(&how, (void *)p->func, p->kernelParams, p->extra, &bytes);
  if (failed) return failed;
  free(node->bytes);
  node->type = CU_GRAPH_NODE_TYPE_KERNEL;
  node->how = how;
  node->function = (void *)p->func;
  node->bytes = bytes;
  return OK;
}
static CUresult add_kernel(CUgraphNode *made, CUgraph graph, const CUgraphNode *after, size_t n, const CUDA_KERNEL_NODE_PARAMS *p) {
  struct node node = {0};
  CUresult failed = set_kernel(&node, p);
  return failed ? failed : add_node(made, graph, after, n, node);
}
API cuGraphAddKernelNode_v2(CUgraphNode *made, CUgraph graph, const CUgraphNode *after, size_t n, const CUDA_KERNEL_NODE_PARAMS *p) {
  return add_kernel(made, graph, after, n, p);
}
API cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p) { return set_kernel((struct node *)node, p); }
API cuGraphExecKernelNodeSetParams_v2(CUgraphExec graph, CUgraphNode of, const CUDA_KERNEL_NODE_PARAMS *p) {
  struct node *node = copy_in(graph, of);
  return node ? set_kernel(node, p) : CUDA_ERROR_INVALID_VALUE;
}
// For each other kind: its node, and new parameters of one in a graph and in an instantiated one.
#define KIND(Kind, KIND_OF, member, Content, CONTEXT) \
  API cuGraphAdd##Kind##Node(CUgraphNode *made, CUgraph graph, const CUgraphNode *after, size_t n, const Content *p CONTEXT) { \
    struct node node = {.type = KIND_OF, .member = *p}; \
    return add_node(made, graph, after, n, node); \
  } \
  API cuGraph##Kind##NodeGetParams(CUgraphNode node, Content *p) { *p = ((struct node *)node)->member; return OK; } \
  API cuGraph##Kind##NodeSetParams(CUgraphNode node, const Content *p) { ((struct node *)node)->member = *p; return OK; } \
  API cuGraphExec##Kind##NodeSetParams(CUgraphExec graph, CUgraphNode of, const Content *p CONTEXT) { \
    struct node *node = copy_in(graph, of); \
    if (!node) return CUDA_ERROR_INVALID_VALUE; \
    node->member = *p; \
    return OK; \
  }
#define IN_CONTEXT , CUcontext context
KIND(Memcpy, CU_GRAPH_NODE_TYPE_MEMCPY, copy, CUDA_MEMCPY3D, IN_CONTEXT)
KIND(Memset, CU_GRAPH_NODE_TYPE_MEMSET, fill, CUDA_MEMSET_NODE_PARAMS, IN_CONTEXT)
KIND(Host, CU_GRAPH_NODE_TYPE_HOST, host, CUDA_HOST_NODE_PARAMS, )
API cuGraphAddChildGraphNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *after, size_t n, CUgraph child) {
  struct node node = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = copy_graph((struct graph *)child)};
  return add_node(made, graph, after, n, node);
}
API cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *child) { *child = (CUgraph)((struct node *)node)->child; return OK; }
API cuGraphAddEmptyNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *after, size_t n) {
  return add_node(made, graph, after, n, (struct node){.type = CU_GRAPH_NODE_TYPE_EMPTY});
}
API cuGraphAddEventRecordNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *after, size_t n, CUevent event) {
  return add_node(made, graph, after, n, (struct node){.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .event = event});
}
API cuGraphAddEventWaitNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *after, size_t n, CUevent event) {
  return add_node(made, graph, after, n, (struct node){.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .event = event});
}
static CUresult add_edges(const CUgraphNode *from, const CUgraphNode *to, size_t count) {
  for (size_t i = 0; i < count; i++) {
    struct node *node = (struct node *)to[i];
    node->after = realloc(node->after, (node->afters + 1) * sizeof *node->after);
    node->after[node->afters++] = (struct node *)from[i];
  }
  return OK;
}
#undef cuGraphAddDependencies
#if CUDA_VERSION >= 12030
API cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data, size_t n) {
  return add_edges(from, to, n);
}
#endif
#if CUDA_VERSION < 13000
API cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n) { return add_edges(from, to, n); }
#endif
API cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type) { *type = ((struct node *)node)->type; return OK; }
API cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  struct graph *g = (struct graph *)graph;
  size_t i = 0;
  if (nodes)
    for (struct node *node = g->first; node && i < *count; node = node->next) nodes[i++] = (CUgraphNode)node;
  *count = g->count;
  return OK;
}
API cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  size_t i = 0;
  for (struct node *node = ((struct graph *)graph)->first; node; node = node->next)
    if (!node->afters) {
      if (nodes && i < *count) nodes[i] = (CUgraphNode)node;
      i++;
    }
  *count = i;
  return OK;
}
API cuGraphNodeSetEnabled(CUgraphExec graph, CUgraphNode of, unsigned enabled) {
  struct node *node = copy_in(graph, of);
  if (!node) return CUDA_ERROR_INVALID_VALUE;
  node->is_disabled = !enabled;
  return OK;
}
API cuGraphNodeGetEnabled(CUgraphExec graph, CUgraphNode of, unsigned *enabled) {
  struct node *node = copy_in(graph, of);
  if (!node) return CUDA_ERROR_INVALID_VALUE;
  *enabled = !node->is_disabled;
  return OK;
}
API cuGraphInstantiateWithFlags(CUgraphExec *made, CUgraph graph, unsigned long long flags) {
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  *made = (CUgraphExec)copy_graph((struct graph *)graph);
  return OK;
}
API cuGraphInstantiateWithParams(CUgraphExec *made, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *how) {
  how->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return cuGraphInstantiateWithFlags(made, graph, 0);
}
API cuGraphExecDestroy(CUgraphExec graph) { if (graph) free_graph((struct graph *)graph); return OK; }
API cuGraphUpload(CUgraphExec graph, CUstream stream) { return OK; }
API cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  struct graph *capturing = captured_by(stream);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  if (capturing)
    return capture_node(capturing, (struct node){.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = copy_graph((struct graph *)graph)});
  return do_graph((struct graph *)graph);
}
API cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info) {
  struct graph *old = (struct graph *)exec, *made = copy_graph((struct graph *)graph);
  int is_same = old->count == made->count;
  for (struct node *a = old->first, *b = made->first; is_same && a; a = a->next, b = b->next)
    is_same = a->type == b->type && a->afters == b->afters;
  if (info) *info = (CUgraphExecUpdateResultInfo){is_same ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED};
  if (is_same) {
    for (struct node *a = old->first, *b = made->first; a; a = a->next, b = b->next) b->original = a->original, b->is_disabled = a->is_disabled;
    struct graph swapped = *old;
    *old = *made;
    *made = swapped;
    for (struct node *node = old->first; node; node = node->next) node->graph = old;
  }
  free_graph(made);
  return is_same ? OK : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

static CUresult begin_capture(CUstream stream, struct graph *graph) {
  READY;
  if ((uintptr_t)stream <= 2) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (captured_by(stream)) return CUDA_ERROR_ILLEGAL_STATE;
  struct capture *capture = malloc(sizeof *capture);  // kept: streams and events that joined it look at it
  *capture = (struct capture){graph, 1};
  ((struct stream *)stream)->capture = capture;
  return OK;
}
API cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) { return begin_capture(stream, calloc(1, sizeof(struct graph))); }
API cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  *graph = (CUgraph)captured_by(stream);
  if (!*graph) return CUDA_ERROR_ILLEGAL_STATE;
  ((struct stream *)stream)->capture->is_active = 0;
  return OK;
}
API cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  *status = captured_by(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return OK;
}
