"""Parser for the body of a function: the statements between its braces.

The result holds instructions with their source lines, registers, variables, labels and branch tables, under
names that are unique in the function. Any opcode parses; its meaning is not checked here.

Forms: PTX ISA, "Statements", "Instructions" and "Control Flow Directives".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from memsim.instruction import Place
from tests.ptx_front import declarations
from tests.ptx_front.lexer import NAME, Cursor
from tests.ptx_front.operand_parser import call_target, operands, register
from tests.ptx_front.program import Operand, PtxInstruction, PtxRegister, PtxSymbol, PtxVariable
from tests.ptx_front.scope import Scope
from tests.ptx_front.sourcelines import SourceLines

# Guard, opcode with modifiers, and the `;` if there are no operands. Not a label: no ':' follows.
_INSTRUCTION = re.compile(
    rf"\s*(?:@\s*(!?)\s*({NAME})\s+)?([a-z]\w*(?:\.\w+(?:::\w+)*)*)(?:(\s*;)|(?=[\s(\[{{])(?!\s*:))",
    re.ASCII,
)
_BRANCHES = {"bra", "brx"}


@dataclass
class Body:
    """The declarations and instructions of one function."""

    registers: dict[str, str] = field(default_factory=dict)
    variables: dict[str, PtxVariable] = field(default_factory=dict)
    instructions: list[PtxInstruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Jump:
    """A use of a label that may be defined later: by an instruction (its index) or by a branch table."""

    user: int | str
    name: str
    start: int
    scope: Scope


class BodyParser:
    """Parses one body."""

    def __init__(self, cursor: Cursor, lines: SourceLines) -> None:
        self.cursor = cursor
        self.lines = lines
        self.body = Body()
        self.jumps: list[_Jump] = []
        self.source: Place | None = None

    def parse(self, scope: Scope) -> Body:
        """Parse `{ ... }`; `scope` is the function's scope, with its parameters."""
        self._block(scope)
        self._resolve_jumps()
        return self.body

    def _block(self, scope: Scope) -> None:
        cursor = self.cursor
        start = cursor.start()
        cursor.expect("{", "at the start of the body")
        while not cursor.accept("}"):
            match = _INSTRUCTION.match(cursor.text, cursor.position)
            if match:
                self._instruction(match, scope)
                continue
            token = cursor.peek()
            if token == "{":
                self._block(scope.nested())
            elif token.startswith("."):
                self._directive(token, scope)
            elif cursor.peek_kind() == "name":
                self._label(scope)
            elif not token:
                raise cursor.error("this '{' is never closed", start)
            else:
                raise cursor.expected("an instruction, a label, a directive or '}'")

    def _instruction(self, match: re.Match[str], scope: Scope) -> None:
        cursor = self.cursor
        negated, guard_name, name, no_operands = match.groups()
        cursor.position = match.end()
        guard = self._guard(guard_name, match.start(2), scope) if guard_name else None
        opcode, *modifiers = name.split(".")
        start = match.start(3) if guard is None else match.start() + match[0].index("@")
        line, column = cursor.source.position(start)
        values: tuple[Operand, ...]
        if no_operands and opcode in (*_BRANCHES, "call"):
            cursor.position = match.start(4)
            raise cursor.expected(f"what {opcode} goes to")
        if no_operands:
            values = ()
        elif opcode in _BRANCHES:
            values = self._branch(opcode, scope)
        elif opcode == "call":
            values = (call_target(cursor, scope),)
        else:
            values = operands(cursor, scope)
        self.body.instructions.append(
            PtxInstruction(opcode, tuple(modifiers), values, guard, bool(negated), self.source, line, column)
        )

    def _guard(self, name: str, start: int, scope: Scope) -> PtxRegister:
        guard = scope.find(name)
        if not isinstance(guard, PtxRegister):
            raise self.cursor.error(f"predicate '{name}' is not declared", start)
        return guard

    def _branch(self, opcode: str, scope: Scope) -> tuple[Operand, ...]:
        """`bra label;` or `brx.idx index, table;`. Labels are resolved at the end of the body."""
        cursor = self.cursor
        values: tuple[Operand, ...] = ()
        if opcode == "brx":
            values = (register(cursor, scope),)
            cursor.expect(",", "after the index")
        start = cursor.start()
        name = cursor.take_kind("name", "a label")
        cursor.expect(";", "after the label")
        self.jumps.append(_Jump(len(self.body.instructions), name, start, scope))
        return (*values, PtxSymbol(name))

    def _resolve_jumps(self) -> None:
        """Check that every label exists and replace uses by the label's unique name."""
        body = self.body
        for jump in self.jumps:
            label = jump.scope.find_label(jump.name)
            if isinstance(jump.user, int) and body.instructions[jump.user].opcode == "brx":
                known, kind = label in body.tables, "branch table"
            else:
                known, kind = label in body.labels, "label"
            if label is None or not known:
                raise self.cursor.error(f"{kind} '{jump.name}' is not defined", jump.start)
            if label == jump.name:
                continue
            if isinstance(jump.user, str):
                targets = body.tables[jump.user]
                body.tables[jump.user] = tuple(label if t == jump.name else t for t in targets)
                continue
            old = body.instructions[jump.user]
            body.instructions[jump.user] = replace(old, operands=(*old.operands[:-1], PtxSymbol(label)))

    def _label(self, scope: Scope) -> None:
        cursor = self.cursor
        start = cursor.start()
        name = cursor.take()
        if not cursor.accept(":"):
            raise cursor.expected("':' after the label, or operands after the opcode")
        if name in scope.labels or name in scope.names:
            raise cursor.error(f"'{name}' is declared twice in this scope", start)
        unique = scope.labels[name] = scope.unique(name)
        if cursor.accept(".branchtargets"):
            self.body.tables[unique] = self._targets(scope, unique)
        elif cursor.accept(".calltargets"):
            self._until_semicolon()
        elif cursor.accept(".callprototype"):
            self._prototype(scope)
        else:
            self.body.labels[unique] = len(self.body.instructions)

    def _targets(self, scope: Scope, table: str) -> tuple[str, ...]:
        """`a, b, c;` of `.branchtargets`."""
        cursor = self.cursor
        targets: list[str] = []
        while True:
            start = cursor.start()
            name = cursor.take_kind("name", "a label")
            self.jumps.append(_Jump(table, name, start, scope))
            targets.append(name)
            if cursor.accept(";"):
                return tuple(targets)
            cursor.expect(",", "or ';' after the label")

    def _prototype(self, scope: Scope) -> None:
        """`(.param .b32 _) _ (.param .b64 _);`: the syntax is checked, the contents are not used."""
        cursor = self.cursor
        if cursor.peek() == "(":
            declarations.parameters(cursor, scope.nested())
        cursor.expect("_", "in place of the name")
        if cursor.peek() == "(":
            declarations.parameters(cursor, scope.nested())
        self._until_semicolon()

    def _until_semicolon(self) -> None:
        cursor = self.cursor
        while (token := cursor.peek()) != ";":
            if token in ("", "}"):
                raise cursor.expected("';'")
            cursor.take()
        cursor.take()

    def _directive(self, token: str, scope: Scope) -> None:
        cursor = self.cursor
        if token == ".loc":
            self.source = self.lines.loc(cursor)
        elif token == ".reg":
            cursor.take()
            self.body.registers.update(declarations.registers(cursor, scope))
        elif token in declarations.SPACES:
            self.body.variables.update(declarations.variables(cursor, scope))
        elif token == ".pragma":
            self._until_semicolon()
        else:
            raise cursor.expected("a declaration, .loc or .pragma")
