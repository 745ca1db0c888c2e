// What CuPy calls of its module of CUDA's runtime, `cupy_backends.cuda.api.runtime`, which has the static runtime in it: the
// functions with the same names on the runtime in this library. memsim/driver/in_python puts them in its place.
#include <cuda_runtime_api.h>
#include <stdint.h>

#define FROM_PYTHON __attribute__((weak)) extern
typedef void PyObject;
FROM_PYTHON char _Py_NoneStruct;
FROM_PYTHON void Py_IncRef(PyObject *);
FROM_PYTHON PyObject *Py_BuildValue(const char *, ...);

// CuPy's own `check_status`, which raises its error for a number; the other side sets it.
__attribute__((visibility("default"))) PyObject *(*memsim_cupy_raise)(int, int);

static int failed(int error) {
  if (error) memsim_cupy_raise(error, 0);
  return error;
}
static PyObject *none(int error) {
  if (failed(error)) return 0;
  Py_IncRef(&_Py_NoneStruct);
  return &_Py_NoneStruct;
}

// CuPy passes pointers and handles as numbers.
#pragma GCC diagnostic ignored "-Wint-conversion"
#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"

// DOn: a call with n arguments; GETn: one whose first argument is where the result goes, `wrong` if it fails.
#define SKIP int skip
#define DO0(name, call) static PyObject *name(SKIP) { return none(call()); }
#define DO1(name, call, A) static PyObject *name(A a, SKIP) { return none(call(a)); }
#define DO2(name, call, A, B) static PyObject *name(A a, B b, SKIP) { return none(call(a, b)); }
#define DO3(name, call, A, B, C) static PyObject *name(A a, B b, C c, SKIP) { return none(call(a, b, c)); }
#define DO4(name, call, A, B, C, D) static PyObject *name(A a, B b, C c, D d, SKIP) { return none(call(a, b, c, d)); }
#define DO5(name, call, A, B, C, D, E) \
  static PyObject *name(A a, B b, C c, D d, E e, SKIP) { return none(call(a, b, c, d, e)); }
#define GET0(name, call, wrong, R) static R name(SKIP) { R out = 0; return failed(call(&out)) ? wrong : out; }
#define GET1(name, call, wrong, R, A) static R name(A a, SKIP) { R out = 0; return failed(call(&out, a)) ? wrong : out; }
#define GET2(name, call, wrong, R, A, B) \
  static R name(A a, B b, SKIP) { R out = 0; return failed(call(&out, a, b)) ? wrong : out; }

int cudaProfilerStart(void), cudaProfilerStop(void);  // of cuda_profiler_api.h, which not every wheel has

static PyObject *cupy_ensure_context(void) { return none(cudaFree(0)); }
static PyObject *cupy_memGetInfo(SKIP) {
  size_t available, all;
  return failed(cudaMemGetInfo(&available, &all)) ? 0 : Py_BuildValue("(nn)", available, all);
}
static PyObject *cupy_getDeviceProperties(int device, SKIP) {
  struct cudaDeviceProp p;
  if (failed(cudaGetDeviceProperties(&p, device))) return 0;
  return Py_BuildValue("{s:y,s:n,s:n,s:i,s:i,s:i,s:i,s:i,s:i}", "name", p.name, "totalGlobalMem", p.totalGlobalMem,
                       "sharedMemPerBlock", p.sharedMemPerBlock, "major", p.major, "minor", p.minor, "warpSize", p.warpSize,
                       "maxThreadsPerBlock", p.maxThreadsPerBlock, "multiProcessorCount", p.multiProcessorCount,
                       "l2CacheSize", p.l2CacheSize);
}
static int cupy_pointerGetMemoryType(intptr_t pointer, SKIP) {
  struct cudaPointerAttributes found;
  return failed(cudaPointerGetAttributes(&found, (void *)pointer)) ? -1 : (int)found.type;
}
// Those with a last argument that may be left out: what it says changes nothing here.
static PyObject *cupy_streamWaitEvent(intptr_t stream, intptr_t event, SKIP, void *flags) {
  return none(cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0));
}
static PyObject *cupy_streamBeginCapture(intptr_t stream, SKIP, void *mode) {
  return none(cudaStreamBeginCapture((cudaStream_t)stream, cudaStreamCaptureModeRelaxed));
}
static intptr_t cupy_mallocManaged(size_t bytes, SKIP, void *flags) {
  void *made = 0;
  return failed(cudaMallocManaged(&made, bytes, cudaMemAttachGlobal)) ? 0 : (intptr_t)made;
}
static intptr_t cupy_streamEndCapture(intptr_t stream, SKIP) {
  cudaGraph_t made = 0;
  return failed(cudaStreamEndCapture((cudaStream_t)stream, &made)) ? 0 : (intptr_t)made;
}
static intptr_t cupy_graphInstantiate(intptr_t graph, SKIP) {
  cudaGraphExec_t made = 0;
  return failed(cudaGraphInstantiateWithFlags(&made, (cudaGraph_t)graph, 0)) ? 0 : (intptr_t)made;
}
static unsigned int cupy_streamGetFlags(intptr_t stream, SKIP) {
  unsigned int flags = 0;
  return failed(cudaStreamGetFlags((cudaStream_t)stream, &flags)) ? 0 : flags;
}
static int cupy_streamGetPriority(intptr_t stream, SKIP) {
  int priority = 0;
  return failed(cudaStreamGetPriority((cudaStream_t)stream, &priority)) ? 0 : priority;
}
static int cupy_streamIsCapturing(intptr_t stream, SKIP) {
  enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return failed(cudaStreamIsCapturing((cudaStream_t)stream, &status)) ? -1 : status != cudaStreamCaptureStatusNone;
}

#define FUNCTIONS(DO, GET) \
  DO(0, deviceSynchronize, cudaDeviceSynchronize) \
  DO(0, profilerStart, cudaProfilerStart) \
  DO(0, profilerStop, cudaProfilerStop) \
  DO(1, setDevice, cudaSetDevice, int) \
  DO(1, free, cudaFree, intptr_t) \
  DO(1, freeHost, cudaFreeHost, intptr_t) \
  DO(1, eventDestroy, cudaEventDestroy, intptr_t) \
  DO(1, eventQuery, cudaEventQuery, intptr_t) \
  DO(1, eventSynchronize, cudaEventSynchronize, intptr_t) \
  DO(1, streamDestroy, cudaStreamDestroy, intptr_t) \
  DO(1, streamQuery, cudaStreamQuery, intptr_t) \
  DO(1, streamSynchronize, cudaStreamSynchronize, intptr_t) \
  DO(2, eventRecord, cudaEventRecord, intptr_t, intptr_t) \
  DO(2, freeAsync, cudaFreeAsync, intptr_t, intptr_t) \
  DO(1, graphDestroy, cudaGraphDestroy, intptr_t) \
  DO(1, graphExecDestroy, cudaGraphExecDestroy, intptr_t) \
  DO(2, graphLaunch, cudaGraphLaunch, intptr_t, intptr_t) \
  DO(2, graphUpload, cudaGraphUpload, intptr_t, intptr_t) \
  DO(1, hostUnregister, cudaHostUnregister, intptr_t) \
  DO(2, deviceSetLimit, cudaDeviceSetLimit, int, size_t) \
  DO(3, hostRegister, cudaHostRegister, intptr_t, size_t, unsigned int) \
  DO(5, memcpyPeer, cudaMemcpyPeer, intptr_t, int, intptr_t, int, size_t) \
  DO(3, memset, cudaMemset, intptr_t, int, size_t) \
  DO(4, memsetAsync, cudaMemsetAsync, intptr_t, int, size_t, intptr_t) \
  DO(4, memcpy, cudaMemcpy, intptr_t, intptr_t, size_t, int) \
  DO(5, memcpyAsync, cudaMemcpyAsync, intptr_t, intptr_t, size_t, int, intptr_t) \
  GET(0, driverGetVersion, cudaDriverGetVersion, -1, int) \
  GET(0, getDevice, cudaGetDevice, -1, int) \
  GET(0, getDeviceCount, cudaGetDeviceCount, -1, int) \
  GET(0, eventCreate, cudaEventCreate, 0, intptr_t) \
  GET(0, streamCreate, cudaStreamCreate, 0, intptr_t) \
  GET(1, eventCreateWithFlags, cudaEventCreateWithFlags, 0, intptr_t, unsigned int) \
  GET(1, streamCreateWithFlags, cudaStreamCreateWithFlags, 0, intptr_t, unsigned int) \
  GET(1, deviceGetLimit, cudaDeviceGetLimit, 0, size_t, int) \
  GET(2, streamCreateWithPriority, cudaStreamCreateWithPriority, 0, intptr_t, unsigned int, int) \
  GET(1, malloc, cudaMalloc, 0, intptr_t, size_t) \
  GET(2, mallocAsync, cudaMallocAsync, 0, intptr_t, size_t, intptr_t) \
  GET(2, hostAlloc, cudaHostAlloc, 0, intptr_t, size_t, unsigned int) \
  GET(2, deviceGetAttribute, cudaDeviceGetAttribute, -1, int, int, int) \
  GET(2, deviceCanAccessPeer, cudaDeviceCanAccessPeer, -1, int, int, int) \
  GET(2, eventElapsedTime, cudaEventElapsedTime, 0, float, intptr_t, intptr_t)

#define DEFINE_DO(n, name, ...) DO##n(cupy_##name, __VA_ARGS__)
#define DEFINE_GET(n, name, ...) GET##n(cupy_##name, __VA_ARGS__)
FUNCTIONS(DEFINE_DO, DEFINE_GET)

#define LIST_DO(n, name, function, ...) {#name, "PyObject *", #__VA_ARGS__, cupy_##name},
#define LIST_GET(n, name, function, wrong, ...) {#name, "", #__VA_ARGS__, cupy_##name},
// Name, what is returned (empty: the first type), the types of the arguments as Cython writes them, the function; whether a
// last argument may be left out.
__attribute__((visibility("default"))) const struct {
  const char *name, *returned, *types;
  void *function;
  int has_optional;
} memsim_cupy_functions[] = {
    FUNCTIONS(LIST_DO, LIST_GET)
    {"_ensure_context", "PyObject *", "void", cupy_ensure_context},
    {"memGetInfo", "PyObject *", "", cupy_memGetInfo},
    {"getDeviceProperties", "PyObject *", "int", cupy_getDeviceProperties},
    {"pointerGetMemoryType", "", "int, intptr_t", cupy_pointerGetMemoryType},
    {"streamIsCapturing", "", "int, intptr_t", cupy_streamIsCapturing},
    {"streamGetFlags", "", "unsigned int, intptr_t", cupy_streamGetFlags},
    {"streamGetPriority", "", "int, intptr_t", cupy_streamGetPriority},
    {"streamEndCapture", "", "intptr_t, intptr_t", cupy_streamEndCapture},
    {"graphInstantiate", "", "intptr_t, intptr_t", cupy_graphInstantiate},
    {"streamWaitEvent", "PyObject *", "intptr_t, intptr_t", cupy_streamWaitEvent, 1},
    {"streamBeginCapture", "PyObject *", "intptr_t", cupy_streamBeginCapture, 1},
    {"mallocManaged", "", "intptr_t, size_t", cupy_mallocManaged, 1},
    {0},
};
