"""Comparisons of quantities as text: `elsewhere < -2 and elsewhere < home`, `rho(similarity, transfer) > 0`."""

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from crossalign.runtime.errors import UserError

_ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


@dataclass(frozen=True)
class Comparison:
    """A value that must lie below (or above) a bound."""

    value: ast.expr
    below: bool
    bound: float

    @property
    def words(self) -> str:
        """What is compared: `elsewhere - home`."""
        return ast.unparse(self.value)

    @property
    def rule(self) -> str:
        """All of it: `elsewhere - home < 0`."""
        return f"{self.words} {'<' if self.below else '>'} {self.bound:g}"


def comparisons(text: str) -> list[Comparison]:
    """Every comparison of a text; all must hold."""
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise UserError(f"'{text}' is no comparison ({error.msg})") from None
    parts = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]
    return [_comparison(part, text) for part in parts]


def _comparison(node: ast.expr, text: str) -> Comparison:
    if not isinstance(node, ast.Compare) or len(node.ops) > 1 or not isinstance(node.ops[0], ast.Lt | ast.Gt):
        raise UserError(f"'{text}': expected comparisons by < or >, joined by and")
    left, right, below = node.left, node.comparators[0], isinstance(node.ops[0], ast.Lt)
    for side in (left, right):
        evaluate(side, lambda _: 1.0, lambda *_: 1.0)
    if any(map(is_rank, (left, right))) and not (isinstance(left, ast.Call) and not names_in(right)):
        raise UserError(f"'{text}': rho(a, b) stands alone, to the left of a number")
    if not names_in(right):
        return Comparison(left, below, float(evaluate(right, lambda _: 0.0, lambda *_: 0.0)))
    return Comparison(ast.BinOp(left, ast.Sub(), right), below, 0.0)


def names_in(node: ast.AST) -> list[str]:
    """The quantities of an expression."""
    return list(dict.fromkeys(one.id for one in ast.walk(node) if isinstance(one, ast.Name) and one.id != "rho"))


def is_rank(node: ast.AST) -> bool:
    """Whether an expression has a rank correlation."""
    return any(isinstance(one, ast.Call) for one in ast.walk(node))


def evaluate(node: ast.expr, value: Callable[[str], Any], rho: Callable[[str, str], Any]) -> Any:
    """The value of an expression, given that of its names and of `rho(a, b)`."""

    def of(part: ast.expr) -> Any:
        return evaluate(part, value, rho)

    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name):
            return value(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -of(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            return _ARITHMETIC[type(op)](of(left), of(right))
        case ast.Call(func=ast.Name(id="rho"), args=[ast.Name(id=first), ast.Name(id=second)]):
            return rho(first, second)
    raise UserError(f"'{ast.unparse(node)}': only numbers, quantities, + - * / and rho(a, b) are known")
