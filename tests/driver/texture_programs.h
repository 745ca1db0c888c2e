// Programs with CUDA arrays and textures: a part of programs.cu.

__global__ void sample(cudaTextureObject_t t, float *out, float scale) {
  int x = threadIdx.x, y = threadIdx.y;
  out[y * blockDim.x + x] = tex2D<float>(t, (x + 0.5f) * scale, (y + 0.5f) * scale);
}
__global__ void sample_layers(cudaTextureObject_t layers, cudaTextureObject_t cube, cudaTextureObject_t volume, float *out) {
  const float to[6][3] = {{1, .2f, .3f}, {-1, .2f, .3f}, {.2f, 1, .3f}, {.2f, -1, .3f}, {.2f, .3f, 1}, {.2f, .3f, -1}};
  int i = threadIdx.x;
  out[i] = tex2DLayered<float>(layers, 2.5f, 1.5f, i);
  out[6 + i] = texCubemap<float>(cube, to[i][0], to[i][1], to[i][2]);
  out[12 + i] = tex3D<float>(volume, 1.0f, 1.0f, i + 0.5f);
}
__global__ void fetch(cudaTextureObject_t t, int *out) { out[threadIdx.x] = tex1Dfetch<int>(t, 3 * threadIdx.x); }
static cudaTextureObject_t texture_of(cudaResourceDesc from, cudaTextureFilterMode filter, cudaTextureAddressMode outside = cudaAddressModeClamp,
                                      int normalized = 0) {
  cudaTextureDesc how = {};
  cudaTextureObject_t made = 0;
  for (auto &each : how.addressMode) each = outside;
  how.filterMode = filter;
  how.normalizedCoords = normalized;
  how.borderColor[0] = -1;
  return cudaCreateTextureObject(&made, &from, &how, nullptr) ? 0 : made;
}
static int textures() {
  const int width = 8, height = 4;
  float a[96], o[32], *out;
  int back[8], *numbers;
  cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  cudaResourceDesc in_array = {}, linear = {};
  for (int i = 0; i < 96; i++) a[i] = i;
  CHECK(cudaMallocManaged(&out, sizeof o));
  CHECK(cudaMallocArray(&array, &floats, width, height));
  CHECK(cudaMemcpy2DToArray(array, 0, 0, a, width * 4, width * 4, height, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy2DFromArray(o, width * 4, array, 0, 0, width * 4, height, cudaMemcpyDeviceToHost));
  if (memcmp(a, o, sizeof o) || !cudaMemcpy2DToArray(array, 4, 0, a, width * 4, width * 4, height, cudaMemcpyHostToDevice)) return 1;
  in_array.resType = cudaResourceTypeArray;
  in_array.res.array.array = array;
  sample<<<1, dim3(width, height)>>>(texture_of(in_array, cudaFilterModeLinear), out, 0.5f);
  CHECK(cudaDeviceSynchronize());
  if (out[0] != 0 || out[1] != 0.25f || out[9] != 2.25f || out[31] != 13.25f) return 2;
  sample<<<1, dim3(width, height)>>>(texture_of(in_array, cudaFilterModePoint, cudaAddressModeBorder), out, 2);
  CHECK(cudaDeviceSynchronize());
  if (out[1] != 11 || out[4] != -1 || out[16] != -1) return 3;

  cudaTextureObject_t three[3];
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(a, 16, 4, 4);
  copy.extent = make_cudaExtent(4, 4, 6);
  copy.kind = cudaMemcpyHostToDevice;
  for (int i = 0; i < 3; i++) {
    CHECK(cudaMalloc3DArray(&copy.dstArray, &floats, copy.extent, i == 0 ? cudaArrayLayered : i == 1 ? cudaArrayCubemap : 0));
    CHECK(cudaMemcpy3D(&copy));
    in_array.res.array.array = copy.dstArray;
    three[i] = texture_of(in_array, i == 2 ? cudaFilterModeLinear : cudaFilterModePoint, cudaAddressModeClamp, i == 1);
  }
  sample_layers<<<1, 6>>>(three[0], three[1], three[2], out);
  CHECK(cudaDeviceSynchronize());
  const int faces[] = {5, 22, 42, 54, 70, 85};
  for (int i = 0; i < 6; i++)
    if (out[i] != 16 * i + 6 || out[6 + i] != faces[i] || out[12 + i] != 16 * i + 2.5f) return 4;

  CHECK(cudaMallocManaged(&numbers, 400));
  for (int i = 0; i < 100; i++) numbers[i] = 7 * i;
  linear.resType = cudaResourceTypeLinear;
  linear.res.linear.devPtr = numbers;
  linear.res.linear.desc = cudaCreateChannelDesc<int>();
  linear.res.linear.sizeInBytes = 60;
  cudaTextureObject_t texture = texture_of(linear, cudaFilterModePoint);
  fetch<<<1, 8>>>(texture, (int *)out);
  CHECK(cudaMemcpy(back, out, 32, cudaMemcpyDefault));
  CHECK(cudaDestroyTextureObject(texture));
  linear.res.linear.sizeInBytes = 600;  // more than the allocation has
  return back[4] == 84 && back[5] == 0 && !texture_of(linear, cudaFilterModePoint) ? 0 : 5;
}
