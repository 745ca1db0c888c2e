// CUDA arrays, textures and surfaces: a part of driver.c. An array's rows lie one after the other in device memory;
// its handle is a struct of this side, and a texture's or surface's is memsim's.

struct array { CUDA_ARRAY3D_DESCRIPTOR how; CUdeviceptr at; size_t texel; };
#define OR_ONE(extent) ((extent) ? (extent) : 1)

static size_t bytes_of_texel(CUarray_format format, unsigned channels) {
  if (channels != 1 && channels != 2 && channels != 4) return 0;
  switch ((int)format) {
    case CU_AD_FORMAT_UNSIGNED_INT8: case CU_AD_FORMAT_SIGNED_INT8: return channels;
    case CU_AD_FORMAT_UNSIGNED_INT16: case CU_AD_FORMAT_SIGNED_INT16: case CU_AD_FORMAT_HALF: return 2 * channels;
    case CU_AD_FORMAT_UNSIGNED_INT32: case CU_AD_FORMAT_SIGNED_INT32: case CU_AD_FORMAT_FLOAT: return 4 * channels;
    default: return 0;
  }
}
static CUresult make_array(CUarray *made, const CUDA_ARRAY3D_DESCRIPTOR *how) {
  size_t texel = bytes_of_texel(how->Format, how->NumChannels);
  if (!texel || !how->Width || how->Width > 1 << 20 || how->Height > 1 << 20 || how->Depth > 1 << 20) return CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr at;
  CUresult failed = allocate(&at, how->Width * texel * OR_ONE(how->Height) * OR_ONE(how->Depth), DEVICE_MEMORY);
  if (failed) return failed;
  struct array *array = malloc(sizeof *array);
  *array = (struct array){*how, at, texel};
  *made = (CUarray)array;
  return OK;
}
API cuArray3DCreate(CUarray *made, const CUDA_ARRAY3D_DESCRIPTOR *how) { return make_array(made, how); }
API cuArrayCreate(CUarray *made, const CUDA_ARRAY_DESCRIPTOR *how) {
  CUDA_ARRAY3D_DESCRIPTOR box = {how->Width, how->Height, 0, how->Format, how->NumChannels, 0};
  return make_array(made, &box);
}
API cuArrayDestroy(CUarray array) {
  if (!array) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = release(((struct array *)array)->at, ON_DEVICE);
  free(array);
  return result;
}
API cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR *how, CUarray array) {
  if (!array) return CUDA_ERROR_INVALID_HANDLE;
  *how = ((struct array *)array)->how;
  return OK;
}
API cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR *how, CUarray array) {
  if (!array) return CUDA_ERROR_INVALID_HANDLE;
  CUDA_ARRAY3D_DESCRIPTOR box = ((struct array *)array)->how;
  *how = (CUDA_ARRAY_DESCRIPTOR){box.Width, box.Height, box.Format, box.NumChannels};
  return OK;
}

// One side of a copy: where its first byte is, and how far apart rows and slices are; NULL if the box leaves an array.
struct side { char *at; size_t pitch, slice; };
static struct side side_of(CUmemorytype type, const void *host, CUdeviceptr device, CUarray handle, size_t pitch, size_t height,
                           size_t x, size_t y, size_t z, const CUDA_MEMCPY3D *c) {
  struct side found = {type == CU_MEMORYTYPE_HOST ? (char *)host : HOST(device), pitch ? pitch : c->WidthInBytes, 0};
  if (type == CU_MEMORYTYPE_ARRAY) {
    struct array *array = (struct array *)handle;
    if (!array) return (struct side){NULL, 0, 0};
    found = (struct side){HOST(array->at), array->how.Width * array->texel, 0};
    height = OR_ONE(array->how.Height);
    if (x + c->WidthInBytes > found.pitch || y + c->Height > height || z + c->Depth > OR_ONE(array->how.Depth)) found.at = NULL;
  }
  found.slice = found.pitch * (height ? height : c->Height);
  if (found.at) found.at += x + y * found.pitch + z * found.slice;
  return found;
}
static size_t span_of(const struct side *side, const CUDA_MEMCPY3D *c) {
  if (!c->WidthInBytes || !c->Height || !c->Depth) return 0;
  return (c->Depth - 1) * side->slice + (c->Height - 1) * side->pitch + c->WidthInBytes;
}
static int is_side(const struct side *side, const CUDA_MEMCPY3D *c) {
  if (!side->at || (c->Height > 1 && side->pitch < c->WidthInBytes)) return 0;
  return is_within((CUdeviceptr)side->at, span_of(side, c));
}
static CUresult copy_box(const CUDA_MEMCPY3D *c) {
  READY;
  struct side from = side_of(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcPitch, c->srcHeight, c->srcXInBytes,
                             c->srcY, c->srcZ, c);
  struct side to = side_of(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstPitch, c->dstHeight, c->dstXInBytes,
                           c->dstY, c->dstZ, c);
  if (!is_side(&from, c) || !is_side(&to, c)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t z = 0; z < c->Depth; z++)
    for (size_t y = 0; y < c->Height; y++)
      memmove(to.at + z * to.slice + y * to.pitch, from.at + z * from.slice + y * from.pitch, c->WidthInBytes);
  has_written(to.at, span_of(&to, c));
  return OK;
}
// Bytes of an array one after the other, whatever its rows.
static CUresult copy_array(CUarray handle, size_t offset, void *other, size_t bytes, int is_write) {
  READY;
  struct array *array = (struct array *)handle;
  if (!array) return CUDA_ERROR_INVALID_HANDLE;
  size_t size = array->how.Width * array->texel * OR_ONE(array->how.Height) * OR_ONE(array->how.Depth);
  if (offset > size || bytes > size - offset) return CUDA_ERROR_INVALID_VALUE;
  char *at = (char *)HOST(array->at) + offset;
  return is_write ? copy(at, other, bytes) : copy(other, at, bytes);
}
API cuMemcpyHtoA_v2(CUarray to, size_t offset, const void *from, size_t bytes) { return copy_array(to, offset, (void *)from, bytes, 1); }
API cuMemcpyAtoH_v2(void *to, CUarray from, size_t offset, size_t bytes) { return copy_array(from, offset, to, bytes, 0); }
API cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t bytes) { return copy_array(to, offset, HOST(from), bytes, 1); }
API cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t bytes) { return copy_array(from, offset, HOST(to), bytes, 0); }
API cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void *from, size_t bytes, CUstream s) {
  return copy_array(to, offset, (void *)from, bytes, 1);
}
API cuMemcpyAtoHAsync_v2(void *to, CUarray from, size_t offset, size_t bytes, CUstream s) {
  return copy_array(from, offset, to, bytes, 0);
}

static CUresult make_object(CUtexObject *object, const CUDA_RESOURCE_DESC *from, const CUDA_TEXTURE_DESC *how) {
  READY;
  struct texture made = {.kind = how ? ARRAY_TEXTURE : ARRAY_SURFACE};
  size_t texel;
  if (from->resType == CU_RESOURCE_TYPE_ARRAY) {
    struct array *array = (struct array *)from->res.array.hArray;
    if (!array) return CUDA_ERROR_INVALID_HANDLE;
    CUDA_ARRAY3D_DESCRIPTOR *d = &array->how;
    made = (struct texture){array->at, d->Width * array->texel, d->Width, d->Height, d->Depth, d->Format, d->NumChannels, d->Flags,
                            made.kind};
  } else if (how && from->resType == CU_RESOURCE_TYPE_LINEAR) {
    if (!(texel = bytes_of_texel(from->res.linear.format, from->res.linear.numChannels))) return CUDA_ERROR_INVALID_VALUE;
    made = (struct texture){from->res.linear.devPtr, from->res.linear.sizeInBytes, from->res.linear.sizeInBytes / texel, 0, 0,
                            from->res.linear.format, from->res.linear.numChannels, 0, LINEAR_TEXTURE};
  } else if (how && from->resType == CU_RESOURCE_TYPE_PITCH2D) {
    made = (struct texture){from->res.pitch2D.devPtr, from->res.pitch2D.pitchInBytes, from->res.pitch2D.width, from->res.pitch2D.height,
                            0, from->res.pitch2D.format, from->res.pitch2D.numChannels, 0, PITCHED_TEXTURE};
  } else return (CUresult)memsim_refuse(how ? "a texture of a mipmapped array" : "a surface of what is no array");
  if (how) {
    for (int i = 0; i < 3; i++) made.address[i] = how->addressMode[i];
    made.filter = how->filterMode;
    made.reading = how->flags;
    memcpy(made.border, how->borderColor, sizeof made.border);
  }
  uint64_t handle;
  CUresult result = (CUresult)memsim_ask(OP_TEXTURE, &made, sizeof made, NULL, 0, &handle, 8, NULL);
  if (!result) *object = handle;
  return result;
}
static CUresult forget_object(CUtexObject object) {
  READY;
  uint64_t handle = object;
  return (CUresult)memsim_ask(OP_FORGET, &handle, 8, NULL, 0, NULL, 0, NULL);
}
API cuTexObjectCreate(CUtexObject *object, const CUDA_RESOURCE_DESC *from, const CUDA_TEXTURE_DESC *how,
                      const CUDA_RESOURCE_VIEW_DESC *view) {
  return view && view->format ? (CUresult)memsim_refuse("a resource view of a texture") : make_object(object, from, how);
}
API cuTexObjectDestroy(CUtexObject object) { return forget_object(object); }
API cuSurfObjectCreate(CUsurfObject *object, const CUDA_RESOURCE_DESC *from) { return make_object(object, from, NULL); }
API cuSurfObjectDestroy(CUsurfObject object) { return forget_object(object); }
