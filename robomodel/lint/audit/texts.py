"""Values in Python text, computed from its syntax tree without running or importing it.

Read are assignments, arithmetic, records (calls of unknown classes with their keywords), classes as
records of what their bodies assign, loops over known lists, and functions of the text. What depends
on anything else is :class:`Unknown`, with the reason. Modules that are imported are read in the
same way if their files stand in a folder above.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MOST_STEPS = 200_000  # evaluated expressions of a text and its imports
MOST_ITEMS = 10_000  # of a list or a text
MOST_BYTES = 2**22
MOST_MODULES = 40
DEEPEST_CALL = 30  # calls and imports within each other


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that the text alone does not give: why, and where it is asked for."""

    why: str
    line: int = 0


@dataclass(slots=True, eq=False)
class Record:
    """An object of an unknown class, or a class: its name, fields, and the line of its text.

    ``lines``: lines of fields. ``bases``: names of classes whose text is not there.
    """

    name: str
    fields: dict[str, Any]
    line: int
    lines: dict[str, int] = field(default_factory=dict)
    bases: tuple[str, ...] = ()
    arguments: tuple[Any, ...] = ()

    def get(self, name: str) -> Any:
        """A field; Unknown if the text does not give it."""
        if name in self.fields:
            return self.fields[name]
        return Unknown(f"'{name}' of {self.name} is not in this text", self.line)

    def line_of(self, name: str) -> int:
        """The line of a field, else that of the record."""
        return self.lines.get(name, self.line)


@dataclass(frozen=True, slots=True, eq=False)
class _Function:
    """A function of the text, and the names that it sees."""

    node: ast.FunctionDef | ast.Lambda
    scope: _Scope


class _Scope(dict[str, Any]):
    """Names and their values; those of the enclosing scope are seen through it."""

    def __init__(self, outer: _Scope | None = None) -> None:
        super().__init__()
        self.outer = outer

    def find(self, name: str) -> Any:
        """The value of a name; Unknown if nothing gives it one."""
        scope: _Scope | None = self
        while scope is not None:
            if name in scope:
                return scope[name]
            scope = scope.outer
        return Unknown(f"'{name}' is not in this text")


@dataclass(frozen=True, slots=True)
class _Returned:
    """The end of a function of the text, with its result."""

    value: Any


class _ExhaustedError(Exception):
    """A text that takes too long to compute."""


_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_CALLED: Mapping[str, Callable[..., Any]] = {
    "float": float,
    "int": int,
    "str": str,
    "bool": bool,
    "abs": abs,
    "min": min,
    "max": max,
    "sum": sum,
    "round": round,
    "len": len,
    "list": list,
    "tuple": tuple,
    "dict": dict,
    "set": set,
    "sorted": sorted,
    "zip": lambda *lists: list(zip(*lists, strict=False)),
    "enumerate": lambda items, start=0: list(enumerate(items, start)),
    "range": lambda *ends: list(range(*ends)) if len(range(*ends)) <= MOST_ITEMS else _exhausted(),
    "reversed": lambda items: list(reversed(items)),
}
_MATHEMATICS = ("pi", "sqrt", "sin", "cos", "radians", "degrees", "exp", "log", "inf", "e", "tau")
_OF_TEXTS = frozenset(
    ("lower", "upper", "replace", "format", "join", "split", "startswith", "endswith", "strip",
     "removesuffix", "removeprefix")
)  # fmt: skip
_OF_LISTS = frozenset(("append", "extend", "index", "copy", "count"))
_OF_TABLES = frozenset(("keys", "values", "items", "get", "copy", "update"))


def _exhausted() -> Any:
    raise _ExhaustedError


class Text:
    """A Python file, with the values of its names.

    Attributes:
        names: The values of the names of the module, in the order of the text.
        lines: The lines on which they are assigned.
    """

    def __init__(self, source: str, path: Path | None = None) -> None:
        """Read a text; raises SyntaxError for what is no Python."""
        self._reader = _Reader(path)
        tree = ast.parse(source)
        scope = _Scope()
        self._reader.run(tree.body, scope)
        self.names: dict[str, Any] = dict(scope)
        self.lines = {
            target.id: node.lineno
            for node in tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        } | {node.name: node.lineno for node in tree.body if isinstance(node, ast.ClassDef)}


class _Reader:
    """Evaluates statements and expressions of a file and of the files that it imports."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.modules: dict[Path, _Scope] = {}
        self.steps = 0
        self.depth = 0

    # ---- statements

    def run(self, statements: Sequence[ast.stmt], scope: _Scope) -> _Returned | None:
        """Execute statements of the kinds that are read; others leave their names unknown.

        They end at a ``return``, whose result is returned.
        """
        for statement in statements:
            try:
                returned = self._statement(statement, scope)
            except _ExhaustedError:
                self._forget(statement, scope, "takes too long to compute")
            else:
                if returned is not None:
                    return returned
        return None

    def _statement(self, node: ast.stmt, scope: _Scope) -> _Returned | None:
        match node:
            case ast.Assign(targets=targets, value=value):
                result = self.value(value, scope)
                for target in targets:
                    self._assign(target, result, scope)
            case ast.AnnAssign(target=target, value=value):
                if value is not None:
                    self._assign(target, self.value(value, scope), scope)
            case ast.AugAssign(target=target, op=op, value=value):
                before = self.value(target, scope)
                self._assign(target, self._binary(op, before, self.value(value, scope)), scope)
            case ast.ClassDef():
                scope[node.name] = self._class(node, scope)
            case ast.FunctionDef():
                scope[node.name] = _Function(node, scope)
            case ast.Import(names=names):
                for alias in names:
                    if alias.name not in ("math", "numpy"):
                        scope.setdefault(
                            alias.asname or alias.name.partition(".")[0],
                            Record(alias.name, {}, node.lineno),
                        )
            case ast.ImportFrom():
                self._import(node, scope)
            case ast.If(test=test, body=body, orelse=orelse):
                known = self.value(test, scope)
                if isinstance(known, Unknown):
                    self._forget(node, scope, "depends on a condition that the text does not give")
                else:
                    return self.run(body if known else orelse, scope)
            case ast.For(target=target, iter=several, body=body):
                items = self.value(several, scope)
                if isinstance(items, dict):
                    items = list(items)
                if not isinstance(items, list | tuple) or len(items) > MOST_ITEMS:
                    self._forget(node, scope, "is computed in a loop")
                    return None
                for item in items:
                    self._assign(target, item, scope)
                    if (returned := self.run(body, scope)) is not None:
                        return returned
            case ast.Try(body=body):
                return self.run(body, scope)
            case ast.With():
                self._forget(node, scope, "depends on a context")
            case ast.While():
                self._forget(node, scope, "is computed in a loop")
            case ast.Return(value=value):
                return _Returned(None if value is None else self.value(value, scope))
            case ast.Expr(value=value):
                self.value(value, scope)
            case _:
                pass
        return None

    def _forget(self, node: ast.stmt, scope: _Scope, why: str) -> None:
        """Make the names that a statement assigns unknown."""
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                scope[each.id] = Unknown(f"'{each.id}' {why}", each.lineno)
            elif isinstance(each, ast.Attribute | ast.Subscript) and isinstance(
                each.ctx, ast.Store
            ):
                self._assign(each, Unknown(f"'{ast.unparse(each)}' {why}", each.lineno), scope)

    def _assign(self, target: ast.expr, value: Any, scope: _Scope) -> None:
        match target:
            case ast.Name(id=name):
                scope[name] = value
            case ast.Attribute(value=owner, attr=name):
                record = self.value(owner, scope)
                if isinstance(record, Record):
                    record.fields[name] = value
                    record.lines[name] = target.lineno
            case ast.Subscript(value=owner, slice=key):
                table, index = self.value(owner, scope), self.value(key, scope)
                if isinstance(table, dict | list) and not isinstance(index, Unknown):
                    try:
                        table[index] = value
                    except (TypeError, IndexError, KeyError):
                        return
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                known = isinstance(value, list | tuple) and len(value) == len(parts)
                for n, part in enumerate(parts):
                    each = value[n] if known else Unknown("a part of what is unknown", part.lineno)
                    self._assign(part, each, scope)

    def _class(self, node: ast.ClassDef, scope: _Scope) -> Record:
        """A class as the record of its fields, with those of its bases."""
        fields: dict[str, Any] = {}
        lines: dict[str, int] = {}
        unknown: list[str] = []
        for base in node.bases:
            known = self.value(base, scope)
            if isinstance(known, Record) and known.lines.get("", 0):
                fields |= {name: _copied(value) for name, value in known.fields.items()}
                unknown += known.bases
            else:
                unknown.append(ast.unparse(base))
        body = _Scope(scope)
        self.run(node.body, body)
        for name, value in body.items():
            above = fields.get(name)
            if isinstance(value, Record) and isinstance(above, Record) and value.bases:
                value.fields = {**above.fields, **value.fields}
            fields[name] = value
        for each in node.body:
            for part in ast.walk(each):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    lines.setdefault(part.id, part.lineno)
        record = Record(node.name, fields, node.lineno, {**lines, "": node.lineno}, tuple(unknown))
        self._finished(record)
        return record

    def _finished(self, record: Record) -> None:
        """Run what a configuration does to itself when it is made."""
        method = record.fields.get("__post_init__")
        if isinstance(method, _Function) and isinstance(method.node, ast.FunctionDef):
            inner = _Scope(method.scope)
            inner[method.node.args.args[0].arg if method.node.args.args else "self"] = record
            self.run(method.node.body, inner)

    # ---- modules

    def _import(self, node: ast.ImportFrom, scope: _Scope) -> None:
        module = None
        if node.module != "__future__":
            module = self._module(node.module or "", node.level)
        for alias in node.names:
            name = alias.asname or alias.name
            if module is not None and alias.name in module:
                scope[name] = module[alias.name]
            elif alias.name != "*":
                where = f"{'.' * node.level}{node.module or ''}"
                scope[name] = Record(f"{where}.{alias.name}".lstrip("."), {}, node.lineno)

    def _module(self, name: str, level: int) -> _Scope | None:
        """The names of a module whose file stands in a folder above; None if there is none."""
        if self.path is None or len(self.modules) >= MOST_MODULES or self.depth > DEEPEST_CALL:
            return None
        steps = [step for step in name.split(".") if step]
        folders: Iterable[Path] = self.path.resolve().parents
        if level:
            folders = list(self.path.resolve().parents)[level - 1 : level]
        for folder in folders:
            place = folder.joinpath(*steps) if steps else folder
            for path in (place.with_suffix(".py"), place / "__init__.py"):
                if path.is_file() and path != self.path:
                    return self._read(path)
        return None

    def _read(self, path: Path) -> _Scope | None:
        if path in self.modules:
            return self.modules[path]
        scope = self.modules[path] = _Scope()
        try:
            if path.stat().st_size > MOST_BYTES:
                return scope
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (OSError, SyntaxError, UnicodeDecodeError, ValueError):
            return scope
        before, self.path = self.path, path
        self.depth += 1
        try:
            self.run(tree.body, scope)
        finally:
            self.path = before
            self.depth -= 1
        return scope

    # ---- expressions

    def value(self, node: ast.expr, scope: _Scope) -> Any:
        """The value of an expression."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise _ExhaustedError
        try:
            result = self._value(node, scope)
        except (ArithmeticError, ValueError, TypeError, KeyError, IndexError, AttributeError,
                MemoryError, RecursionError) as error:  # fmt: skip
            return Unknown(f"'{_short(node)}' fails: {error}", node.lineno)
        if isinstance(result, Unknown) and not result.line:
            return Unknown(result.why, node.lineno)
        if isinstance(result, str | list | tuple | dict) and len(result) > MOST_ITEMS:
            return Unknown(f"'{_short(node)}' is too long", node.lineno)
        return result

    def _value(self, node: ast.expr, scope: _Scope) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return scope.find(name)
            case ast.Attribute():
                return self._attribute(node, scope)
            case ast.Subscript(value=owner, slice=key):
                table, index = self.value(owner, scope), self.value(key, scope)
                for each in (table, index):
                    if isinstance(each, Unknown):
                        return each
                return table[index]
            case ast.Slice(lower=low, upper=high, step=step):
                ends = [None if x is None else self.value(x, scope) for x in (low, high, step)]
                return next((x for x in ends if isinstance(x, Unknown)), None) or slice(*ends)
            case ast.List(elts=parts):
                return self._items(parts, scope)
            case ast.Tuple(elts=parts):
                return tuple(self._items(parts, scope))
            case ast.Set(elts=parts):
                return self._items(parts, scope)
            case ast.Dict(keys=keys, values=values):
                return self._table(keys, values, scope)
            case ast.UnaryOp(op=op, operand=operand):
                value = self.value(operand, scope)
                if isinstance(value, Unknown):
                    return value
                match op:
                    case ast.USub():
                        return -value
                    case ast.Not():
                        return not value
                    case _:
                        return +value
            case ast.BinOp(left=left, op=binary, right=right):
                return self._binary(binary, self.value(left, scope), self.value(right, scope))
            case ast.BoolOp(op=how, values=values):
                result: Any = None
                for each in values:
                    result = self.value(each, scope)
                    if isinstance(result, Unknown) or bool(result) == isinstance(how, ast.Or):
                        return result
                return result
            case ast.Compare(left=left, ops=ops, comparators=others):
                first = self.value(left, scope)
                for comparison, other in zip(ops, others, strict=True):
                    second = self.value(other, scope)
                    for each in (first, second):
                        if isinstance(each, Unknown):
                            return each
                    if not _COMPARED[type(comparison)](first, second):
                        return False
                    first = second
                return True
            case ast.IfExp(test=test, body=body, orelse=orelse):
                known = self.value(test, scope)
                return known if isinstance(known, Unknown) else self.value(
                    body if known else orelse, scope
                )  # fmt: skip
            case ast.JoinedStr(values=parts):
                return self._formatted(parts, scope)
            case ast.Call():
                return self._call(node, scope)
            case ast.Lambda():
                return _Function(node, scope)
            case (
                ast.ListComp(elt=item, generators=loops)
                | ast.GeneratorExp(elt=item, generators=loops)
            ):
                return [self.value(item, inner) for inner in self._loops(loops, scope)]
            case ast.DictComp(key=key, value=item, generators=loops):
                return {
                    self.value(key, inner): self.value(item, inner)
                    for inner in self._loops(loops, scope)
                }
            case _:
                return Unknown(f"'{_short(node)}' is not computed without running", node.lineno)

    def _items(self, parts: Sequence[ast.expr], scope: _Scope) -> list[Any]:
        items: list[Any] = []
        for part in parts:
            if isinstance(part, ast.Starred):
                inner = self.value(part.value, scope)
                items += inner if isinstance(inner, list | tuple) else [
                    Unknown(f"'*{_short(part.value)}' is not known", part.lineno)
                ]  # fmt: skip
            else:
                items.append(self.value(part, scope))
        return items

    def _table(
        self, keys: Sequence[ast.expr | None], values: Sequence[ast.expr], scope: _Scope
    ) -> Any:
        table = Table()
        for key, value in zip(keys, values, strict=True):
            known = self.value(value, scope)
            if key is None:
                if not isinstance(known, dict):
                    return Unknown(f"'**{_short(value)}' is not known", value.lineno)
                table.update(known)
                table.lines.update(getattr(known, "lines", {}))
                continue
            name = self.value(key, scope)
            if isinstance(name, Unknown):
                return name
            table[name] = known
            table.lines[name] = key.lineno
        return table

    def _binary(self, op: ast.operator, first: Any, second: Any) -> Any:
        for each in (first, second):
            if isinstance(each, Unknown):
                return each
        if isinstance(op, ast.Pow):
            return float(first) ** float(second)
        if isinstance(op, ast.BitOr) and isinstance(first, dict) and isinstance(second, dict):
            return {**first, **second}
        if isinstance(op, ast.Mult):
            sizes = [len(x) for x in (first, second) if isinstance(x, str | list | tuple)]
            counts = [x for x in (first, second) if isinstance(x, int)]
            if sizes and (len(sizes) > 1 or not counts or sizes[0] * counts[0] > MOST_ITEMS):
                raise _ExhaustedError
        if any(isinstance(x, int) and abs(x) > 2**64 for x in (first, second)):
            first, second = float(first), float(second)
        if type(op) not in _BINARY:
            return Unknown("an operator of sets and bits")
        return _BINARY[type(op)](first, second)

    def _attribute(self, node: ast.Attribute, scope: _Scope) -> Any:
        owner = node.value
        if isinstance(owner, ast.Name) and owner.id in ("math", "np", "numpy", "torch"):
            if node.attr in _MATHEMATICS:
                return getattr(math, node.attr)
            return Record(f"{owner.id}.{node.attr}", {}, node.lineno)
        record = self.value(owner, scope)
        if isinstance(record, Unknown):
            return record
        if isinstance(record, Record):
            if node.attr in record.fields:
                return record.fields[node.attr]
            module = not record.fields and not record.lines
            if module or node.attr[:1].isupper():
                return Record(f"{record.name}.{node.attr}", {}, node.lineno)
            return Unknown(f"'{_short(node)}' is not in this text", node.lineno)
        return Unknown(f"'{_short(node)}' is not computed without running", node.lineno)

    def _formatted(self, parts: Sequence[ast.expr], scope: _Scope) -> Any:
        text = ""
        for part in parts:
            if isinstance(part, ast.FormattedValue):
                value = self.value(part.value, scope)
                plain = isinstance(value, str | int | float) and part.format_spec is None
                text += f"{value}" if plain else f"{{{_short(part.value)}}}"
            elif isinstance(part, ast.Constant):
                text += str(part.value)
        return text

    def _loops(self, loops: Sequence[ast.comprehension], scope: _Scope) -> Iterator[_Scope]:
        if not loops:
            yield scope
            return
        items = self.value(loops[0].iter, scope)
        if isinstance(items, dict):
            items = list(items)
        if not isinstance(items, list | tuple):
            raise TypeError(f"'{_short(loops[0].iter)}' is not a known list")
        for item in items:
            inner = _Scope(scope)
            self._assign(loops[0].target, item, inner)
            tests = [self.value(test, inner) for test in loops[0].ifs]
            if any(isinstance(test, Unknown) for test in tests):
                raise TypeError("a condition is not known")
            if all(tests):
                yield from self._loops(loops[1:], inner)

    # ---- calls

    def _call(self, node: ast.Call, scope: _Scope) -> Any:
        arguments = self._items(node.args, scope)
        keywords: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for each in node.keywords:
            value = self.value(each.value, scope)
            if each.arg is not None:
                keywords[each.arg] = value
                lines[each.arg] = each.value.lineno if each.value.lineno else each.lineno
            elif isinstance(value, dict):
                keywords |= {str(name): item for name, item in value.items()}
        function = node.func
        if isinstance(function, ast.Attribute):
            known, result = self._method(function, arguments, keywords, lines, scope, node.lineno)
            if known:
                return result
        if isinstance(function, ast.Name) and function.id in _CALLED and (
            function.id not in scope
        ):  # fmt: skip
            for value in (*arguments, *keywords.values()):
                if isinstance(value, Unknown):
                    return value
            return _CALLED[function.id](*arguments, **keywords)
        called = self.value(function, scope)
        if isinstance(called, _Function):
            return self._applied(called, arguments, keywords)
        if isinstance(called, Unknown):
            name = ast.unparse(function)
            return Record(name, keywords, node.lineno, lines, (), tuple(arguments))
        if isinstance(called, Record):
            if called.name.endswith(("field", "Field")) and "default_factory" in keywords:
                factory = keywords["default_factory"]
                return self._applied(factory, [], {}) if isinstance(factory, _Function) else factory
            own = {name: _copied(value) for name, value in called.fields.items()}
            made = Record(
                called.name, {**own, **keywords}, node.lineno, {**called.lines, **lines},
                called.bases, tuple(arguments),
            )  # fmt: skip
            self._finished(made)
            return made
        if callable(called) and not any(isinstance(x, Unknown) for x in arguments):
            return called(*arguments)
        return Unknown(f"'{_short(node)}' is not computed without running", node.lineno)

    def _method(
        self,
        function: ast.Attribute,
        arguments: list[Any],
        keywords: dict[str, Any],
        lines: dict[str, int],
        scope: _Scope,
        line: int,
    ) -> tuple[bool, Any]:
        """True and the result of a call of a known method; of another one False and ``Unknown``."""
        if isinstance(function.value, ast.Name) and function.value.id == "dict":
            names, item = [*arguments, None][:2]
            return True, dict.fromkeys(names, item)
        owner = self.value(function.value, scope)
        name = function.attr
        if isinstance(owner, Record) and name in ("copy", "replace", "deepcopy"):
            if arguments and isinstance(arguments[0], Record):  # copy.deepcopy(x), replace(x, …)
                owner = arguments[0]
            made = _copied(owner)
            made.fields |= keywords
            made.lines |= lines
            return True, made
        methods: Mapping[type, frozenset[str]] = {
            str: _OF_TEXTS,
            list: _OF_LISTS,
            dict: _OF_TABLES,
            Table: _OF_TABLES,
        }
        if name in methods.get(type(owner), ()):
            if any(isinstance(x, Unknown) for x in arguments) and name not in ("append", "get"):
                return True, next(x for x in arguments if isinstance(x, Unknown))
            result = getattr(owner, name)(*arguments, **keywords)
            return True, list(result) if name in ("keys", "values", "items") else result
        return False, Unknown(f"'{_short(function)}' is not known", line)

    def _applied(self, function: _Function, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """The result of a function of the text."""
        parameters = function.node.args
        names = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
        inner = _Scope(function.scope)
        defaults = parameters.defaults
        for name, default in zip(names[len(names) - len(defaults) :], defaults, strict=True):
            inner[name] = self.value(default, function.scope)
        inner.update(zip(names, arguments, strict=False))
        inner.update(keywords)
        if self.depth > DEEPEST_CALL:
            raise _ExhaustedError
        self.depth += 1
        try:
            if isinstance(function.node, ast.Lambda):
                return self.value(function.node.body, inner)
            returned = self.run(function.node.body, inner)
        finally:
            self.depth -= 1
        return None if returned is None else returned.value


class Table(dict[Any, Any]):
    """A dict of the text, with the lines of its keys."""

    def __init__(self, *items: Any) -> None:
        super().__init__(*items)
        self.lines: dict[Any, int] = dict(getattr(items[0], "lines", {})) if items else {}

    def copy(self) -> Table:
        """A copy with the lines."""
        return Table(self)


def _copied(value: Any) -> Any:
    """A deep copy of records, tables and lists, as configurations copy themselves."""
    if isinstance(value, Record):
        return Record(
            value.name,
            {name: _copied(item) for name, item in value.fields.items()},
            value.line,
            dict(value.lines),
            value.bases,
            value.arguments,
        )
    if isinstance(value, Table):
        table = Table(value)
        table.update({name: _copied(item) for name, item in value.items()})
        return table
    if isinstance(value, dict):
        return {name: _copied(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


def _short(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:60]}…"
