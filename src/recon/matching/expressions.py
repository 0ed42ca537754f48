"""Conditions as text over named facts: comparisons, `and`, `or`, `not`, `in`, names and literals.

    condition_of("0 < refunded <= captured and state in ('paid', 'refunded')", facts=types)

Parsed once; nothing is evaluated that is not one of these, and each name is looked up as an
attribute: one value each, or a column of them, and then the condition is a column as well.
A number stands beside a number, a text beside a text, and what decides is true or false.
"""

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

Condition = Callable[[Any], Any]
"""Facts -> whether it holds."""
_Value = Callable[[Any], Any]
_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, several: _any(one == word for word in several),
    ast.NotIn: lambda one, several: _not(_any(one == word for word in several)),
}
_OF_SEVERAL = (ast.In, ast.NotIn)
_IN_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def condition_of(text: str, *, facts: Mapping[str, type]) -> Condition:
    """What a text says of facts.

    Args:
        text: the condition.
        facts: name -> int, str or bool, of every fact that it may name.

    Raises:
        ValueError: it is none, names no such fact, or compares what cannot be compared.
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        msg = f"{text!r} is no condition: {error.msg}"
        raise ValueError(msg) from error
    return _condition(tree, facts=facts)


def _any(holds: Iterable[Any]) -> Any:
    return reduce(operator.or_, holds)


def _all(holds: Iterable[Any]) -> Any:
    return reduce(operator.and_, holds)


def _not(holds: Any) -> Any:
    return operator.xor(True, holds)


def _condition(node: ast.expr, *, facts: Mapping[str, type]) -> Condition:
    if isinstance(node, ast.BoolOp):
        parts = [_condition(part, facts=facts) for part in node.values]
        together = _all if isinstance(node.op, ast.And) else _any
        return lambda known: together(part(known) for part in parts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        denied = _condition(node.operand, facts=facts)
        return lambda known: _not(denied(known))
    if isinstance(node, ast.Compare):
        return _comparison(node, facts=facts)
    kind, value = _value(node, facts=facts)
    if kind is not bool:
        msg = f"{ast.unparse(node)!r} is neither true nor false"
        raise ValueError(msg)
    return value


def _comparison(node: ast.Compare, *, facts: Mapping[str, type]) -> Condition:
    sides = [_value(side, facts=facts) for side in (node.left, *node.comparators)]
    pairs = []
    for (kind, one), sign, (other_kind, other) in zip(sides, node.ops, sides[1:], strict=False):
        wanted = (tuple, kind) if isinstance(sign, _OF_SEVERAL) else kind
        is_ordered = isinstance(sign, _IN_ORDER) and kind is not int
        if type(sign) not in _COMPARED or other_kind != wanted or is_ordered:
            msg = f"{ast.unparse(node)!r} compares what cannot be compared"
            raise ValueError(msg)
        pairs.append((_COMPARED[type(sign)], one, other))
    return lambda known: _all(holds(one(known), other(known)) for holds, one, other in pairs)


def _value(node: ast.expr, *, facts: Mapping[str, type]) -> tuple[Any, _Value]:
    """Its type, of several in brackets (tuple, their type), and how it is found."""
    if isinstance(node, ast.Name):
        if node.id not in facts:
            msg = f"there is no fact {node.id!r}"
            raise ValueError(msg)
        return facts[node.id], operator.attrgetter(node.id)
    if isinstance(node, ast.Constant) and type(node.value) in {int, str, bool}:
        return type(node.value), lambda _: node.value
    if isinstance(node, ast.Tuple) and all(isinstance(one, ast.Constant) for one in node.elts):
        words = tuple(one.value for one in node.elts if isinstance(one, ast.Constant))
        kinds = {type(word) for word in words}
        if len(kinds) == 1:
            return (tuple, *kinds), lambda _: words
    msg = f"{ast.unparse(node)!r} is no fact, number or text"
    raise ValueError(msg)
