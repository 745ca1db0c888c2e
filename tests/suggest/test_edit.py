"""A change of a layout as it is written into a source, and where it cannot be."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.analysis import analyze_trace
from memsim.suggest.edit import Edit
from memsim.suggest.layout_edit import edit
from memsim.suggest.maps import Map, Padding, XorSwizzle
from memsim.suggest.proposals import growth
from memsim.suggest.tiles import tiles
from memsim.suggest.writing import writing_of_array
from tests.traces import Request, make_trace, site


def written(source: str, change: Map, size: int, line: int = 2) -> Edit | None:
    """The change of the array `t` of `size` bytes, which a load on a line reads to its end."""
    last = Request(size - 4 - np.arange(32) * 0)
    analysis = analyze_trace(
        make_trace(
            (site(array="t", line=line), [last]),
            arrays=(("t", "shared", 0, size),),
            sources={"kernel.cu": source},
        )
    )
    (tile,) = tiles(analysis)
    how = writing_of_array(analysis, tile)
    return None if how is None else edit(how, change, growth(tile, change))


@pytest.mark.parametrize(
    ("before", "after", "change", "size"),
    [
        (
            "__shared__ float t[32][32];\nt[y][x];",
            "__shared__ float t[32][32 + 1];\nt[y][x];",
            Padding(128, 4),
            4096,
        ),
        (
            "__shared__ float t[2][8][1 << 5];\nt[b][y][x];",
            "__shared__ float t[2][8][(1 << 5) + 4];\nt[b][y][x];",
            Padding(128, 16),
            2048,
        ),
        (
            "__shared__ float t[2][8][32];\nt[b][y][x];",
            "__shared__ float t[2][8 + 1][32];\nt[b][y][x];",
            Padding(1024, 128),
            2048,
        ),
        (
            "#define PAD 0\n__shared__ float t[8][32 + PAD];\nt[y][x];",
            "#define PAD 2\n__shared__ float t[8][32 + PAD];\nt[y][x];",
            Padding(128, 8),
            1024,
        ),
        (
            "constexpr int N = 8, LD = 32;\n__shared__ float t[N * LD];\n*(t + y * LD);",
            "constexpr int N = 8, LD = 33;\n__shared__ float t[N * LD];\n*(t + y * LD);",
            Padding(128, 4),
            1024,
        ),
        (
            "const int N = 32;\n__shared__ float t[N * N];\nt[y * N + x] = t[x * N + y];",
            "const int N = 32;\n__shared__ float t[N * (N + 1)];\nt[y * (N + 1) + x] = t[x * (N + 1) + y];",
            Padding(128, 4),
            4096,
        ),
        (
            "__shared__ float t[64];\nt[32 * y + x];",
            "__shared__ float t[64 + 2];\nt[33 * y + x];",
            Padding(128, 4),
            256,
        ),
        (
            "__shared__ float t[64];\nt[i ^ 1];",
            "__shared__ float t[64 + 8];\nt[(i ^ 1) + (i ^ 1) / 32 * 4];",
            Padding(128, 16),
            256,
        ),
        (
            "__shared__ float t[4][64];\nt[y][2 * x];",
            "__shared__ float t[4][64 + 2];\nt[y][2 * x + (2 * x) / 32];",
            Padding(128, 4),
            1024,
        ),
        (
            "__shared__ float t[32][32];\nt[y][x] = t[x][y + 1];",
            "__shared__ float t[32][32];\nt[y][x ^ y] = t[x][(y + 1) ^ x];",
            XorSwizzle(128, 5, 2),
            4096,
        ),
        (
            "__shared__ float t[32][32];\nt[y][x];",
            "__shared__ float t[32][32];\nt[y][x ^ ((y >> 1 & 3) << 2)];",
            XorSwizzle(256, 2, 4),
            4096,
        ),
        (
            "__shared__ float t[2][8][32];\nt[b][y][x];",
            "__shared__ float t[2][8][32];\nt[b][y][x ^ (y << 2)];",
            XorSwizzle(128, 3, 4),
            2048,
        ),
        (
            "__shared__ float t[8][128];\nt[y][4 * x];",
            "__shared__ float t[8][128];\nt[y][(4 * x) ^ (((4 * x) >> 5 & 1) << 2)];",
            XorSwizzle(128, 1, 4),
            4096,
        ),
        (
            "extern __shared__ float t[];\nt[y * 32 + x];",
            "extern __shared__ float t[];\nt[y * 33 + x];",
            Padding(128, 4),
            4096,
        ),
        (
            "extern __shared__ float t[];\nt[i];",
            "extern __shared__ float t[];\nt[i ^ (i >> 5 & 31)];",
            XorSwizzle(128, 5, 2),
            4096,
        ),
        (
            "__shared__ __half t[16][64];\n&t[r][c * 8];",
            "__shared__ __half t[16][64];\n&t[r][(c * 8) ^ ((r & 7) << 3)];",
            XorSwizzle(128, 3, 4),
            2048,
        ),
        # Numbers are folded, and what is added to a number is added to it.
        (
            "__shared__ float t[256];\nt[0] = t[i];",
            "__shared__ float t[256];\nt[0] = t[i ^ (i >> 5 & 7)];".replace(" & 7", ""),
            XorSwizzle(128, 3, 2),
            1024,
        ),
        (
            "const int N = 31;\n__shared__ float t[32][N+1];\nt[y][x];",
            "const int N = 31;\n__shared__ float t[32][N + 2];\nt[y][x];",
            Padding(128, 4),
            4096,
        ),
        # An index on several lines keeps them.
        (
            "__shared__ float t[32][32];\nt[y][x // column\n + 1] = 0;",
            "__shared__ float t[32][32];\nt[y][(x // column\n + 1) ^ y] = 0;",
            XorSwizzle(128, 5, 2),
            4096,
        ),
        (
            "__shared__ float t[1024];\nt[\n  i\n];",
            "__shared__ float t[1024 + 32];\nt[\n  i + i / 32\n];",
            Padding(128, 4),
            4096,
        ),
        # A factor may be a sum in parentheses, and an extent a comment.
        (
            "const int R = 8;\nextern __shared__ float t[/* rows */];\nt[(y + 2) * (2 * R + 16) + x];",
            "const int R = 8;\nextern __shared__ float t[/* rows */];\nt[(y + 2) * (2 * R + 17) + x];",
            Padding(128, 4),
            4096,
        ),
        (
            "const int N = 16;\n__shared__ float t[2048];\nt[(N + N) *\n y + x];",
            "const int N = 16;\n__shared__ float t[2048 + 64];\nt[(N + N + 1) *\n y + x];",
            Padding(128, 4),
            8192,
        ),
        (  # n is not known
            "extern __shared__ float t[];\nt[y * (n + 32) + x];",
            "extern __shared__ float t[];\nt[y * (n + 32) + x + (y * (n + 32) + x) / 32];",
            Padding(128, 4),
            4096,
        ),
        # The index is in a macro, behind a pointer, in a function, and the size is in the launch.
        (
            "#define t(i, j) t[((i) << 5) + (j)]\n__shared__ float t[1024];\nt(y, x) = t(x, y);",
            "#define t(i, j) t[((i) * 33) + (j)]\n__shared__ float t[1024 + 32];\nt(y, x) = t(x, y);",
            Padding(128, 4),
            4096,
        ),
        (
            "extern __shared__ float t[];\nfloat *a = t, *b = &a[n];\na[i] = b[j];",
            "extern __shared__ float t[];\nfloat *a = t, *b = &a[n + n / 32];\n"
            "a[i + i / 32] = b[j + j / 32];",
            Padding(128, 4),
            4096,
        ),
        (
            "float f(const float *p, int i) { return p[i]; }\n__shared__ float t[1024];\nf(t, x) + t[x];",
            "float f(const float *p, int i) { return p[i ^ (i >> 5)]; }\n"
            "__shared__ float t[1024];\nf(t, x) + t[x ^ (x >> 5)];",
            XorSwizzle(128, 5, 2),
            4096,
        ),
        (
            "{ extern __shared__ float t[];\nt[i]; }\n"
            "void f() { kernel<<<1, 32, n * 4>>>(p); kernel<<<1, 32, 512>>>(p); }",
            "{ extern __shared__ float t[];\nt[i ^ (i >> 5 & 31)]; }\n"
            "void f() { kernel<<<1, 32, (n * 4 + 127) / 128 * 128>>>(p); kernel<<<1, 32, 512>>>(p); }",
            XorSwizzle(128, 5, 2),
            4096,
        ),
        # A pointer that moves becomes the index of where it is.
        (
            "__shared__ float t[1024];\nfloat *a = t;\na += 4; a[i];",
            "__shared__ float t[1024 + 32];\nint a = 0;\na += 4; t[a + i + (a + i) / 32];",
            Padding(128, 4),
            4096,
        ),
        (
            "__shared__ float t[1024];\nfloat *a = &t[4 * x];\nfor (;; a++) { *a = *(a + 1) + a[0]; }",
            "__shared__ float t[1024];\nint a = 4 * x;\n"
            "for (;; a++) { *(t + (a ^ (a >> 5))) = *(t + ((a + 1) ^ ((a + 1) >> 5))) + t[a ^ (a >> 5)]; }",
            XorSwizzle(128, 5, 2),
            4096,
        ),
        (
            "void f(half *s) { half *p = (s + x);\ng((void *)p, *(int *)(p + 8)); p += 512; }\n"
            "__shared__ half t[2048];\nf(t);",
            "void f(half *s) { int p = (x);\ng((void *)(s + p + p / 64 * 8), "
            "*(int *)(s + p + 8 + (p + 8) / 64 * 8)); p += 512; }\n__shared__ half t[2048 + 256];\nf(t);",
            Padding(128, 16),
            4096,
        ),
        # Types by the names that the source gives them, and as a function's template deduces them.
        (
            "typedef float real;\nextern __shared__ real t[];\nt[i];",
            "typedef float real;\nextern __shared__ real t[];\nt[i + i / 32];",
            Padding(128, 4),
            4096,
        ),
        (
            "#define real double\nextern __shared__ char t[];\nreal *s = (real *)t;\ns[i];",
            "#define real double\nextern __shared__ char t[];\nreal *s = (real *)t;\ns[i + i / 16];",
            Padding(128, 8),
            4096,
        ),
        (
            "template <class V> void f(V *p) { p[i]; V *q = p + n; q[i]; }\n__shared__ float t[1024];\nf(t);",
            "template <class V> void f(V *p) { p[i + i / 32]; V *q = p + n + n / 32; q[i + i / 32]; }\n"
            "__shared__ float t[1024 + 32];\nf(t);",
            Padding(128, 4),
            4096,
        ),
        # Pointers in an array.
        (
            "extern __shared__ float t[];\nfloat *a = t, *b = a + n;\nfloat *s[2] = {a, b};\n"
            "s[i % 2][j]; *(s[0] + k); f(s[1]);\nvoid f(float *p) { p[x]; }",
            "extern __shared__ float t[];\nfloat *a = t, *b = a + n + n / 32;\nfloat *s[2] = {a, b};\n"
            "s[i % 2][j + j / 32]; *(s[0] + k + k / 32); f(s[1]);\nvoid f(float *p) { p[x + x / 32]; }",
            Padding(128, 4),
            4096,
        ),
        # An address as a number, to which bytes are added.
        (
            "__shared__ half t[2048];\nuint32_t at = __cvta_generic_to_shared(t);\n"
            "t[i]; g(at + (y * 64 + x) * sizeof(half), at + 2 * n, at);",
            "__shared__ half t[2048 + 256];\nuint32_t at = __cvta_generic_to_shared(t);\n"
            "t[i + i / 64 * 8]; g(at + (y * 64 + x + (y * 64 + x) / 64 * 8) * sizeof(half), "
            "at + 2 * n + (2 * n) / 128 * 16, at);",
            Padding(128, 16),
            4096,
        ),
        # Rows of a tile for tensor cores are as far apart as they are said to be.
        (
            "__shared__ half t[32][64];\nload_matrix_sync(f, &t[y][0], 64);\nt[y][x];",
            "__shared__ half t[32][64 + 8];\nload_matrix_sync(f, &t[y][0], 72);\nt[y][x];",
            Padding(128, 16),
            4096,
        ),
        (
            "const int N = 64;\n__shared__ half t[32 * N];\nwmma::store_matrix_sync(t + y * N, f, N, m);",
            "const int N = 64;\n__shared__ half t[32 * (N + 8)];\n"
            "wmma::store_matrix_sync(t + y * (N + 8), f, N + 8, m);",
            Padding(128, 16),
            4096,
        ),
        (
            "void f(half *s) { load_matrix_sync(f, s + i * 256, 32); }\n"
            "__shared__ half t[2048];\nf(t); t[x];",
            "void f(half *s) { load_matrix_sync(f, s + i * 256 + (i * 256) / 16 * 8, 48); }\n"
            "__shared__ half t[2048 + 1024];\nf(t); t[x + x / 16 * 8];",
            Padding(32, 16),
            4096,
        ),
        # The same bytes as elements of another type: each index counts its own.
        (
            "__shared__ float t[1024];\n((float4 *)t)[x] = v; t[i];",
            "__shared__ float t[1024 + 128];\n((float4 *)t)[x + x / 8] = v; t[i + i / 32 * 4];",
            Padding(128, 16),
            4096,
        ),
        (
            "__shared__ float t[1024];\nreinterpret_cast<float4 *>(t)[x] = v; t[i];",
            "__shared__ float t[1024];\nreinterpret_cast<float4 *>(t)[x ^ (x >> 4 & 1)] = v; "
            "t[i ^ ((i >> 6 & 1) << 2)];",
            XorSwizzle(256, 1, 4),
            4096,
        ),
        (
            "extern __shared__ uint8_t t[];\nhalf *a = (half *)t;\na[i]; f((void *)(a + n));",
            "extern __shared__ uint8_t t[];\nhalf *a = (half *)t;\n"
            "a[i ^ ((i >> 6 & 7) << 3)]; f((void *)(a + (n ^ ((n >> 6 & 7) << 3))));",
            XorSwizzle(128, 3, 4),
            4096,
        ),
        (
            "void f(half *p, int i) { p[i]; }\nextern __shared__ uint8_t t[];\n"
            "half *a = (half *)t;\nf(a, x); half *b = a + 8 * n; f(b, y);",
            "void f(half *p, int i) { p[i + i / 64 * 8]; }\nextern __shared__ uint8_t t[];\n"
            "half *a = (half *)t;\nf(a, x); half *b = a + 8 * n + (8 * n) / 64 * 8; f(b, y);",
            Padding(128, 16),
            4096,
        ),
        (
            "{ extern __shared__ float t[];\nt[i]; }\nvoid f() { kernel<<<1, 32, n * 4>>>(p); }",
            "{ extern __shared__ float t[];\nt[i + i / 32]; }\n"
            "void f() { kernel<<<1, 32, n * 4 + (n * 4) / 32>>>(p); }",
            Padding(128, 4),
            4096,
        ),
    ],
)
def test_what_is_written(before: str, after: str, change: Map, size: int) -> None:
    found = written(before, change, size)
    assert found is not None
    assert found.new == after
    old, new = before.splitlines(), after.splitlines()
    assert len(old) == len(new)
    assert [(each.line, each.old, each.new) for each in found.lines] == [
        (number, one, two) for number, (one, two) in enumerate(zip(old, new), 1) if one != two
    ]


@pytest.mark.parametrize(
    ("source", "change"),
    [
        ("__shared__ float t[32][32];\nfloat *p = &t[0][0]; t[y]", XorSwizzle(128, 5, 2)),
        ("__shared__ float t[32][32];\nf(t); t[y][x];", XorSwizzle(128, 5, 2)),
        ("__shared__ float t[32][32];\nt[y][x++];", XorSwizzle(128, 5, 2)),
        ("__shared__ float t[32][32];\nt[y][x\n + i++];", XorSwizzle(128, 5, 2)),
        ("__shared__ float t[32][32];\nt[y][x];", Padding(256, 4)),  # every second row
        ("__shared__ float t[128][8];\nt[y][x];", XorSwizzle(128, 2, 4)),  # bits of the row would change
        ("__shared__ float t[1024];\np = t;", Padding(128, 4)),
        ("__shared__ float t[1024];\nfloat *s[] = {t};\nf(s);", Padding(128, 4)),
        ("__shared__ float t[1024];\nfloat *s[] = {t};\nfloat *p = other ? s[0] : q;", Padding(128, 4)),
        ("void f(void *p) { g((int *)p); }\n__shared__ float t[1024];\nf(t);", Padding(128, 4)),
        ("extern __shared__ char t[];\nV *s = (V *)t;\ns[i];", Padding(128, 4)),  # of any size
        ("__shared__ float t[1024];\nint a = __cvta_generic_to_shared(t);\na += 4; g(a);", Padding(128, 4)),
        ("__shared__ half t[32][64];\nload_matrix_sync(f, &t[y][0], 64);", XorSwizzle(128, 3, 4)),
        ("__shared__ half t[32][64];\nload_matrix_sync(f, &t[y][0], n);", Padding(128, 16)),
        ("__shared__ half t[2048];\nload_matrix_sync(f, &t[y], 32);", Padding(128, 16)),  # not the row
        ("__shared__ float t[1024];\nload_matrix_sync(f, &t[y], 16);", Padding(32, 16)),  # gaps in rows
        ("__shared__ half t[2048];\nload_matrix_sync(f, &t[y], 64);", Padding(128, 4)),  # not a multiple
        ("__shared__ float t[N][32];\nt[y][x];", Padding(128, 4)),  # N is not known
        ("__shared__ float t[32 * 32];\nf(t[32 * y + 32 * x]);", XorSwizzle(96, 1, 2)),
        ("#define t(i) t[i]\n__shared__ float t[1024];\nt(x++);", XorSwizzle(128, 5, 2)),
        ("#define t(i) t[i]\n{ __shared__ float t[N]; }\n__shared__ float t[1024];\nt(x);", Padding(128, 4)),
        ("__shared__ float t[1024];\nfloat *a = t;\na += 4; f(a);", Padding(128, 4)),
        ("__shared__ float t[1024];\nfloat *a = t;\na += 4; float *b = a + 1; b[i];", Padding(128, 4)),
        ("__shared__ float t[1024];\nfloat *a = t;\na[i] = *a++;", Padding(128, 4)),
        ("__shared__ float t[1024];\nfloat *a = t;\na = other; a[i];", Padding(128, 4)),
        ("__shared__ float t[1024];\nfloat4 *a = (float4 *)t;\na[i];", Padding(128, 4)),
        ("__shared__ float t[1024];\n((float4 *)t)[x] = v;", Padding(128, 4)),  # 16 bytes are not aligned
        ("__shared__ float t[1024];\n((float4 *)t)[x] = v;", XorSwizzle(128, 5, 2)),  # nor side by side
        ("__shared__ float t[1024];\n((T *)t)[x] = v;", Padding(128, 16)),  # of any size
        ("void f(float *p) { p[1]; }\n__shared__ float t[1024];\nf(t); f(other);", Padding(128, 4)),
        ("void f(float *p) { p++; }\n__shared__ float t[1024];\nf(t);", Padding(128, 4)),
    ],
)
def test_what_cannot_be_written_by_rules(source: str, change: Map) -> None:
    assert written(source, change, 4096) is None


def test_what_a_row_of_another_length_would_break_is_asserted() -> None:
    text = "const int N = 32;\n    __shared__ float t[N][N], u[4];\nt[y][x];"
    found = written(text, XorSwizzle(128, 5, 2), 4096)
    assert found is not None
    assertion = '\n    static_assert(N % 32 == 0, "of this layout");'
    assert found.new == text.replace("u[4];", f"u[4];{assertion}").replace("[x]", "[x ^ (y & 31)]")
    first, second = found.lines
    assert (first.line, first.old, first.new) == (2, text.splitlines()[1], text.splitlines()[1] + assertion)
    assert (second.line, second.old) == (3, "t[y][x];")
    assert found.runs == [(2, 3, found.new.splitlines()[1:])]


def test_comments_other_arrays_and_other_scopes_stay_as_they_are() -> None:
    source = """\
__global__ void a() { __shared__ float t[32][32]; t[x][y]; }
__global__ void b() {
    __shared__ float t[32][32], at[4][4]; // t[y][x]
    at[y][x] = s.t[y][x] + p->t[y][x] + sizeof(t);  /* t[1][2] */
    t[y][x] = 0;
}
void c() { t[y][x]; }
"""
    found = written(source, XorSwizzle(128, 5, 2), 4096, line=5)
    assert found is not None
    assert found.new == source.replace("    t[y][x] = 0", "    t[y][x ^ y] = 0")
    other = written(source, XorSwizzle(128, 5, 2), 4096, line=1)
    assert other is not None
    assert other.new == source.replace("t[x][y]", "t[x][y ^ x]")


@pytest.mark.parametrize(
    ("use", "seen"),
    [
        ("t[y][x] = 1;", True),
        ("*(float4 *)&t[y][4 * x] = v;", True),
        ("*reinterpret_cast<float4 *>(&t[y][4 * x]) = v;", True),
        ("__cvta_generic_to_shared(&t[y][x]);", True),
        ("__pipeline_memcpy_async(&t[y][x], in, 16);", True),
        ("sum += v & t[y][x];", True),
        ("float *p = &t[0][0];", False),
        ("load(&t[y][x], 32);", False),
        ("load(v, &t[y][x], 32);", False),
        ("return &t[y][x];", False),
        ("load(t);", False),
    ],
)
def test_addresses_that_are_handed_on_are_told(use: str, seen: bool) -> None:
    found = written(f"__shared__ float t[32][32];\nt[y][x] = 0;\n{use}", Padding(128, 4), 4096)
    assert found is not None
    assert found.unseen == (() if seen else (3,))


def test_edits_of_one_file_are_made_together_unless_they_meet() -> None:
    text = "__shared__ float t[32][32];\nt[y][x];"
    one, two = (written(text, change, 4096) for change in (Padding(128, 4), XorSwizzle(128, 5, 2)))
    assert one is not None
    assert two is not None
    both = one.joined(two)
    assert both is not None
    assert both.new == "__shared__ float t[32][32 + 1];\nt[y][x ^ y];"
    assert both.joined(one) == both
    wider = written(text, Padding(128, 8), 4096)
    assert wider is not None
    assert one.joined(wider) is None
    assert one.diff.splitlines()[:4] == [
        "--- a/kernel.cu",
        "+++ b/kernel.cu",
        "@@ -1,2 +1,2 @@",
        "-__shared__ float t[32][32];",
    ]
