"""`sgemm_tuned` with one of its decisions undone, each as a `Spec` with source and PTX."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from memsim.kernels import Spec, catalog
from studies.kernel_ptx import compile_ptx, ptx_path

KERNEL = "sgemm_tuned"
ROWS_OF_LANES = "lanes_in_rows"


@dataclass(frozen=True, slots=True)
class Variant:
    """One decision undone.

    decision: what the kernel does. instead: what the variant does. edits: old text and new text.
    """

    name: str
    decision: str
    instead: str
    edits: tuple[tuple[str, str], ...]

    def source(self) -> str:
        """The kernel's text with the edits made.

        Raises:
            ValueError: what is to be replaced is not there, or not once.
        """
        text = catalog()[KERNEL].source.read_text("utf-8")
        for old, new in self.edits:
            if text.count(old) != 1:
                raise ValueError(f"{self.name}: {text.count(old)} times in {KERNEL}.cu: {old!r}")
            text = text.replace(old, new)
        return text


VARIANTS = (
    Variant(
        ROWS_OF_LANES,
        "lanes in z-order",
        "lanes in rows of 4",
        (
            ("lane % 2 + lane / 8 % 2 * 2;", "lane % 4;"),
            ("lane / 2 % 4 + lane / 16 * 4;", "lane / 4;"),
        ),
    ),
    Variant(
        "no_xor",
        "XOR with 16 in half of the A tile's lines",
        "every line straight",
        (("(a_m ^ (a_k * 4)) + 64 * i", "a_m + 64 * i"), ("(m ^ (k / 4 * 16)) + 8 * i", "m + 8 * i")),
    ),
    Variant(
        "padded",
        "XOR with 16 in half of the A tile's lines",
        "lines padded to 132 floats",
        (
            ("(a_m ^ (a_k * 4)) + 64 * i", "a_m + 64 * i"),
            ("(m ^ (k / 4 * 16)) + 8 * i", "m + 8 * i"),
            ("s_a[2][BK][BM];", "s_a[2][BK][BM + 4];"),
            ("to[1 * BM]", "to[1 * (BM + 4)]"),
            ("to[2 * BM]", "to[2 * (BM + 4)]"),
            ("to[3 * BM]", "to[3 * (BM + 4)]"),
        ),
    ),
    Variant(
        "b_by_registers",
        "B tile by `cp.async`",
        "B tile by registers, as the A tile",
        (
            ("    auto copy_b = [&](int buffer) {", "    float4 b[2];\n    auto copy_b = [&](int buffer) {"),
            (
                "            const unsigned to = __cvta_generic_to_shared(&s_b[buffer][b_k + 4 * i][b_n]);\n"
                "            const float *const from = from_b + (size_t)4 * i * N;\n"
                '            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" '
                ': : "r"(to), "l"(from) : "memory");\n',
                "            STORE4(s_b[buffer][b_k + 4 * i][b_n]) = b[i];\n",
            ),
            ('        asm volatile("cp.async.wait_all;" : : : "memory");\n', ""),
            (
                "    copy_b(0);",
                "    auto fetch_b = [&] {\n"
                "        for (int i = 0; i < 2; ++i) b[i] = LOAD4(from_b[(size_t)4 * i * N]);\n"
                "    };\n"
                "    fetch_b();\n"
                "    copy_b(0);",
            ),
            ("            if (k == 1) copy_b(buffer ^ 1);\n", "            if (k == 1) fetch_b();\n"),
            ("store_a(buffer ^ 1);", "store_a(buffer ^ 1), copy_b(buffer ^ 1);"),
        ),
    ),
    Variant(
        "stored_late",
        "A tile stored two steps before the barrier",
        "stored just before the barrier",
        (
            ("            if (k == 5) store_a(buffer ^ 1);\n", ""),
            (
                "                arrive();\n",
                "                store_a(buffer ^ 1);\n                arrive();\n",
            ),
        ),
    ),
    Variant(
        "along_rows",
        "a thread's sums column by column",
        "row by row",
        (
            ("int j = 0; j < TN; ++j)", "int i = 0; i < TM; ++i)"),
            ("step < TM; ++step", "step < TN; ++step"),
            (
                "const int i = j % 2 == 0 ? step : TM - 1 - step;",
                "const int j = i % 2 == 0 ? step : TN - 1 - step;",
            ),
        ),
    ),
    Variant(
        "no_turn",
        "down one column and up the next",
        "down every column",
        (("j % 2 == 0 ? step : TM - 1 - step", "step"),),
    ),
    Variant(
        "sums_stored",
        "C is alpha times the sums",
        "the sums themselves are stored",
        tuple((f"alpha * sum[i][j + {n}] + beta * c.{x}", f"sum[i][j + {n}]") for n, x in enumerate("xyzw")),
    ),
)


def make_specs(folder: Path) -> list[Spec]:
    """The kernel and its variants, each with source and PTX below `folder`; the kernel comes first.

    Raises:
        MemsimError: NVRTC absent.
    """
    tuned = catalog()[KERNEL]
    texts = {KERNEL: tuned.source.read_text("utf-8")} | {each.name: each.source() for each in VARIANTS}
    home = folder / "kernels"
    (home / "ptx").mkdir(parents=True)
    specs = []
    for name, text in texts.items():
        spec = replace(tuned, name=name, source=home / f"{name}.cu")
        spec.source.write_text(text, "utf-8", newline="\n")
        ptx_path(spec).write_text(compile_ptx(spec), "utf-8", newline="\n")
        specs.append(spec)
    return specs
