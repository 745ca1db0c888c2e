"""The module around the instructions: directives, functions, comments, source lines."""

from __future__ import annotations

import pytest

from memsim.instruction import Place
from memsim.ptx.parser import parse
from tests.ptx.snippets import HEADER, kernel, module


def test_header() -> None:
    found = parse(".version 8.4\n.target sm_90a, texmode_independent, debug\n.address_size 64\n", "x.ptx")
    assert (found.path, found.target) == ("x.ptx", "sm_90a")
    assert parse(".version 7.0 .target sm_70 .address_size 32").target == "sm_70"
    assert parse(".version 7.0 .target sm_70").target == "sm_70"


def test_text_and_path_are_kept() -> None:
    text = HEADER + "// a comment\r\n.entry k { ret; }\r\n"
    found = parse(text)
    assert (found.text, found.path, found.entries) == (text, "<ptx>", ("k",))


def test_comments_and_preprocessor_lines_are_not_read() -> None:
    found = parse(
        '// " not a string\n.version 8.4 /* /* " */ .target sm_90\n# 1 "file"\n.address_size 64\n'
        ".entry k /* ( */ ()\n{ .reg .b32 %r<2>; add.s32 /* a,\n b */ %r1, // ;\n %r1, 1; }"
    )
    (instruction,) = found.functions["k"].instructions
    assert instruction.name == "add.s32"
    assert (instruction.line, instruction.column) == (6, 20)


FUNCTIONS = """
.visible .func (.param .b32 r) f(.param .b64 p);
.extern .func vprintf(.param .b64 a, .param .b64 b);
.visible .func (.param .b32 r) f(.param .b64 p) .noreturn { ret; }
.weak .func .attribute(.unified(1, 2)) g { ret; }
.visible .entry k1(.param .u64 a) .maxntid 256, 2 .minnctapersm 2 .maxnreg 64 { ret; }
.entry k2 .reqntid 8, 8, 8 .reqnctapercluster 2, 1, 1 .explicitcluster .pragma "nounroll", "x"; { ret; }
.entry k3() .maxntid 32 .reqnctapercluster 2 .blocksareclusters .maxclusterrank 8 .attribute(.x) {}
.func later(); .alias again, f;
"""


def test_functions() -> None:
    found = module(FUNCTIONS)
    assert list(found.functions) == ["f", "g", "k1", "k2", "k3", "again"]
    assert found.entries == ("k1", "k2", "k3")
    limits = {name: (f.maxntid, f.reqntid) for name, f in found.functions.items() if f.is_entry}
    assert limits == {"k1": ((256, 2, 1), None), "k2": (None, (8, 8, 8)), "k3": ((32, 1, 1), None)}
    assert {name: f.cluster for name, f in found.functions.items() if f.cluster} == {"k2": (2, 1, 1)}
    assert found.functions["again"].name == "again"
    assert found.functions["again"].instructions == found.functions["f"].instructions
    assert [f.line for f in found.functions.values()] == [7, 8, 9, 10, 11, 7]


def test_sections_and_pragmas_are_skipped() -> None:
    found = module(
        '.pragma "nounroll";\n.section .debug_info { .b8 1 .b32 L1+4 L1: .b64 .debug_abbrev }\n'
        '.file 1 "a.cu", 1700000000, 42\n@@DWARF .byte 0x00\n.entry k { .pragma "unroll 4"; ret; }'
    )
    assert found.files == {1: "a.cu"}
    assert len(found.functions["k"].instructions) == 1


LINES = """
.entry k() {
  ret;
  .loc 1 40 3
  ret;
  ret;
  .loc 2 7 1
  ret;
  .loc 1 0 3
  ret;
  .loc 1 40 3
  .loc 1 5 2, function_name $Linfo0, inlined_at 1 40 3
  ret;
  .loc 2 9 2, function_name $Linfo0+7, inlined_at 1 5 2
  ret;
  .loc 1 41 3
  .loc 1 5 2, function_name $Linfo0, inlined_at 1 41 3
  .loc 2 9 2, function_name $Linfo1, inlined_at 1 5 2
  ret;
  .loc 2 9 3, function_name nowhere, inlined_at 1 99 1
  ret;
  .loc 3 1 1
  ret;
}
.file 1 "dir/kernel.cu"
.file 2 "C:\\\\cuda\\\\header \\"x\\".cuh", 12, 34
.section .debug_str {
$Linfo0:
.b8 95,90,49,102,118,0
.b8 0
  .b8 103 .b8 0
$Linfo1: .b8 104,0
}
"""


def test_source_lines() -> None:
    a, b = "dir/kernel.cu", 'C:\\cuda\\header "x".cuh'
    k40 = Place(a, 40, 3)
    assert [i.source for i in module(LINES).functions["k"].instructions] == [
        None,
        k40,
        k40,
        Place(b, 7, 1),
        None,
        Place(a, 5, 2, ((a, 40),)),
        Place(b, 9, 2, ((a, 5), (a, 40))),
        Place(b, 9, 2, ((a, 5), (a, 41))),
        Place(b, 9, 3, ((a, 99),)),
        Place("<file 3>", 1, 1),
    ]


@pytest.mark.parametrize(
    ("header", "belongs_to_the_toolkit"),
    [
        ("/x/site-packages/nvidia/cuda_runtime/include/cuda_fp16.hpp", True),
        ("/x/site-packages/nvidia/cu13/include/cuda_fp16.hpp", True),
        ("/usr/local/cuda/bin/../targets/x86_64-linux/include/cuda/pipeline", True),
        ("/usr/local/cuda-12.4/include/cuda_pipeline_helpers.h", True),
        ("C:\\\\NVIDIA GPU Computing Toolkit\\\\CUDA\\\\v12.4\\\\include\\\\mma.h", True),
        ("__nv_nvrtc_builtin_header.h", True),
        ("include/tile.cuh", False),
        ("/home/me/cuda-kernels/include/tile.cuh", False),
        ("/home/me/cuda_fp16.hpp", False),
    ],
)
def test_what_is_inlined_from_the_toolkit_is_the_caller_s(header: str, belongs_to_the_toolkit: bool) -> None:
    text = f"""
    .entry k() {{
      .loc 1 40 3
      .loc 1 5 2, function_name $L0, inlined_at 1 40 3
      .loc 2 9 2, function_name $L0, inlined_at 1 5 2
      ret;
      .loc 2 12 2, function_name $L0, inlined_at 2 9 2
      ret;
      .loc 2 7 7
      ret;
    }}
    .file 1 "kernel.cu"
    .file 2 "{header}"
    """
    places = [(i.source.file, i.source.line) for i in module(text).functions["k"].instructions if i.source]
    name = header.replace("\\\\", "\\")
    inside = [("kernel.cu", 5)] * 2 if belongs_to_the_toolkit else [(name, 9), (name, 12)]
    assert places == [*inside, (name, 7)]


def test_source_line_does_not_pass_into_the_next_function() -> None:
    found = module(".entry a { .loc 1 2 3 ret; } .entry b { ret; }").functions
    assert [f.instructions[0].source for f in found.values()] == [Place("<file 1>", 2, 3), None]


@pytest.mark.parametrize("body", ["", "{}", "{ { } } ", "L: M:"])
def test_bodies_without_instructions(body: str) -> None:
    assert kernel(body).instructions == ()


def test_records_cannot_be_changed() -> None:
    (instruction,) = kernel("ret;").instructions
    with pytest.raises(AttributeError):
        instruction.opcode = "exit"  # type: ignore[misc]
