import memsim
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n)
    tl.store(out + i, total, mask=i < n)


n = 9_999
x, y, out = (memsim.ArrayArg((n,)) for _ in range(3))  # or tensors of torch, on the CPU or the device meta
with memsim.capture("sm_90") as launches:
    add[triton.cdiv(n, 1024),](x, y, out, n, BLOCK=1024)
print(launches[0].analyze())
