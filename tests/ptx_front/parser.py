"""Parser for PTX text (ISA 8.x and older), which makes the records of `tests.ptx_front.program`.

What instructions mean is not checked, nor what only an assembler needs (types of operands, which modifiers an
opcode takes).

Forms: PTX ISA, chapters "Syntax" and "Directives".
"""

from __future__ import annotations

from dataclasses import replace

from memsim.errors import MemsimError
from tests.ptx_front import declarations
from tests.ptx_front.body import BodyParser
from tests.ptx_front.lexer import Cursor, PtxText
from tests.ptx_front.program import Function, Parameter, PtxModule, PtxVariable
from tests.ptx_front.scope import Scope
from tests.ptx_front.sourcelines import SourceLines

_LINKAGE = {".visible", ".extern", ".weak", ".common"}
_SKIPPED = {".minnctapersm", ".maxnctapersm", ".maxnreg", ".noreturn"} | {
    *(".maxclusterrank", ".explicitcluster"),
    *(".abi_preserve", ".abi_preserve_control"),
}


def parse(text: str, path: str = "<ptx>") -> PtxModule:
    """Parse PTX text; `path` names it in errors and in the result.

    Raises:
        MemsimError: with line, column and the line itself, and what was expected.
    """
    try:
        return _ModuleParser(PtxText(text, path)).parse()
    except RecursionError:
        raise MemsimError("scopes, vectors or parentheses are nested too deeply", file=path) from None


class _ModuleParser:
    def __init__(self, source: PtxText) -> None:
        self.source = source
        self.cursor = Cursor(source)
        self.lines = SourceLines(source)
        self.scope = Scope()
        self.functions: dict[str, Function] = {}
        self.variables: dict[str, PtxVariable] = {}

    def parse(self) -> PtxModule:
        cursor = self.cursor
        cursor.expect(".version", "at the start of a PTX file")
        cursor.take_kind("number", "a version such as 8.4")
        cursor.expect(".target", "after the version")
        target = cursor.take_kind("name", "a target such as sm_90")
        while cursor.accept(","):
            cursor.take_kind("name", "a target option")
        if cursor.accept(".address_size"):
            cursor.take_integer("32 or 64")
        while cursor.peek_kind() != "end":
            self._statement()
        source = self.source
        return PtxModule(
            source.path, target, self.lines.files, self.functions, self.variables, source.original
        )

    def _statement(self) -> None:
        cursor = self.cursor
        while cursor.peek() in _LINKAGE:
            cursor.take()
        token = cursor.peek()
        if token in (".entry", ".func"):
            self._function()
        elif token in declarations.SPACES:
            self.variables.update(declarations.variables(cursor, self.scope))
        elif token == ".file":
            self._file()
        elif token == ".section":
            self._section()
        elif token == ".pragma":
            self._pragma()
        elif token == ".alias":
            self._alias()
        elif token == ".loc":
            self.lines.loc(cursor)
        else:
            raise cursor.expected("a directive such as .entry, .func or .global")

    def _function(self) -> None:
        cursor = self.cursor
        is_entry = cursor.take() == ".entry"
        scope = self.scope.function()
        returns: tuple[Parameter, ...] = ()
        registers: dict[str, str] = {}
        if cursor.accept(".attribute"):
            cursor.skip_group("(", ")")
        if not is_entry and cursor.peek() == "(":
            returns, registers = declarations.parameters(cursor, scope)
        start = cursor.start()
        name = cursor.take_kind("name", "a function name")
        if name in self.variables:
            raise cursor.error(f"'{name}' is already a variable", start)
        self.scope.declare_symbol(name)
        taken: tuple[Parameter, ...] = ()
        if cursor.peek() == "(":
            taken, more = declarations.parameters(cursor, scope)
            registers |= more
        threads = self._performance()
        if cursor.accept(";"):
            return
        if name in self.functions:
            raise cursor.error(f"function '{name}' is defined twice", start)
        body = BodyParser(cursor, self.lines).parse(scope)
        self.functions[name] = Function(
            name=name,
            is_entry=is_entry,
            parameters=taken,
            returns=returns,
            registers=registers | body.registers,
            variables=body.variables,
            instructions=tuple(body.instructions),
            labels=body.labels,
            tables=body.tables,
            reqntid=threads.get(".reqntid"),
            maxntid=threads.get(".maxntid"),
            cluster=None if ".blocksareclusters" in threads else threads.get(".reqnctapercluster"),
            line=self.source.position(start)[0],
        )

    def _performance(self) -> dict[str, tuple[int, int, int]]:
        """`.maxntid 256, 1, 1 .minnctapersm 2 .pragma "...";`: the numbers of threads and of blocks in a
        cluster.
        """
        cursor = self.cursor
        threads: dict[str, tuple[int, int, int]] = {}
        while True:
            token = cursor.peek()
            if token in (".maxntid", ".reqntid", ".reqnctapercluster"):
                cursor.take()
                if cursor.peek_kind() != "number":
                    raise cursor.expected(
                        "a number of blocks" if "cluster" in token else "a number of threads"
                    )
                x, y, z = (*self._integers(), 1, 1)[:3]
                threads[token] = (x, y, z)
            elif token == ".blocksareclusters":  # the grid counts clusters of any size
                threads[cursor.take()] = (1, 1, 1)
            elif token in _SKIPPED:
                cursor.take()
                self._integers()
            elif token == ".attribute":
                cursor.take()
                cursor.skip_group("(", ")")
            elif token == ".pragma":
                self._pragma()
            else:
                return threads

    def _integers(self) -> list[int]:
        cursor = self.cursor
        found: list[int] = []
        while cursor.peek_kind() == "number":
            found.append(cursor.take_integer())
            if not cursor.accept(","):
                break
        return found

    def _file(self) -> None:
        cursor = self.cursor
        cursor.take()
        cursor.take_integer("a file number")
        cursor.take_kind("string", "a file path")
        for what in ("a timestamp", "a size in bytes"):
            if not cursor.accept(","):
                break
            cursor.take_integer(what)

    def _section(self) -> None:
        cursor = self.cursor
        cursor.take()
        cursor.take_kind("directive", "a section name")
        cursor.skip_group("{", "}")

    def _pragma(self) -> None:
        cursor = self.cursor
        cursor.take()
        cursor.take_kind("string", "a pragma in quotes")
        while cursor.accept(","):
            cursor.take_kind("string", "a pragma in quotes")
        cursor.expect(";", "after the pragma")

    def _alias(self) -> None:
        cursor = self.cursor
        cursor.take()
        alias = cursor.take_kind("name", "an alias")
        cursor.expect(",", "after the alias")
        start = cursor.start()
        name = cursor.take_kind("name", "a function")
        if name not in self.functions:
            raise cursor.error(f"function '{name}' is not defined in this file", start)
        cursor.expect(";", "after the alias")
        self.scope.declare_symbol(alias)
        self.functions[alias] = replace(self.functions[name], name=alias)
