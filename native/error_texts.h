// What CUDA's driver and runtime say of an error (an H200's, CUDA 13.0), for those that memsim gives. Both have the same
// numbers; NULL: a number that is not here.
#ifndef MEMSIM_ERROR_TEXTS_H
#define MEMSIM_ERROR_TEXTS_H
#include <stddef.h>

static const char *memsim_error_text(int error) {
  static const struct { int number; const char *text; } texts[] = {
    {0, "no error"},
    {1, "invalid argument"},
    {2, "out of memory"},
    {3, "initialization error"},
    {9, "invalid configuration argument"},
    {12, "invalid pitch argument"},
    {13, "invalid device symbol"},
    {20, "invalid channel descriptor"},
    {21, "invalid copy direction for memcpy"},
    {52, "__global__ function call is not configured"},
    {98, "invalid device function"},
    {100, "no CUDA-capable device is detected"},
    {101, "invalid device ordinal"},
    {200, "device kernel image is invalid"},
    {201, "invalid device context"},
    {209, "no kernel image is available for execution on the device"},
    {215, "limit is not supported on this architecture"},
    {301, "file not found"},
    {400, "invalid resource handle"},
    {401, "the operation cannot be performed in the present state"},
    {500, "named symbol not found"},
    {700, "an illegal memory access was encountered"},
    {701, "too many resources requested for launch"},
    {702, "the launch timed out and was terminated"},
    {710, "device-side assert triggered"},
    {716, "misaligned address"},
    {719, "unspecified launch failure"},
    {720, "too many blocks in cooperative launch"},
    {801, "operation not supported"},
    {900, "operation not permitted when stream is capturing"},
    {910, "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update"},
    {912, "a kernel launch error has occurred due to cluster misconfiguration"},
    {999, "unknown error"},
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (texts[i].number == error) return texts[i].text;
  return NULL;
}
#endif
