// CUDA arrays, textures and surfaces: a part of runtime.c, on top of the driver's.

// A channel's format as the driver has it; 0: it has none.
static CUarray_format format_of(struct cudaChannelFormatDesc d, unsigned *channels) {
  int first = d.x;
  *channels = (d.x != 0) + (d.y != 0) + (d.z != 0) + (d.w != 0);
  if ((d.y && d.y != first) || (d.z && d.z != first) || (d.w && d.w != first)) return 0;
  switch (first * 4 + (int)d.f) {
    case 8 * 4 + cudaChannelFormatKindUnsigned: return CU_AD_FORMAT_UNSIGNED_INT8;
    case 16 * 4 + cudaChannelFormatKindUnsigned: return CU_AD_FORMAT_UNSIGNED_INT16;
    case 32 * 4 + cudaChannelFormatKindUnsigned: return CU_AD_FORMAT_UNSIGNED_INT32;
    case 8 * 4 + cudaChannelFormatKindSigned: return CU_AD_FORMAT_SIGNED_INT8;
    case 16 * 4 + cudaChannelFormatKindSigned: return CU_AD_FORMAT_SIGNED_INT16;
    case 32 * 4 + cudaChannelFormatKindSigned: return CU_AD_FORMAT_SIGNED_INT32;
    case 16 * 4 + cudaChannelFormatKindFloat: return CU_AD_FORMAT_HALF;
    case 32 * 4 + cudaChannelFormatKindFloat: return CU_AD_FORMAT_FLOAT;
    default: return 0;
  }
}
static struct cudaChannelFormatDesc channels_of(const CUDA_ARRAY3D_DESCRIPTOR *d, size_t *texel) {
  int bits = d->Format == CU_AD_FORMAT_UNSIGNED_INT8 || d->Format == CU_AD_FORMAT_SIGNED_INT8     ? 8
             : d->Format == CU_AD_FORMAT_FLOAT || d->Format == CU_AD_FORMAT_UNSIGNED_INT32 ||
                     d->Format == CU_AD_FORMAT_SIGNED_INT32                                       ? 32
                                                                                                  : 16;
  int n = (int)d->NumChannels;
  *texel = (size_t)(bits / 8 * n);
  return cudaCreateChannelDesc(bits, n > 1 ? bits : 0, n > 2 ? bits : 0, n > 3 ? bits : 0,
                               d->Format >= CU_AD_FORMAT_HALF           ? cudaChannelFormatKindFloat
                               : d->Format >= CU_AD_FORMAT_SIGNED_INT8 ? cudaChannelFormatKindSigned
                                                                       : cudaChannelFormatKindUnsigned);
}
static int new_array(cudaArray_t *array, const struct cudaChannelFormatDesc *desc, struct cudaExtent extent, unsigned flags) {
  unsigned channels;
  CUarray_format format = format_of(*desc, &channels);
  int failed = start();
  if (failed) return failed;
  if (!format) return cudaErrorInvalidChannelDescriptor;
  CUDA_ARRAY3D_DESCRIPTOR how = {extent.width, extent.height, extent.depth, format, channels, flags};
  return (int)cuArray3DCreate((CUarray *)array, &how);
}
API cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc, size_t width, size_t height, unsigned flags) {
  ANSWER(new_array(array, desc, (struct cudaExtent){width, height, 0}, flags));
}
API cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc, struct cudaExtent extent, unsigned flags) {
  ANSWER(new_array(array, desc, extent, flags));
}
API cudaFreeArray(cudaArray_t array) { START; ANSWER(array ? (int)cuArrayDestroy((CUarray)array) : 0); }
API cudaArrayGetInfo(struct cudaChannelFormatDesc *desc, struct cudaExtent *extent, unsigned *flags, cudaArray_t array) {
  CUDA_ARRAY3D_DESCRIPTOR how;
  size_t texel;
  int failed = (int)cuArray3DGetDescriptor(&how, (CUarray)array);
  if (failed) ANSWER(failed);
  if (desc) *desc = channels_of(&how, &texel);
  if (extent) *extent = (struct cudaExtent){how.Width, how.Height, how.Depth};
  if (flags) *flags = how.Flags;
  return cudaSuccess;
}
API cudaGetChannelDesc(struct cudaChannelFormatDesc *desc, cudaArray_const_t array) {
  return cudaArrayGetInfo(desc, NULL, NULL, (cudaArray_t)array);
}

// Copies. A width in bytes; whatever is no array is an address.
static CUDA_MEMCPY3D box_of(const void *to, cudaArray_const_t to_array, const void *from, cudaArray_const_t from_array) {
  return (CUDA_MEMCPY3D){
    .srcMemoryType = from_array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED, .srcDevice = DEVICE(from), .srcArray = (CUarray)from_array,
    .dstMemoryType = to_array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED, .dstDevice = DEVICE(to), .dstArray = (CUarray)to_array,
    .Height = 1, .Depth = 1};
}
static CUDA_MEMCPY3D box_of_parameters(const struct cudaMemcpy3DParms *p) {
  CUDA_MEMCPY3D box = box_of(p->dstPtr.ptr, p->dstArray, p->srcPtr.ptr, p->srcArray);
  CUDA_ARRAY3D_DESCRIPTOR how;
  size_t texel = 1;  // with an array, widths are in its texels, and so are places in it
  if ((p->srcArray || p->dstArray) && !cuArray3DGetDescriptor(&how, (CUarray)(p->srcArray ? p->srcArray : p->dstArray)))
    channels_of(&how, &texel);
  box.srcXInBytes = p->srcPos.x * (p->srcArray ? texel : 1), box.srcY = p->srcPos.y, box.srcZ = p->srcPos.z;
  box.dstXInBytes = p->dstPos.x * (p->dstArray ? texel : 1), box.dstY = p->dstPos.y, box.dstZ = p->dstPos.z;
  box.srcPitch = p->srcPtr.pitch, box.srcHeight = p->srcPtr.ysize;
  box.dstPitch = p->dstPtr.pitch, box.dstHeight = p->dstPtr.ysize;
  box.WidthInBytes = p->extent.width * texel, box.Height = p->extent.height, box.Depth = p->extent.depth;
  return box;
}
static int copy_box(const struct cudaMemcpy3DParms *p, cudaStream_t stream) {
  CUDA_MEMCPY3D box = box_of_parameters(p);
  int failed = start();
  if (failed || !box.WidthInBytes || !box.Height || !box.Depth) return failed;
  int to_device = p->dstArray || is_device_side(p->dstPtr.ptr), from_device = p->srcArray || is_device_side(p->srcPtr.ptr);
  if ((failed = check_sides(to_device, from_device, p->kind))) return failed;
  if (box.Height > 1 && ((!p->srcArray && box.srcPitch < box.WidthInBytes) || (!p->dstArray && box.dstPitch < box.WidthInBytes)))
    return cudaErrorInvalidPitchValue;
  return (int)cuMemcpy3DAsync(&box, stream);
}
API cudaMemcpy3D(const struct cudaMemcpy3DParms *p) { ANSWER(copy_box(p, NULL)); }
API cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream) { ANSWER(copy_box(p, stream)); }
static int copy_plane(CUDA_MEMCPY3D box, size_t to_x, size_t to_y, size_t to_pitch, size_t from_x, size_t from_y, size_t from_pitch,
                      size_t width, size_t height) {
  int failed = start();
  box.dstXInBytes = to_x, box.dstY = to_y, box.dstPitch = to_pitch;
  box.srcXInBytes = from_x, box.srcY = from_y, box.srcPitch = from_pitch;
  box.WidthInBytes = width, box.Height = height;
  return failed ? failed : (int)cuMemcpy3D(&box);
}
API cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height,
                        enum cudaMemcpyKind kind) {
  ANSWER(copy_plane(box_of(NULL, to, from, NULL), x, y, 0, 0, 0, pitch, width, height));
}
API cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height,
                             enum cudaMemcpyKind kind, cudaStream_t stream) {
  ANSWER(copy_plane(box_of(NULL, to, from, NULL), x, y, 0, 0, 0, pitch, width, height));
}
API cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width, size_t height,
                          enum cudaMemcpyKind kind) {
  ANSWER(copy_plane(box_of(to, NULL, NULL, from), 0, 0, pitch, x, y, 0, width, height));
}
API cudaMemcpy2DFromArrayAsync(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width, size_t height,
                               enum cudaMemcpyKind kind, cudaStream_t stream) {
  ANSWER(copy_plane(box_of(to, NULL, NULL, from), 0, 0, pitch, x, y, 0, width, height));
}
API cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from, size_t x, size_t y, size_t width,
                             size_t height, enum cudaMemcpyKind kind) {
  ANSWER(copy_plane(box_of(NULL, to, NULL, from), to_x, to_y, 0, x, y, 0, width, height));
}
static int copy_array(cudaArray_const_t array, size_t x, size_t y, void *other, size_t bytes, int is_write) {
  CUDA_ARRAY3D_DESCRIPTOR how;
  size_t texel;
  int failed = start();
  if (failed || (failed = (int)cuArray3DGetDescriptor(&how, (CUarray)array))) return failed;
  channels_of(&how, &texel);
  size_t offset = x + y * how.Width * texel;
  return (int)(is_write ? cuMemcpyHtoA((CUarray)array, offset, other, bytes) : cuMemcpyAtoH(other, (CUarray)array, offset, bytes));
}
API cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  ANSWER(copy_array(to, x, y, (void *)from, bytes, 1));
}
API cudaMemcpyToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                           cudaStream_t stream) {
  ANSWER(copy_array(to, x, y, (void *)from, bytes, 1));
}
API cudaMemcpyFromArray(void *to, cudaArray_const_t from, size_t x, size_t y, size_t bytes, enum cudaMemcpyKind kind) {
  ANSWER(copy_array(from, x, y, to, bytes, 0));
}
API cudaMemcpyFromArrayAsync(void *to, cudaArray_const_t from, size_t x, size_t y, size_t bytes, enum cudaMemcpyKind kind,
                             cudaStream_t stream) {
  ANSWER(copy_array(from, x, y, to, bytes, 0));
}

static int resource_of(CUDA_RESOURCE_DESC *made, const struct cudaResourceDesc *from) {
  memset(made, 0, sizeof *made);
  made->resType = (CUresourcetype)from->resType;  // the same numbers
  if (from->resType == cudaResourceTypeArray) made->res.array.hArray = (CUarray)from->res.array.array;
  if (from->resType == cudaResourceTypeLinear) {
    made->res.linear.devPtr = DEVICE(from->res.linear.devPtr);
    made->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
    made->res.linear.format = format_of(from->res.linear.desc, &made->res.linear.numChannels);
    if (!made->res.linear.format) return cudaErrorInvalidChannelDescriptor;
  }
  if (from->resType == cudaResourceTypePitch2D) {
    made->res.pitch2D.devPtr = DEVICE(from->res.pitch2D.devPtr);
    made->res.pitch2D.format = format_of(from->res.pitch2D.desc, &made->res.pitch2D.numChannels);
    made->res.pitch2D.width = from->res.pitch2D.width;
    made->res.pitch2D.height = from->res.pitch2D.height;
    made->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
    if (!made->res.pitch2D.format) return cudaErrorInvalidChannelDescriptor;
  }
  return 0;
}
static int new_texture(cudaTextureObject_t *object, const struct cudaResourceDesc *from, const struct cudaTextureDesc *how,
                       const struct cudaResourceViewDesc *view) {
  CUDA_RESOURCE_DESC resource;
  int failed = start();
  if (failed || (failed = resource_of(&resource, from))) return failed;
  if (view && view->format) return memsim_refuse("a resource view of a texture");
  CUDA_TEXTURE_DESC made = {
    .filterMode = (CUfilter_mode)how->filterMode,
    .flags = (how->readMode == cudaReadModeElementType ? CU_TRSF_READ_AS_INTEGER : 0) |
             (how->normalizedCoords ? CU_TRSF_NORMALIZED_COORDINATES : 0) | (how->sRGB ? CU_TRSF_SRGB : 0)};
  for (int i = 0; i < 3; i++) made.addressMode[i] = (CUaddress_mode)how->addressMode[i];
  memcpy(made.borderColor, how->borderColor, sizeof made.borderColor);
  return (int)cuTexObjectCreate((CUtexObject *)object, &resource, &made, NULL);
}
API cudaCreateTextureObject(cudaTextureObject_t *object, const struct cudaResourceDesc *from, const struct cudaTextureDesc *how,
                            const struct cudaResourceViewDesc *view) {
  ANSWER(new_texture(object, from, how, view));
}
API cudaDestroyTextureObject(cudaTextureObject_t object) { START; ANSWER(cuTexObjectDestroy(object)); }
API cudaCreateSurfaceObject(cudaSurfaceObject_t *object, const struct cudaResourceDesc *from) {
  CUDA_RESOURCE_DESC resource;
  START;
  int failed = resource_of(&resource, from);
  ANSWER(failed ? failed : (int)cuSurfObjectCreate((CUsurfObject *)object, &resource));
}
API cudaDestroySurfaceObject(cudaSurfaceObject_t object) { START; ANSWER(cuSurfObjectDestroy(object)); }
API cudaDeviceGetTexture1DLinearMaxWidth(size_t *texels, const struct cudaChannelFormatDesc *desc, int device) {
  *texels = 1 << 28;
  return cudaSuccess;
}
