"""The heads of loops, as every rule reads them: `for (int i = start; i < end; i += step)`, and
`while (i < end)` with such a step in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from memsim.source.syntax import Node, Tree
from memsim.source.text import split_at_commas
from memsim.source.values import changes, value_of

#: What leaves a loop, or an iteration of it, before its end.
LEAVES = re.compile(r"\b(?:return|break|continue|goto)\b")
_BEGINS = re.compile(r"(?P<type>(?:[\w:]+\s+)*)(?P<name>\w+)\s*=\s*(?P<value>[^;,=][^;,]*?)\s*;?")
STEP = re.compile(
    r"(?P<sign>\+\+|--)\s*(?P<before>\w+)|(?P<after>\w+)\s*(?P<mark>\+\+|--)"
    r"|(?P<name>\w+)\s*(?P<more>[-+*/]|<<|>>)=\s*(?P<by>[^,;=]+)|(?P<set>\w+)\s*=\s*(?P=set)\s*(?P<plus>[-+])\s*(?P<of>[\w.]+)"
)
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}


@dataclass(frozen=True, slots=True)
class LoopHead:
    """start: what the variable begins with, "" if it does before the loop; type: "" if it is declared there.
    step: what is added in each iteration, with another operator's sign before it if it is not. body: without
    the step of a `while`. stepped: where that is; None if it is in the head.
    """

    variable: str
    type: str
    start: str
    test: str
    end: str
    step: str
    body: str
    stepped: int | None = None

    @property
    def is_steady(self) -> bool:
        """Whether the head alone changes the variable."""
        return not changes(self.variable, self.body)

    def values(self, known: Mapping[str, int], most: int) -> range | None:
        """The values of the variable, of which there are at least one and `most`; None without numbers."""
        numbers = [value_of(text, known) for text in (self.start, self.end, self.step)]
        if None in numbers or not self.is_steady:
            return None
        start, end, step = (number or 0 for number in numbers)
        end += {"<=": 1, ">=": -1}.get(self.test, 0)
        if step == 0 or (self.test != "!=" and (self.test[0] == "<") != (step > 0)):
            return None
        found = range(start, end, step)
        whole = self.test != "!=" or (end - start) % step == 0
        return found if 0 < len(found) <= most and whole else None


def loop_of(tree: Tree, node: Node | None) -> LoopHead | None:
    """The loop of a `for` or `while` with one variable that counts; None of any other statement."""
    if node is None or node.type not in ("for_statement", "while_statement"):
        return None
    parts = [node.child_by_field_name(name) for name in ("initializer", "condition", "update", "body")]
    start, _, update, body = ("" if part is None else tree.text(part).strip() for part in parts)
    compared = parts[1]
    if compared is not None and compared.type == "condition_clause":
        compared = compared.child_by_field_name("value")
    if compared is None or compared.type != "binary_expression":
        return None
    left, mark, right = (tree.text(part) for part in compared.children)
    places = [(part.strip(), -1) for part in split_at_commas(update)]
    if node.type == "while_statement" and parts[3] is not None and "continue" not in body:
        statements = [one for one in parts[3].named_children if one.type == "expression_statement"]
        places = [(tree.text(one)[:-1].strip(), one.start_byte - parts[3].start_byte) for one in statements]
    steps = [(step, at) for text, at in places if (step := STEP.fullmatch(text)) is not None]
    named = {_variable(step): (step, at) for step, at in steps}
    if right in named:
        left, mark, right = right, _TURNED.get(mark, ""), left
    begins, (step, at) = _BEGINS.fullmatch(start), named.get(left, (None, -1))
    if step is None or mark not in _TURNED or (begins is not None and begins["name"] != left):
        return None
    if (at < 0 and changes(left, update) > 1) or (begins is None and start.strip(" ;")):
        return None
    if at >= 0:
        body = body[:at] + " " * len(step[0]) + body[at + len(step[0]) :]
    sign = step["more"] or (step["sign"] or step["mark"] or step["plus"])[0]
    by = (step["by"] or step["of"] or "1").strip()
    kind, value = (begins["type"].strip(), begins["value"]) if begins else ("", "")
    step_text = by if sign == "+" else f"{sign}{by}" if re.fullmatch(r"\w+", by) else f"{sign}({by})"
    stepped = parts[3].start_byte + at if at >= 0 and parts[3] else None
    return LoopHead(left, kind, value, mark, right, step_text, body, stepped)


def _variable(step: re.Match[str]) -> str:
    return step["before"] or step["after"] or step["name"] or step["set"]
