"""Ten kernels in Triton with the configurations that an autotuner would try, each at one size.

A configuration is what an autotuner is given: constants of the kernel, warps of a block, stages of its loop.
"""
# ruff: noqa: N803 - constants have capital letters in Triton

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import triton  # type: ignore[import-not-found,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,unused-ignore]

Constants = Mapping[str, int]


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, EXACT: tl.constexpr):  # type: ignore[no-untyped-def]
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (k + depth)[None, :])
        right = tl.load(b + (k + depth)[:, None] * N + columns[None, :])
        total = tl.dot(left, right, total, input_precision="ieee" if EXACT else "tf32")
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(c.dtype.element_ty))


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def attention(q, k, v, out, N, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):  # type: ignore[no-untyped-def]
    head = tl.program_id(1) * N * D
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    across = tl.arange(0, D)
    queries = tl.load(q + head + rows[:, None] * D + across[None, :])
    largest = tl.full((BM,), -1e30, tl.float32)
    weight = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    for start in range(0, N, BN):
        others = start + tl.arange(0, BN)
        keys = tl.load(k + head + others[:, None] * D + across[None, :])
        scores = tl.dot(queries, tl.trans(keys)) * scale
        new = tl.maximum(largest, tl.max(scores, 1))
        shares = tl.exp2(scores - new[:, None])
        shrink = tl.exp2(largest - new)
        weight = weight * shrink + tl.sum(shares, 1)
        values = tl.load(v + head + others[:, None] * D + across[None, :])
        total = tl.dot(shares.to(tl.float16), values, total * shrink[:, None])
        largest = new
    total = total / weight[:, None]
    tl.store(out + head + rows[:, None] * D + across[None, :], total.to(tl.float16))


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def layer_norm(x, weight, bias, out, N, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0) * N
    total = tl.zeros((BLOCK,), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        values = tl.load(x + row + start + tl.arange(0, BLOCK)).to(tl.float32)
        total += values
        squares += values * values
    mean = tl.sum(total, 0) / N
    scale = tl.rsqrt(tl.sum(squares, 0) / N - mean * mean + 1e-5)
    for start in range(0, N, BLOCK):
        places = start + tl.arange(0, BLOCK)
        values = (tl.load(x + row + places).to(tl.float32) - mean) * scale
        values = values * tl.load(weight + places) + tl.load(bias + places)
        tl.store(out + row + places, values.to(tl.float16))


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def softmax(x, out, N: tl.constexpr, ROWS: tl.constexpr):  # type: ignore[no-untyped-def]
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    places = rows[:, None] * N + tl.arange(0, N)[None, :]
    values = tl.load(x + places)
    powers = tl.exp(values - tl.max(values, 1)[:, None])
    tl.store(out + places, powers / tl.sum(powers, 1)[:, None])


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def gelu(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    values = tl.load(x + places, mask=inside).to(tl.float32)
    values = values * 0.5 * (1.0 + tl.erf(values * 0.7071067811865476))
    tl.store(out + places, values.to(tl.float16), mask=inside)


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def transpose(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr):  # type: ignore[no-untyped-def]
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    tile = tl.load(x + rows[:, None] * N + columns[None, :])
    tl.store(out + columns[:, None] * M + rows[None, :], tl.trans(tile))


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def column_sums(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr):  # type: ignore[no-untyped-def]
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, M, BM):
        rows = start + tl.arange(0, BM)
        total += tl.load(x + rows[:, None] * N + columns[None, :])
    tl.store(out + columns, tl.sum(total, 0))


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def cross_entropy(x, target, out, N, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0)
    largest = tl.full((BLOCK,), -1e30, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        values = tl.load(x + row * N + start + tl.arange(0, BLOCK))
        new = tl.maximum(largest, values)
        total = total * tl.exp(largest - new) + tl.exp(values - new)
        largest = new
    most = tl.max(largest, 0)
    whole = tl.sum(total * tl.exp(largest - most), 0)
    chosen = tl.load(x + row * N + tl.load(target + row))
    tl.store(out + row, tl.log(whole) + most - chosen)


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def int8_vector(x, weight, scale, out, K, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    rows = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BN, BK), tl.float32)
    for start in range(0, K, BK):
        depth = start + tl.arange(0, BK)
        total += (
            tl.load(weight + rows[:, None] * K + depth[None, :]).to(tl.float32) * tl.load(x + depth)[None, :]
        )
    tl.store(out + rows, tl.sum(total, 1) * tl.load(scale + rows))


@dataclass(frozen=True, slots=True)
class Configuration:
    """constants: of the kernel. warps: of a block. stages: of its loop."""

    constants: Constants
    warps: int
    stages: int = 3

    def __str__(self) -> str:
        told = (f"{name} {value}" for name, value in self.constants.items())
        return ", ".join((*told, f"{self.warps} warps", f"{self.stages} stages"))


@dataclass(frozen=True, slots=True)
class TunedKernel:
    """A kernel at one size.

    arrays: shape and dtype of each, in the order of its parameters; the last one is written. scalars: the
    parameters after them. grid: blocks, given the constants. fixed: constants that no configuration
    changes. result: what the last array should hold, computed by torch of the others.
    """

    name: str
    kernel: Any
    arrays: tuple[tuple[tuple[int, ...], str], ...]
    scalars: tuple[float, ...]
    grid: Callable[[Constants], tuple[int, ...]]
    configurations: tuple[Configuration, ...]
    result: Callable[..., Any]
    fixed: Constants

    def launch(self, arrays: Sequence[Any], one: Configuration) -> Any:
        """Launch it with a configuration; what Triton compiled."""
        constants = {**self.fixed, **one.constants}
        grid = self.grid(constants)
        return self.kernel[grid](
            *arrays, *self.scalars, **constants, num_warps=one.warps, num_stages=one.stages
        )


def _tiles(names: str, *rows: tuple[int, ...]) -> tuple[Configuration, ...]:
    """Configurations: of each row the constants of these names, then warps and stages."""
    split = names.split()
    count = len(split)
    return tuple(Configuration(dict(zip(split, row)), *row[count:]) for row in rows)


def _layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    import torch  # type: ignore[import-not-found,unused-ignore]

    return torch.nn.functional.layer_norm(x.float(), x.shape[1:], weight, bias)


def _attention(q: Any, k: Any, v: Any) -> Any:
    scores = q.float() @ k.float().transpose(1, 2) * LN2 / 8
    return scores.softmax(-1) @ v.float()


#: `attention` takes powers of two.
LN2 = 0.6931471805599453
_SQUARE = (1024, 1024)

KERNELS: tuple[TunedKernel, ...] = (
    TunedKernel(
        "matmul, float16", matmul, ((_SQUARE, "float16"),) * 3, (1024, 1024, 1024),
        lambda c: (1024 // c["BM"], 1024 // c["BN"]),
        _tiles(
            "BM BN BK",
            (128, 128, 32, 8, 3), (128, 128, 64, 8, 3), (128, 64, 32, 4, 4), (64, 128, 32, 4, 4),
            (64, 64, 32, 4, 4), (64, 64, 64, 4, 3), (128, 256, 64, 8, 3), (64, 32, 32, 4, 3),
        ),
        lambda a, b: a.float() @ b.float(), {"EXACT": 0},
    ),
    TunedKernel(
        "matmul, float32", matmul, (((512, 512), "float32"),) * 3, (512, 512, 512),
        lambda c: (512 // c["BM"], 512 // c["BN"]),
        _tiles(
            "BM BN BK",
            (64, 64, 16, 4, 3), (64, 64, 16, 8, 3), (32, 64, 16, 4, 3), (32, 32, 32, 4, 3),
            (64, 32, 16, 2, 3), (16, 64, 16, 4, 2),
        ),
        lambda a, b: a.double() @ b.double(), {"EXACT": 1},
    ),
    TunedKernel(
        "attention", attention, (((16, 1024, 64), "float16"),) * 4, (1024, 0.125),
        lambda c: (1024 // c["BM"], 16),
        _tiles(
            "BM BN",
            (128, 64, 8, 2), (128, 64, 4, 3), (64, 64, 4, 2), (64, 64, 4, 3), (64, 32, 4, 3), (128, 32, 8, 3),
        ),
        _attention, {"D": 64},
    ),
    TunedKernel(
        "layer norm", layer_norm,
        (((4096, 2048), "float16"), ((2048,), "float32"), ((2048,), "float32"), ((4096, 2048), "float16")),
        (2048,), lambda c: (4096,),
        _tiles("BLOCK", (256, 1), (512, 2), (512, 4), (1024, 4), (2048, 4), (2048, 8), (2048, 16)),
        _layer_norm, {},
    ),
    TunedKernel(
        "softmax", softmax, (((8192, 1024), "float32"),) * 2, (),
        lambda c: (8192 // c["ROWS"],),
        _tiles("ROWS", (1, 1), (1, 2), (1, 4), (1, 8), (2, 4), (4, 4), (4, 8), (8, 8)),
        lambda x: x.softmax(1), {"N": 1024},
    ),
    TunedKernel(
        "gelu", gelu, (((1 << 22,), "float16"),) * 2, (1 << 22,),
        lambda c: ((1 << 22) // c["BLOCK"],),
        _tiles("BLOCK", (128, 4), (256, 4), (512, 4), (1024, 4), (2048, 4), (4096, 4), (4096, 8), (8192, 8)),
        lambda x: x.float() * 0.5 * (1 + (x.float() * 0.5**0.5).erf()), {},
    ),
    TunedKernel(
        "transpose", transpose, (((2048, 2048), "float32"),) * 2, (2048, 2048),
        lambda c: (2048 // c["BM"], 2048 // c["BN"]),
        _tiles(
            "BM BN",
            (16, 16, 2), (32, 32, 4), (64, 32, 4), (32, 64, 4), (64, 64, 4), (64, 64, 8), (128, 32, 4),
        ),
        lambda x: x.T, {},
    ),
    TunedKernel(
        "column sums", column_sums, (((2048, 4096), "float32"), ((4096,), "float32")), (2048, 4096),
        lambda c: (4096 // c["BN"],),
        _tiles(
            "BM BN",
            (16, 32, 4), (32, 16, 4), (32, 32, 4), (64, 16, 4), (64, 32, 8), (128, 16, 8), (32, 64, 8),
        ),
        lambda x: x.sum(0), {},
    ),
    TunedKernel(
        "cross entropy", cross_entropy, (((2048, 8192), "float32"), ((2048,), "int32"), ((2048,), "float32")),
        (8192,), lambda c: (2048,),
        _tiles("BLOCK", (512, 2), (512, 4), (1024, 4), (2048, 4), (2048, 8), (4096, 8), (8192, 16)),
        lambda x, target: x.logsumexp(1) - x.gather(1, target.long()[:, None])[:, 0], {},
    ),
    TunedKernel(
        "int8 matrix by vector", int8_vector,
        (((4096,), "float32"), ((4096, 4096), "int8"), ((4096,), "float32"), ((4096,), "float32")), (4096,),
        lambda c: (4096 // c["BN"],),
        _tiles(
            "BN BK",
            (1, 512, 4), (2, 512, 4), (4, 256, 4), (8, 256, 4), (16, 128, 4), (16, 256, 8), (32, 128, 4),
        ),
        lambda x, weight, scale: (weight.float() @ x) * scale, {},
    ),
)  # fmt: skip
