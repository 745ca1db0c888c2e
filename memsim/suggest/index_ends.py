"""What the indices of a function's accesses are made of, and between which ends they are in a block.

A variable stands for what it was set to last, `if (x < 0) x = 0;` for max(x, 0), the variable of a loop for
all its values. The conditions behind which an access is narrow what is between the ends.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from memsim.source.syntax import LOOPS, Node, Tree, arguments_of, bare, body_of, fields, outside, walk
from memsim.suggest.index_sums import ONE, ZERO, Atom, IndexSum, operation

_BUILT_IN = re.compile(r"(threadIdx|blockIdx|blockDim|gridDim)\.([xyz])")
WHOLE = re.compile(r"(?!.*\b(?:char|short)\b).*\b(?:int|unsigned|uint|long|u?int(?:32|64)_t|size_t|auto)\b")
_UNSIGNED = re.compile(r"\b(?:unsigned|uint\w*|size_t)\b")
_NEGATED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
_LOGICAL = (*_NEGATED, "&&", "||")
#: What the value may be of what is no whole number: that of a condition.
_OF_FLAGS = ("binary_expression", "parenthesized_expression", "unary_expression")
_CAST = re.compile(r"(?:static_cast\s*<\s*(.*?)\s*>|(int|unsigned|size_t))")


class NotKnown(Exception):
    """An index or a condition that is made of anything else: of data, most often."""


@dataclass(frozen=True, slots=True)
class Test:
    """That a sum is not less, or not greater, than a uniform one. made: of x, from one of `x / n`."""

    of: IndexSum
    is_least: bool
    end: IndexSum
    made: bool = False


class Indices:
    """Of a function. uniform: names that are the same in all threads, beside its parameters."""

    def __init__(self, tree: Tree, function: Node, uniform: Collection[str]) -> None:
        self.tree, self.uniform = tree, uniform
        body = body_of(function)
        assert body is not None  # else it has no accesses
        self.body = body
        self.changes = [(self._target(node), node) for node in walk(body)]
        self.changed = {name for name, _ in self.changes}

    def _target(self, node: Node) -> str:
        """The variable that an assignment or `++` sets, or whose address is taken; else ""."""
        kinds = {"assignment_expression": 0, "update_expression": -1, "pointer_expression": 1}
        if node.type not in kinds or (node.type == "pointer_expression" and node.children[0].type != "&"):
            return ""
        names = [one for one in node.named_children if one.type == "identifier"]
        return self.tree.text(names[0]) if names and node.named_children[0] == names[0] else ""

    def sum(self, node: Node) -> IndexSum:
        """An expression; NotKnown."""
        text, parts = self.tree.text(node), node.named_children
        if node.type == "number_literal" and re.fullmatch(r"(?:0x)?[0-9a-fA-F]+[uUlL]*", text):
            return IndexSum.of(int(text.rstrip("uUlL"), 0))
        if node.type == "identifier":
            return IndexSum.of(self._variable(text, node))
        if node.type == "field_expression" and (found := _BUILT_IN.fullmatch(re.sub(r"\s", "", text))):
            return IndexSum.of(Atom("thread" if found[1] == "threadIdx" else "uniform", found[0]))
        if node.type in ("parenthesized_expression", "subscript_argument_list") and len(parts) == 1:
            return self.sum(parts[0])
        if node.type == "cast_expression" and WHOLE.search(self.tree.text(parts[0])):
            return self.sum(parts[1])
        if node.type == "unary_expression" and node.children[0].type in "+-":
            return self.sum(parts[0]) * IndexSum.of(-1 if node.children[0].type == "-" else 1)
        if node.type == "call_expression":
            return self._called(node)
        if node.type == "conditional_expression":
            return self._either(*parts)
        if node.type != "binary_expression":
            raise NotKnown(text)
        one, two, sign = self.sum(parts[0]), self.sum(parts[1]), node.children[1].type
        if sign in "/%" and (two.is_uniform and two.number != 0):
            return operation(sign, one, two)
        if sign == "<<" and (two.number or -1) >= 0:
            sign, two = "*", IndexSum.of(1 << (two.number or 0))
        if sign not in "+-*":
            raise NotKnown(text)
        return one * two if sign == "*" else one + two if sign == "+" else one - two

    def _called(self, call: Node) -> IndexSum:
        """`min`, `max`, `clamp`, and casts."""
        name, given = self.tree.text(call.children[0]), arguments_of(call)
        cast = _CAST.fullmatch(name)
        if cast is not None and len(given) == 1 and WHOLE.search(cast[1] or cast[2]):
            return self.sum(given[0])
        if name in ("min", "max") and len(given) == 2:
            return operation(name, *map(self.sum, given))
        if name == "clamp" and len(given) == 3:
            value, least, most = map(self.sum, given)
            return operation("min", operation("max", value, least), most)
        raise NotKnown(name)

    def _either(self, condition: Node, one: Node, two: Node) -> IndexSum:
        """`x < 0 ? 0 : x`, which is max(x, 0), and others of that kind."""
        condition = bare(condition)
        if condition.type != "binary_expression" or condition.children[1].type not in _NEGATED:
            raise NotKnown(self.tree.text(condition))
        sign = condition.children[1].type
        left, right = map(self.sum, condition.named_children)
        then, other = self.sum(one), self.sum(two)
        if _is_clamped(then, left) and not _is_clamped(other, left):  # `x > 0 ? x : 0`
            sign, then, other = _NEGATED[sign], other, then
        # Of a test that differs by 1 from what replaces x, `x >= n ? n - 1 : x`, the result is the same.
        apart = (right - then).known.number
        allowed = {"<": (0,), "<=": (0, -1), ">": (0,), ">=": (0, 1)}.get(sign, ())
        if not _is_clamped(other, left) or apart not in allowed:
            raise NotKnown(self.tree.text(condition))
        return operation("max" if sign[0] == "<" else "min", other, then)

    def _variable(self, name: str, node: Node) -> Atom:
        """What a name stands for at a place."""
        for inner, outer in pairwise([node, *outside(node, self.body.parent)]):
            is_loop = outer.type == "for_statement" and inner != outer.child_by_field_name("initializer")
            if is_loop and (loop := self._loop(outer, name)) is not None:
                return loop
            is_block = outer.type == "compound_statement"
            if is_block and (value := self._set(outer, inner, name, node)) is not None:
                return Atom("local", name, (value,))
        if name not in self.uniform or name in self.changed:
            raise NotKnown(name)
        return Atom("uniform", name)

    def _set(self, block: Node, before: Node, name: str, used_at: Node) -> IndexSum | None:
        """What a variable that is declared in a block was set to last, before a statement of it or in it."""
        inside = block.named_children
        value = self._declared(before, name)
        if value is not None and value.end_byte <= used_at.start_byte:
            return self.sum(value)
        for statement in reversed(inside[: inside.index(before)]):
            value = self._declared(statement, name)
            changed = [node for target, node in self._within(statement) if target == name]
            if value is None and not changed:
                continue
            if before.type != "expression_statement" and self._is_set(before, name, used_at):
                break
            if value is not None:
                return self.sum(value)
            if statement.type == "if_statement" and len(changed) == 1:
                condition, then, *other = statement.named_children
                alone = then.named_children[0] if then.type == "compound_statement" else then
                if not other and alone == changed[0].parent and changed[0].children[1].type == "=":
                    return self._either(condition, changed[0].children[2], changed[0].children[0])
            (first, *_) = changed
            is_set = first.type == "assignment_expression" and first.children[1].type == "="
            if statement.type == "expression_statement" and first.parent == statement and is_set:
                return self.sum(first.children[2])
            break
        else:
            return None
        raise NotKnown(name)

    def _is_set(self, statement: Node, name: str, used_at: Node) -> bool:
        """Whether a statement sets a variable before it uses it, or in a loop."""
        around = [one.byte_range for one in (*outside(used_at, statement), statement) if one.type in LOOPS]
        places = [one.start_byte for target, one in self._within(statement) if target == name]
        return any(at < used_at.start_byte or any(a <= at < b for a, b in around) for at in places)

    def is_steady(self, name: str) -> bool:
        """Whether a name stands for the same wherever it is used."""
        declared = re.findall(rf"\b{name}\s*(?:=(?!=)|\{{)", self.tree.text(self.body))
        return len(declared) <= 1 and name not in self.changed

    def _within(self, statement: Node) -> Iterator[tuple[str, Node]]:
        span = statement.byte_range
        return ((name, node) for name, node in self.changes if span[0] <= node.start_byte < span[1])

    def _declared(self, statement: Node, name: str) -> Node | None:
        """The value with which a statement declares a whole number."""
        kind = statement.child_by_field_name("type") if statement.type == "declaration" else None
        for one in statement.named_children if kind is not None else ():
            if one.type == "init_declarator" and self.tree.text(one.children[0]) == name:
                value = one.child_by_field_name("value")
                whole = kind is not None and WHOLE.search(self.tree.text(kind))
                if value is not None and not whole and value.type not in _OF_FLAGS:
                    raise NotKnown(self.tree.text(value))
                return value
        return None

    def _loop(self, loop: Node, name: str) -> Atom | None:
        """The variable of a loop; None if it has another one."""
        parts = fields(loop, "initializer", "condition", "update", "body")
        if parts is None:
            return None
        begins, condition, update, body = parts
        set_to = [one for one in walk(begins) if one.type in ("init_declarator", "assignment_expression")]
        if not any(self.tree.text(one.children[0]) == name for one in set_to):
            return None
        inside = {target for target, _ in self._within(body)}
        ends = condition.named_children
        if len(set_to) != 1 or condition.type != "binary_expression" or name in inside:
            raise NotKnown(name)
        step = ONE if update.type == "update_expression" else None
        if update.type == "assignment_expression" and update.children[1].type in ("+=", "-="):
            step = self.sum(update.children[2])
        down = "-" in self.tree.text(update.children[1] if step != ONE else update)
        sign, signs = condition.children[1].type, (">", ">=") if down else ("<", "<=", "!=")
        if step is None or self.tree.text(ends[0]) != name or sign not in signs:
            raise NotKnown(name)
        first, last = self.sum(set_to[0].named_children[-1]), self.sum(ends[1])
        least, greatest = (last, first) if down else (first, last)
        if sign == ">":
            least += ONE
        elif not sign.endswith("=") or sign == "!=":
            greatest -= ONE
        return Atom(f"loop {loop.start_byte}", name, (least.known, greatest.known, step.known))

    def conditions(self, node: Node) -> tuple[list[Test], list[tuple[Node, bool]]]:
        """The tests behind which a node is, and those that are the same for the whole block; NotKnown."""
        around = pairwise([node, *outside(node, self.body.parent)])
        asked = [pair for inner, outer in around for pair in self._asked(outer, inner)]
        said = [one for pair in asked for one in self._said(*pair)]
        tests = [one for one in said if isinstance(one, Test)]
        return tests, [one for one in said if not isinstance(one, Test)]

    def _asked(self, outer: Node, inner: Node) -> Iterator[tuple[Node, bool]]:
        """The conditions of a node on which one in it is executed, and whether each has to hold."""
        if outer.type in ("if_statement", "conditional_expression"):
            condition = outer.child_by_field_name("condition")
            if condition is not None and inner != condition:
                yield condition, inner != outer.child_by_field_name("alternative")
        elif outer.type == "binary_expression" and outer.children[1].type in ("&&", "||"):
            if inner == outer.children[2]:
                yield outer.children[0], outer.children[1].type == "&&"
        elif outer.type == "compound_statement":
            for one in outer.named_children[: outer.named_children.index(inner)]:
                asked = fields(one, "condition", "consequence") if one.type == "if_statement" else None
                if asked is not None and _leaves(asked[1]):
                    yield asked[0], False
        elif outer.type in ("while_statement", "do_statement", "switch_statement", "lambda_expression"):
            raise NotKnown(outer.type)

    def _said(self, node: Node, holds: bool) -> Iterator[Test | tuple[Node, bool]]:
        """What a condition that holds, or does not, says: tests, or itself if it is the same for all."""
        node = bare(node)
        sign = node.children[1].type if node.type == "binary_expression" else ""
        flag = self._flag_of(node) if node.type == "identifier" else None
        if node.type == "unary_expression" and node.children[0].type == "!":
            yield from self._said(node.named_children[0], not holds)
        elif sign in ("&&", "||"):
            for one in node.named_children if holds == (sign == "&&") else ():
                yield from self._said(one, holds)
        elif flag is not None:
            yield from self._said(flag, holds)
        elif sign not in _NEGATED:
            if not self.sum(node).is_uniform:
                raise NotKnown(self.tree.text(node))
            yield node, holds
        else:
            left, right = map(self.sum, node.named_children)
            apart, sign = (left - right).known, sign if holds else _NEGATED[sign]
            if apart.is_uniform:
                yield node, holds
                return
            if sign in ("<", "<=", "=="):
                yield from _tests(apart + (ONE if sign == "<" else ZERO), False)
                if self._is_unsigned(node.named_children[0]):
                    yield from _tests(left.known, True)
            if sign in (">", ">=", "=="):
                yield from _tests(apart - (ONE if sign == ">" else ZERO), True)

    def _flag_of(self, node: Node) -> Node | None:
        """The condition that a variable is initialized with."""
        name = self.tree.text(node)
        for outer in outside(node):
            for one in outer.named_children if outer.type == "compound_statement" else ():
                value = self._declared(one, name) if one.end_byte <= node.start_byte else None
                if value is not None:
                    is_condition = value.type != "binary_expression" or value.children[1].type in _LOGICAL
                    return value if is_condition and name not in self.changed else None
        return None

    def _is_unsigned(self, node: Node) -> bool:
        """Whether a number is cast to one without a sign."""
        cast = bare(node)
        to = self.tree.text(cast.named_children[0]) if cast.type == "cast_expression" else ""
        return _UNSIGNED.search(to) is not None


def _leaves(statement: Node) -> bool:
    """Whether nothing behind a statement is executed."""
    inside = statement.named_children if statement.type == "compound_statement" else [statement]
    return bool(inside) and inside[-1].type in ("return_statement", "continue_statement")


def _is_clamped(of: IndexSum, other: IndexSum) -> bool:
    """Whether a sum is another one, or the lesser or greater of it and anything."""
    of, other = of.known, other.known
    alone = next(iter(of.atoms)) if len(of.atoms) == 1 else None
    return of == other or (alone is not None and alone.kind in ("min", "max") and other in alone.of)


def _tests(of: IndexSum, is_least: bool, made: bool = False) -> Iterator[Test]:
    """That a sum is not less, or not greater, than 0, as a test of what varies; of `x / n` one of x, too."""
    varying = IndexSum(tuple(one for one in of.terms if not all(atom.is_uniform for atom in one[0])))
    end = varying - of
    if all(factor < 0 for _, factor in varying.terms):
        varying, is_least, end = ZERO - varying, not is_least, ZERO - end
    yield Test(varying, is_least, end, made)
    for atoms, factor in varying.terms:
        if len(varying.terms) == len(atoms) == factor == 1 and atoms[0].kind == "/":
            whole, by = atoms[0].of
            beyond = end * by if is_least else (end + ONE) * by - ONE
            yield from _tests(whole - beyond, is_least, True)


@dataclass(frozen=True, slots=True)
class Ends:
    """Says between which ends sums are in a block. tests: behind which they are used; clamped: with what
    `min` and `max` of something uniform do; threads: of all threads, not of the first one alone.
    """

    tests: Sequence[Test] = ()
    clamped: bool = True
    threads: bool = True

    def of(self, of: IndexSum) -> tuple[IndexSum, IndexSum]:
        """The least and the greatest value of a sum without variables; NotKnown.

        Factors of what varies are taken as positive.
        """
        least, greatest = ZERO, ZERO
        for atoms, factor in of.terms:
            varying = [atom for atom in atoms if not atom.is_uniform]
            rest = IndexSum.of(abs(factor))
            for atom in atoms:
                rest *= ONE if atom in varying else IndexSum.of(atom)
            if len(varying) > 1:
                raise NotKnown(of.text())
            low, high = self._of_atom(varying[0]) if varying else (ONE, ONE)
            low, high = (low, high) if factor > 0 else (ZERO - high, ZERO - low)
            least, greatest = least + rest * low, greatest + rest * high
        of_it = {atom for atom in of.atoms if not atom.is_uniform}
        for test in self.tests:
            times = of.divided(test.of.terms[0][0])[0]
            apart = of - times * test.of
            left = {atom for atom in apart.atoms if not atom.is_uniform}
            if times.is_uniform and left < of_it and not left & test.of.atoms:
                beyond = self.of(apart)
                if test.is_least == ((times.number or 1) > 0):
                    least = operation("max", least, times * test.end + beyond[0])
                else:
                    greatest = operation("min", greatest, times * test.end + beyond[1])
        return least, greatest

    def _of_atom(self, atom: Atom) -> tuple[IndexSum, IndexSum]:
        """The ends of what varies."""
        if atom.kind == "thread":
            extent = IndexSum.of(Atom("uniform", atom.text.replace("threadIdx", "blockDim")))
            return ZERO, extent - ONE if self.threads else ZERO
        if atom.kind.startswith("loop"):
            return self.of(atom.of[0])[0], self.of(atom.of[1])[1]
        one, two = atom.of
        if atom.kind in ("min", "max"):
            if not self.clamped and one.is_uniform != two.is_uniform:
                return self.of(two if one.is_uniform else one)
            low, high = (operation(atom.kind, *pair) for pair in zip(self.of(one), self.of(two)))
            return low, high
        low, high = replace(self, tests=[test for test in self.tests if not test.made]).of(one)
        if atom.kind == "/":
            return operation("/", low, two), operation("/", high, two)
        if any(factor < 0 for _, factor in low.terms):
            raise NotKnown(atom.text)
        return ZERO, two - ONE
