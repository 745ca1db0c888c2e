// Texture and surface objects.
__global__ void textures(float *out, cudaTextureObject_t t, cudaSurfaceObject_t s, float x, float y) {
  out[0] = tex1D<float>(t, x) + tex1Dfetch<float>(t, 3) + tex1DLod<float>(t, x, y);
  float4 v = tex2D<float4>(t, x, y);
  out[1] = v.x + v.w + tex2DLod<float>(t, x, y, 1.0f) + tex2DGrad<float>(t, x, y, {1, 2}, {3, 4});
  out[2] = tex3D<float>(t, x, y, 0.5f) + texCubemap<float>(t, x, y, 0.5f) + tex2DLayered<float>(t, x, y, 2);
  out[3] = tex1DLayered<float>(t, x, 1) + texCubemapLayered<float>(t, x, y, 0.5f, 1);
  out[4] = float(tex2D<unsigned char>(t, x, y)) + tex2Dgather<float4>(t, x, y, 1).y;
  int value;
  surf2Dread(&value, s, 4, 5);
  surf2Dwrite(value + 1, s, 8, 9);
  surf1Dwrite(make_float4(1, 2, 3, 4), s, 16);
}
