"""The variables of the kernel: what a cell made or changed, and a bounded description of each."""

import contextlib
import reprlib
import signal
import sys
import time
import types

MAX_NAMES = 200
MAX_REPR = 2000
# Describing must not hang on a foreign `__repr__`.
DESCRIBE_SECONDS = 1.0

_PLAIN = (bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, range, type(None))
_SKIPPED = (types.ModuleType,)
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)


class _TooSlow(BaseException):
    """Raised by the timer; derived like KeyboardInterrupt, so that a bare `except Exception` lets it pass."""


@contextlib.contextmanager
def _deadline(seconds):
    def on_alarm(*_):
        raise _TooSlow

    before = signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def type_name(value):
    """`DataFrame`, `int`, `collections.Counter`: the name without the noise of common packages' modules."""
    kind = type(value)
    module = kind.__module__ if isinstance(kind.__module__, str) else ""
    if module.split(".")[0] in ("builtins", "__main__", "pandas", "numpy", "polars", "pyarrow", "matplotlib", "datetime"):
        return kind.__name__
    return f"{module}.{kind.__name__}"[:120]


def shape(value):
    """Rows and columns, or the length, as a list of integers; None for what has neither."""
    if isinstance(value, _PLAIN):
        return [len(value)] if hasattr(value, "__len__") else None
    if type(value).__module__.partition(".")[0] not in ("pandas", "numpy", "polars", "pyarrow", "scipy", "torch", "collections"):
        return None
    try:
        found = value.shape if hasattr(value, "shape") else (len(value),)
        return [int(size) for size in found]
    except Exception:
        return None


def visible(shell):
    """The names that the user's code defined, in order, without modules, what they brought, and IPython's own."""
    hidden = shell.user_ns_hidden
    names = []
    for name, value in list(shell.user_ns.items()):
        if not isinstance(name, str) or name.startswith("_") or isinstance(value, _SKIPPED):
            continue
        if name in hidden and hidden[name] is value:
            continue
        if _is_imported(value):
            continue
        names.append(name)
    return names


def _is_imported(value):
    """Whether it is a function or a plain class that some module brought: those are no results."""
    if type(value) in _FUNCTIONS or type(value) is type:
        return value.__module__ != "__main__"
    return False


class Tracker:
    """Remembers a cheap fingerprint of each variable, so that a step can say what it made."""

    def __init__(self, shell):
        self._shell = shell
        self._known = self._scan()

    def _scan(self):
        namespace = self._shell.user_ns
        found = {}
        for name in visible(self._shell):
            value = namespace.get(name)
            found[name] = (id(value), type(value), tuple(shape(value) or ()))
        return found

    def changes(self):
        """`{"created": [...], "changed": [...], "deleted": [names], "omitted": n}` since the last call."""
        before, now = self._known, self._scan()
        self._known = now
        created = [name for name in now if name not in before]
        changed = [name for name in now if name in before and now[name] != before[name]]
        deleted = [name for name in before if name not in now]
        kept = [created[:MAX_NAMES], changed[:MAX_NAMES], deleted[:MAX_NAMES]]
        return {
            "created": [self._brief(name) for name in kept[0]],
            "changed": [self._brief(name) for name in kept[1]],
            "deleted": kept[2],
            "omitted": len(created) + len(changed) + len(deleted) - sum(map(len, kept)),
        }

    def _brief(self, name):
        value = self._shell.user_ns.get(name)
        brief = {"name": name[:200], "type": type_name(value)}
        size = shape(value)
        if size is not None:
            brief["shape"] = size
        return brief


def describe(shell, name=None):
    """`[{"name", "type", "shape"?, "bytes"?, "repr"}]` of all variables, or of the one named."""
    names = visible(shell)
    if name is not None:
        names = [name] if name in shell.user_ns else []
    entries = []
    end = time.monotonic() + 2 * DESCRIBE_SECONDS
    for each in names[:MAX_NAMES]:
        if time.monotonic() > end:
            break
        entries.append(_describe(shell.user_ns.get(each), each, MAX_REPR if name else 300))
    return entries


def _describe(value, name, limit):
    entry = {"name": name[:200], "type": type_name(value)}
    size = shape(value)
    if size is not None:
        entry["shape"] = size
    try:
        with _deadline(DESCRIBE_SECONDS):
            entry["bytes"] = _bytes(value)
            entry["repr"] = _repr(value, limit)[:limit]
    except _TooSlow:
        entry["repr"] = "<its description takes too long>"
    except Exception as error:
        entry["repr"] = f"<its description raises {type(error).__name__}>"
    if entry.get("bytes") is None:
        entry.pop("bytes", None)
    return entry


def _bytes(value):
    usage = getattr(value, "memory_usage", None)
    if usage is not None and type(value).__module__.startswith("pandas"):
        total = usage(deep=False)
        return int(total.sum() if hasattr(total, "sum") else total)
    size = getattr(value, "nbytes", None)
    if isinstance(size, int):
        return size
    return sys.getsizeof(value)


_short = reprlib.Repr()
_short.maxstring = _short.maxother = 280
_short.maxlist = _short.maxtuple = _short.maxset = _short.maxdict = 12


def _repr(value, limit):
    module = type(value).__module__
    if module.startswith("pandas") and hasattr(value, "head"):
        rows = value.head(20 if limit > 300 else 5)
        return rows.iloc[:, :20].to_string() if getattr(rows, "ndim", 1) == 2 else rows.to_string()
    if isinstance(value, (str, bytes)) and limit > 300:
        return repr(value[:limit])
    if isinstance(value, _PLAIN) and not isinstance(value, (range, type(None))):
        return _short.repr(value)
    return repr(value)
