"""Nodes of a syntax tree of CUDA C++: what is in them and around them, and parts of functions and calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from memsim.source.syntax import Tree

if TYPE_CHECKING:
    from tree_sitter import Node


def walk(node: Node) -> Iterator[Node]:
    """A node and all in it, in order."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += reversed(one.children)


def outside(node: Node, end: Node | None = None) -> Iterator[Node]:
    """What a node is in, from the inside, before `end`."""
    while node.parent is not None and node.parent != end:
        node = node.parent
        yield node


def body_of(definition: Node) -> Node | None:
    """The body of a function's definition, with its template or without."""
    return _without_template(definition).child_by_field_name("body")


def arguments_of(call: Node) -> list[Node]:
    """What a call gives; [] of anything else."""
    given = call.child_by_field_name("arguments") if call.type == "call_expression" else None
    return [] if given is None else [one for one in given.named_children if one.type != "comment"]


def assignment_to(node: Node) -> Node | None:
    """The assignment, by `=` or another operator, whose target a node is, in parentheses perhaps."""
    while node.parent is not None and node.parent.type == "parenthesized_expression":
        node = node.parent
    around = node.parent
    assigns = around is not None and around.type == "assignment_expression" and around.children[0] == node
    return around if assigns else None


def bare(node: Node) -> Node:
    """An expression, or a condition, without the parentheses around it."""
    while node.type in ("parenthesized_expression", "condition_clause") and len(node.named_children) == 1:
        node = node.named_children[0]
    return node


def parameters_of(function: Node) -> list[Node]:
    """The declarations of a function's parameters."""
    for node in walk(function):
        if node.type == "parameter_list":
            return [one for one in node.named_children if one.type != "comment"]
    return []


def plain_name(function: str) -> str:
    """`f` of `f<4>`."""
    found = re.match(r"[\w:]*", function)
    return found[0] if found else ""


def declarator_of(function: Node) -> Node | None:
    """What a definition has between its type and its body, with its template or without."""
    return _without_template(function).child_by_field_name("declarator")


def _without_template(function: Node) -> Node:
    return function.children[-1] if function.type == "template_declaration" else function


def function_name(tree: Tree, function: Node) -> str:
    """What a definition is called, without the arguments of a specialization."""
    declared = declarator_of(function)
    return "" if declared is None else plain_name(tree.text(declared).lstrip("*& "))
