"""Small changes of lines inside functions: what a tired person might write one day."""

import ast
from collections.abc import Iterator

FLIPS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
SKIPPED = frozenset({"append", "execute", "add", "update", "extend", "write"})
"""Calls whose effect may be forgotten."""


class Source:
    """A module's text, by the places of its tree."""

    def __init__(self, text: str) -> None:
        """Of a whole module."""
        self.lines = text.splitlines(keepends=True)
        self.text = text
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line))

    def at(self, line: int, column: int) -> int:
        """The place of a tree's line and column, which counts bytes."""
        before = self.lines[line - 1].encode()[:column].decode()
        return self._starts[line - 1] + len(before)

    def begin(self, node: ast.expr | ast.stmt) -> int:
        """Where a node begins."""
        return self.at(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> int:
        """Where it ends."""
        return self.at(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def changed(self, begin: int, end: int, *, becomes: str) -> tuple[str, str] | None:
        """Whole lines before and after, as many as the module has once; None where it never has."""
        first = self.text.rfind("\n", 0, begin) + 1
        last = self.text.find("\n", end)
        last = len(self.text) if last < 0 else last
        while self.text.count(self.text[first:last]) > 1:
            if first == 0:
                return None
            first = self.text.rfind("\n", 0, first - 1) + 1
        was = self.text[first:last]
        return was, f"{self.text[first:begin]}{becomes}{self.text[end:last]}"


def changes_of(text: str) -> Iterator[tuple[str, str]]:
    """Lines of a module and what they might become, each change alone."""
    source = Source(text)
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for statement in function.body:
            for node in ast.walk(statement):
                for begin, end, becomes in _changes(node, source=source):
                    change = source.changed(begin, end, becomes=becomes)
                    if change and change[0] != change[1]:
                        yield change


def _changes(node: ast.AST, *, source: Source) -> Iterator[tuple[int, int, str]]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in FLIPS:
        was, becomes = FLIPS[type(node.ops[0])]
        begin, end = source.end(node.left), source.begin(node.comparators[0])
        if was in (between := source.text[begin:end]):
            yield begin, end, between.replace(was, becomes, 1)
    elif isinstance(node, ast.BoolOp):
        yield source.end(node.values[-2]), source.end(node.values[-1]), ""
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.Add):
        begin, end = source.end(node.left), source.begin(node.right)
        was, becomes = ("-", "+") if isinstance(node.op, ast.Sub) else ("+", "-")
        words = isinstance(node.op, ast.Add) and isinstance(node.left, ast.JoinedStr | ast.Constant)
        if not words:
            yield begin, end, source.text[begin:end].replace(was, becomes, 1)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield source.begin(node), source.begin(node.operand), ""
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = node.value.func
        if isinstance(called, ast.Attribute) and called.attr in SKIPPED:
            yield source.begin(node), source.end(node), "pass"
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield source.begin(node), source.end(node), str(node.value + 1)
