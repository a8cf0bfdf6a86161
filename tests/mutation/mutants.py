"""Small faults in a Python source: every place where one can be put, and the source with it."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.MatMult: ast.Add, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
FUNCTIONS = {  # what stands for operators in this package, and NumPy's and Python's pairs
    "add": "sub", "sub": "add", "plus": "minus", "minus": "plus", "min": "max", "max": "min",
    "any": "all", "all": "any", "sin": "cos", "cos": "sin", "rotate": "unrotate",
    "unrotate": "rotate", "zeros": "ones", "ones": "zeros", "argmin": "argmax", "argmax": "argmin",
}  # fmt: skip
COMMUTATIVE = frozenset(("add", "plus", "mul", "min", "max", "dot", "inner", "hypot", "minimum",
                         "maximum", "Sum", "isclose", "allclose"))  # fmt: skip
PASSED = frozenset(("neg", "transpose", "abs", "reversed", "sorted", "sqrt", "norm"))


@dataclass(frozen=True)
class Mutant:
    """A source with one fault: where it is, its kind, what was there and what is."""

    line: int
    kind: str
    before: str
    after: str
    source: str

    def __str__(self) -> str:
        return f"line {self.line}, {self.kind}: {self.before}  →  {self.after}"


def mutants(source: str) -> Iterator[Mutant]:
    """All mutants of a module's source, in the order of its lines."""
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    raw = source.encode()
    for node, kind, new in sorted(_faults(tree), key=lambda x: (x[0].lineno, x[0].col_offset)):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        before, after = raw[begin:end].decode(), ast.unparse(new)
        if isinstance(new, ast.expr) and isinstance(node, ast.expr):
            after = f"({after})"  # whatever stands around it
        text = (raw[:begin] + after.encode() + raw[end:]).decode()
        yield Mutant(node.lineno, kind, _short(before), _short(after), text)


def _short(text: str) -> str:
    return " ".join(text.split())


def _faults(tree: ast.Module) -> Iterator[tuple[ast.AST, str, ast.AST]]:
    """Nodes, and what may stand in their place."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        stack += _inside(node)
        yield from _of_statement(node)
        if isinstance(node, ast.expr):
            for kind, new in _of_expression(node):
                yield node, kind, new


def _inside(node: ast.AST) -> list[ast.AST]:
    """The parts in which faults are faults: not annotations, messages, docstrings, assertions."""
    if isinstance(node, ast.Assert | ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return []
    if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(b) for b in node.bases):
        return []
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return []
    if isinstance(node, ast.FunctionDef):
        defaults = [x for x in (*node.args.defaults, *node.args.kw_defaults) if x is not None]
        return [*node.body, *defaults]
    if isinstance(node, ast.ClassDef):
        return [*node.body]
    if isinstance(node, ast.AnnAssign):
        alias = "TypeAlias" in ast.unparse(node.annotation)
        return [] if alias or node.value is None else [node.value]
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("cast", "TypeVar", "Literal"):
        return []
    return list(ast.iter_child_nodes(node))


def _of_statement(node: ast.AST) -> Iterator[tuple[ast.AST, str, ast.AST]]:
    dropped = isinstance(node, ast.AugAssign | ast.Raise) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    )
    if dropped:
        yield node, "statement dropped", ast.Pass()
    if isinstance(node, ast.If | ast.IfExp):
        yield node.test, "condition negated", ast.UnaryOp(ast.Not(), node.test)


def _of_expression(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield "operator", ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        other = COMPARISONS[type(node.ops[0])]()
        yield "comparison", ast.Compare(node.left, [other], node.comparators)
    elif isinstance(node, ast.BoolOp):
        other_op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and, or", ast.BoolOp(other_op, node.values)
        yield "operand dropped", node.values[0]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield "sign dropped", node.operand
    elif isinstance(node, ast.Constant):
        yield from _of_constant(node.value)
    elif isinstance(node, ast.Call):
        yield from _of_call(node)


def _of_constant(value: object) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(value, bool):
        yield "constant", ast.Constant(not value)
    elif isinstance(value, int):
        yield "constant", ast.Constant(value + 1)
    elif isinstance(value, float):
        yield "constant", ast.Constant(2.0 * value if value else 1.0)


def _of_call(node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    plain = [x for x in node.args if not isinstance(x, ast.Starred)]
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
    if (
        name not in COMMUTATIVE
        and len(plain) == len(node.args) > 1
        and ast.dump(plain[0]) != ast.dump(plain[1])
    ):
        swapped = copy.copy(node)
        swapped.args = [plain[1], plain[0], *plain[2:]]
        yield "arguments swapped", swapped
    if name in FUNCTIONS:
        other = copy.deepcopy(node)
        if isinstance(other.func, ast.Attribute):
            other.func.attr = FUNCTIONS[name]
        else:
            other.func = ast.Name(FUNCTIONS[name])
        yield "function", other
    if name in PASSED and len(plain) == 1 and not node.keywords:
        yield "function dropped", plain[0]
