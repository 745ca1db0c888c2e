// The way to memsim: one request at a time over a Unix socket, and the memory file that is the device's memory.
//
// A request is {u32 operation, u32 bytes} and its bytes; an answer is {i32 CUresult, u32 bytes} and its bytes.
// memsim/driver/protocol.py has the other end, and the same numbers.
#ifndef MEMSIM_CHANNEL_H
#define MEMSIM_CHANNEL_H
#include <stddef.h>
#include <stdint.h>

enum operation {
  OP_HELLO = 1,   // -> struct hello, its attributes, and the memory file
  OP_MODULE,      // an image -> u32 module
  OP_UNLOAD,      // u32 module
  OP_FUNCTION,    // u32 module, name -> struct function_info and its parameters
  OP_VARIABLE,    // u32 module, name -> u64 address, u64 bytes
  OP_ALLOCATE,    // u64 bytes, u32 kind, u32 alignment -> u64 address
  OP_FREE,        // u64 address, u64 the kinds that it may be of, a bit each
  OP_RANGE,       // u64 address -> u64 start, u64 bytes, u32 kind, u32 0
  OP_LAUNCH,      // struct launch, parameters
  OP_OCCUPANCY,   // u32 function, u32 threads, u64 dynamic shared bytes -> u32 blocks
  OP_REFUSED,     // the name of a function that is not implemented
  OP_MEMORY,      // -> u64 free, u64 total
  OP_PRODUCT,     // struct product of native/matrix.h -> the product, if it is the program's
  OP_TEXTURE,     // struct texture -> u64 handle of a texture or a surface
  OP_FORGET,      // u64 handle
  OP_VIRTUAL,     // u64 step, u64 address, u64 bytes -> u64 address
  OP_TENSOR_MAP,  // struct tensor_map, or u64 address and a map -> the map, of that address
  OP_HEAP,        // u64 bytes that kernels may allocate
  OP_RESET,       // frees everything; variables are as the code has them
};
enum virtual_step { RESERVE, GIVE_UP, TAKE, GIVE_BACK, MAP, UNMAP };

enum kind { DEVICE_MEMORY = 0, HOST_MEMORY = 1, MANAGED_MEMORY = 2 };

struct hello {
  uint64_t base, bytes;   // where the memory file is to be mapped, and how large it is
  char name[64];
  uint32_t attributes, unused;  // pairs of u32 follow: CUdevice_attribute, value
};

#define FUNCTION_ATTRIBUTES 14  // CUfunction_attribute 0 to 13

struct function_info {
  uint32_t number, parameters, bytes;   // pairs of u32 follow, for each parameter: offset, size
  int32_t attributes[FUNCTION_ATTRIBUTES];
};

struct stretch { uint64_t start, end; };  // of addresses

#define WRITTEN 4
enum launch_flag { COOPERATIVE = 1, LARGE_CLUSTERS = 2 };

struct launch {
  uint32_t function, grid[3], block[3], shared, cluster[3], flags;
  struct stretch written[WRITTEN];  // of the device's memory, by calls, since the launch before; empty ones are zeros
};

enum texture_kind { ARRAY_TEXTURE = 0, LINEAR_TEXTURE = 1, PITCHED_TEXTURE = 2, ARRAY_SURFACE = 3 };
struct texture {
  uint64_t at, pitch, width, height, depth;        // texels; 0: fewer dimensions. depth: of layers their number
  uint32_t format, channels, flags, kind;          // CUarray_format; CUDA_ARRAY3D_...
  uint32_t address[3], filter, reading, unused;    // CUaddress_mode, CUfilter_mode, CU_TRSF_...
  float border[4];
};

struct tensor_map {
  uint64_t address, extents[5], steps[4];          // dimensions innermost first; steps in bytes
  uint32_t box[5], element_steps[5];
  uint32_t type, rank, interleave, swizzle, fill, unused;  // as cuTensorMapEncodeTiled has them
};

// Connects on first use. 0, or CUDA_ERROR_NO_DEVICE where there is no memsim.
#define SHARED __attribute__((visibility("default")))
SHARED int memsim_connect(void);
// Sends two pieces of bytes and waits. `answer` gets at most `room` bytes; *got is what came. A CUresult.
SHARED int memsim_ask(enum operation op, const void *a, size_t na, const void *b, size_t nb, void *answer, size_t room,
               size_t *got);
// What memsim said of the device; valid after memsim_connect() == 0.
SHARED const struct hello *memsim_device(void);
SHARED const uint32_t *memsim_attributes(void);
// Tells memsim that a function is missing; CUDA_ERROR_NOT_SUPPORTED.
SHARED int memsim_refuse(const char *name);
#endif
