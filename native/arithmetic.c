// Fused multiply-adds of arrays: each rounded once, as C and IEEE 754 have it.
// memsim/driver/native_arithmetic.py calls them.
#include <math.h>
#include <stddef.h>

#define EACH(fused) \
  for (size_t i = 0; i < count; i++) out[i] = fused(a[i], b[i], c[i])

#define FUSED(name, type, fused, builtin) \
  WITH_INSTRUCTION(name, type, builtin) \
  __attribute__((visibility("default"))) void name(size_t count, const type *a, const type *b, const type *c, type *out) { \
    IF_INSTRUCTION(name) \
    EACH(fused); \
  }

#ifdef __x86_64__  // the library's function is ten times slower than the instruction, which not every processor has
#define WITH_INSTRUCTION(name, type, builtin) \
  __attribute__((target("avx2,fma"))) static void name##_avx2(size_t count, const type *a, const type *b, const type *c, type *out) { \
    EACH(builtin); \
  }
#define IF_INSTRUCTION(name) \
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return name##_avx2(count, a, b, c, out);
#else
#define WITH_INSTRUCTION(name, type, builtin)
#define IF_INSTRUCTION(name)
#endif

FUSED(memsim_fma32, float, fmaf, __builtin_fmaf)
FUSED(memsim_fma64, double, fma, __builtin_fma)
