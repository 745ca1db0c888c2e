#pragma once
// What the programs share that time mbarriers and clusters.
#include "clocked.cuh"

DEV u32 shared_address(const void *at) { return (u32)__cvta_generic_to_shared(at); }
DEV void init(u32 barrier, int count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
DEV void arrive(u32 barrier) {
    asm volatile("{.reg .b64 s; mbarrier.arrive.shared.b64 s, [%0];}" ::"r"(barrier) : "memory");
}
DEV u32 peer_of(u32 at, u32 rank) {
    u32 found;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(found) : "r"(at), "r"(rank));
    return found;
}
// Launches a kernel of 8 blocks in clusters of so many.
template <class... Parameters, class... Arguments>
static void launch_in_clusters(void (*kernel)(Parameters...), int size, int threads, Arguments... arguments) {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(8), config.blockDim = dim3(threads);
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {(u32)size, 1, 1};
    config.attrs = &attribute, config.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&config, kernel, arguments...));
}
