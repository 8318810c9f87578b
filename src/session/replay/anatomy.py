"""What the code of each step defines and needs: read from its syntax. Nothing of it is executed.

`report` takes a JSON list of {"code", "line", "result", "charts"}, oldest first, and gives one of
{"code", "script", "defines", "needs"}. `line` is the line at which the step failed, or null: then only what stands before
that line's statement counts. `script` is the code as plain Python with the shown result printed; null where it can't be.
"""

import ast
import builtins
import json
import symtable


def _defined_and_needed(node):
    """Names that an expression or a statement without a body binds and uses at the top level."""
    table = symtable.symtable(ast.unparse(node), "step", "exec")
    defined = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    needed = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced()}
    inner = list(table.get_children())
    while inner:
        scope = inner.pop()
        needed |= {symbol.get_name() for symbol in scope.get_symbols() if symbol.is_global() and symbol.is_referenced()}
        inner.extend(scope.get_children())
    return defined, needed


def _root(node):
    """`df` of `df["a"].b`, and None of what does not begin with a name."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


class _Step:
    """Collects the names of one step, statement by statement."""

    def __init__(self, modules):
        self.modules = modules
        self.defines = set()
        self.needs = set()

    def _take(self, defined, needed):
        self.needs |= needed - self.defines
        self.defines |= defined

    def block(self, statements):
        for statement in statements:
            self.statement(statement)

    def statement(self, node):
        if isinstance(node, (ast.For, ast.AsyncFor)):
            self._take(set(), _defined_and_needed(ast.Expr(node.iter))[1])
            self._take(_defined_and_needed(ast.Assign([node.target], ast.Constant(0), lineno=1))[0], set())
            self.block(node.body + node.orelse)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                self._take(set(), _defined_and_needed(ast.Expr(item.context_expr))[1])
                if item.optional_vars is not None:
                    self._take(_defined_and_needed(ast.Assign([item.optional_vars], ast.Constant(0), lineno=1))[0], set())
            self.block(node.body)
        elif isinstance(node, (ast.If, ast.While)):
            self._take(*_defined_and_needed(ast.Expr(node.test)))
            self.block(node.body + node.orelse)
        elif isinstance(node, ast.Try):
            self.block(node.body)
            for handler in node.handlers:
                if handler.name:
                    self.defines.add(handler.name)
                self.block(handler.body)
            self.block(node.orelse + node.finalbody)
        else:
            self._simple(node)

    def _simple(self, node):
        defined, needed = _defined_and_needed(node)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self.modules |= defined
        # What is written into, or called for its effect, is another value from here on.
        targets = node.targets if isinstance(node, (ast.Assign, ast.Delete)) else [getattr(node, "target", None)]
        changed = {_root(target) for target in targets if isinstance(target, (ast.Attribute, ast.Subscript))}
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
            changed |= {_root(node.value.func)} - self.modules
        changed.discard(None)
        self._take(defined | changed, needed | changed)


def _without_magics(code):
    """Lines that only IPython understands made comments; the code itself where it has none."""
    lines = []
    for line in code.split("\n"):
        text = line.lstrip()
        if text.startswith("!") or (text.startswith("%") and text.lstrip("%")[:1].isalpha()):
            line = f"{line[: len(line) - len(text)]}pass  # {text}"
        lines.append(line)
    return "\n".join(lines)


def _parsed(code):
    for text in (code, _without_magics(code)):
        try:
            return text, ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None, None


def _before(code, line):
    """What stands before the statement at `line`."""
    _, tree = _parsed(code)
    if tree is None:
        return ""
    begins = [min([node.lineno, *(entry.lineno for entry in getattr(node, "decorator_list", []))]) for node in tree.body]
    begin = max((begin for begin in begins if begin <= line), default=1)
    return "\n".join(code.split("\n")[: begin - 1])


def _script(text, tree, result, charts):
    """The code as a script shows it: a kernel shows a last expression and open figures by itself."""
    lines = text.rstrip().split("\n")
    last = tree.body[-1] if tree.body else None
    if result and isinstance(last, ast.Expr) and not (isinstance(last.value, ast.Call) and getattr(last.value.func, "id", None) == "print"):
        source = text.encode()
        starts = [0]
        for line in source.split(b"\n"):
            starts.append(starts[-1] + len(line) + 1)
        begin = starts[last.value.lineno - 1] + last.value.col_offset
        end = starts[last.value.end_lineno - 1] + last.value.end_col_offset
        lines = (source[:begin] + b"print(" + source[begin:end] + b")" + source[end:]).decode().rstrip().split("\n")
    draws = charts and any(mark in text for mark in ("plt", ".plot", ".hist(", ".boxplot("))
    if draws and ".show(" not in text:
        lines += ["from matplotlib import pyplot as plt", "plt.show()"]
    script = "\n".join(lines)
    try:
        compile(script, "script", "exec")
    except (SyntaxError, ValueError):
        return None
    return script


def report(text):
    modules = set()
    out = []
    for entry in json.loads(text):
        code = entry["code"] if entry["line"] is None else _before(entry["code"], entry["line"])
        plain, tree = _parsed(code)
        step = _Step(modules)
        script = None
        if tree is not None:
            try:
                step.block(tree.body)
                script = _script(plain, tree, entry["result"], entry["charts"])
            except RecursionError:
                pass
        needs = step.needs - set(dir(builtins)) | ({"display"} & step.needs)
        out.append({"code": code, "script": script, "defines": sorted(step.defines), "needs": sorted(needs)})
    return json.dumps(out)
