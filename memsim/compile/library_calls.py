"""A program that calls NVRTC, so that a crash or an endless compilation is its own.

It reads what `memsim.compile.libraries` writes, and answers with byte strings, each after its length in
8 bytes; none if the library cannot be loaded. It imports nothing of memsim, so that it starts at once.
"""

import ctypes
import marshal
import os
import sys

COMPILATION = 6  # NVRTC_ERROR_COMPILATION in nvrtc.h
# The assembler within 12.0 never returns (it recurses until the stack is full) for sm_90 code with line
# information of inlined functions; 12.1.105 and later do.
BROKEN_INLINING = (12, 0)
NO_INLINING = b"-no-lineinfo-ia"


def nvrtc(
    library: ctypes.CDLL,
    text: bytes,
    name: bytes,
    options: list[bytes],
    chip: bytes,
    headers: list[tuple[bytes, bytes]],
    instances: list[bytes],
) -> list[bytes]:
    """Compile a source: (status, log, PTX, cubin); a cubin for `chip`, b"" for none.

    options: those of the chip are added in front. headers: by name. instances: of the kernel templates.
    """
    if chip:
        options = [b"-arch=" + chip, *_workarounds(library, chip), *options]
    program = ctypes.c_void_p()
    names, texts = [name for name, _ in headers], [text for _, text in headers]
    library.nvrtcCreateProgram(
        ctypes.byref(program), text, name, len(headers), _strings(texts), _strings(names)
    )
    for instance in instances:
        library.nvrtcAddNameExpression(program, instance)
    status = library.nvrtcCompileProgram(program, len(options), _strings(options))

    def get(what: str) -> bytes:
        size = ctypes.c_size_t()
        getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(max(size.value, 1))
        getattr(library, f"nvrtcGet{what}")(program, buffer)
        return buffer.raw[: size.value]

    log = get("ProgramLog").split(b"\0")[0]
    if status != 0:
        return [b"%d" % status, log, b"", b""]
    return [b"0", log, get("PTX").split(b"\0")[0], get("CUBIN") if chip else b""]


def _workarounds(library: ctypes.CDLL, chip: bytes) -> list[bytes]:
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    broken = (major.value, minor.value) == BROKEN_INLINING and chip.startswith(b"sm_9")
    return [NO_INLINING] if broken else []


def _strings(texts: list[bytes]) -> "ctypes.Array[ctypes.c_char_p]":
    return (ctypes.c_char_p * len(texts))(*texts)


def main() -> None:
    """Answers one question."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the library prints is no answer
    candidates, arguments = marshal.loads(sys.stdin.buffer.read())
    for candidate in candidates:
        try:
            library = ctypes.CDLL(candidate)
        except OSError:
            continue
        for part in nvrtc(library, *arguments):
            answer.write(len(part).to_bytes(8, "little") + part)
        break
    answer.flush()
    os._exit(0)  # the library has nothing to tidy up


if __name__ == "__main__":
    main()
