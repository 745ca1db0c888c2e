/* What device code reads of the driver's header: which release it is of, that of NVRTC, and a type. */
#pragma once
#ifndef CUDA_VERSION
#define CUDA_VERSION (__CUDACC_VER_MAJOR__ * 1000 + __CUDACC_VER_MINOR__ * 10)
#endif
typedef struct CUtensorMap_st {
    alignas(__CUDACC_VER_MAJOR__ < 13 ? 64 : 128) unsigned long long opaque[16];
} CUtensorMap;
