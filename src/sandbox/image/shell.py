"""IPython without a terminal: the shell that runs cells, its displays, and what it refuses.

Made once in the zygote, before any kernel is forked; `Shell.attach` then gives it a way to send messages.
"""

import base64
import contextlib
import os
import subprocess
import sys
import warnings

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.error import StdinNotImplementedError
from IPython.core.formatters import DisplayFormatter
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

MAX_DISPLAY = 32 << 20
# Binary values from this size on go to the supervisor as they are.
LARGE_BINARY = 32 << 10

_NO_INPUT = (
    "input() has no one to ask here: this code runs without a person at the keyboard. "
    "Put the value into the code, or read it from a file."
)


def _refuse_input(*_args, **_kwargs):
    raise StdinNotImplementedError(_NO_INPUT)


class _Formatter(DisplayFormatter):
    """Formats for every MIME type, and says in the metadata what kind of thing was shown."""

    def format(self, obj, include=None, exclude=None):
        data, metadata = super().format(obj, include, exclude)
        mark = _mark(obj)
        if mark and data:
            metadata = {**metadata, "codeinterp": mark}
        return data, metadata


def _mark(obj):
    """`{"dataframe": {"rows", "columns"}}` or `{"figure": {...}}` for what deserves it."""
    package, name = type(obj).__module__.partition(".")[0], type(obj).__name__
    try:
        if package in ("pandas", "polars") and name == "DataFrame":
            return {"dataframe": {"rows": int(obj.shape[0]), "columns": int(obj.shape[1])}}
        if package == "matplotlib" and hasattr(obj, "savefig"):
            import codeinterp_inline

            return {"figure": codeinterp_inline.describe(obj)}
    except Exception:
        # A description is an extra: the display itself must not fail with it.
        return None
    return None


def _encodable(data):
    """A MIME bundle that JSON can carry, and its large binary values apart: `(bundle, {mime: bytes})`.

    Bytes become base64, here or at the supervisor; values that are too large or odd are named instead.
    """
    bundle, binary, refused = {}, {}, []
    for mime, value in data.items():
        mime = str(mime)
        if isinstance(value, (bytes, bytearray)):
            if len(value) > MAX_DISPLAY:
                refused.append(f"{mime} ({len(value)} bytes)")
                continue
            if len(value) > LARGE_BINARY and len(binary) < 4:
                bundle[mime], binary[mime] = "", value
                continue
            value = base64.b64encode(value).decode("ascii")
        elif not isinstance(value, (str, dict, list, int, float, bool)):
            continue
        elif (data_of := _from_base64(mime, value)) is not None and len(binary) < 4:
            bundle[mime], binary[mime] = "", data_of
            continue
        if isinstance(value, str) and len(value) > MAX_DISPLAY:
            refused.append(f"{mime} ({len(value)} bytes)")
            continue
        bundle[mime] = value
    if refused:
        note = "too large to show: " + ", ".join(refused)
        bundle["text/plain"] = f"{str(bundle.get('text/plain', ''))[:2000]}\n[{note}]".strip()
    return bundle, binary


def _from_base64(mime, value):
    """The bytes of a large image that comes as base64 already, as those of `IPython.display.Image` do; else None."""
    large = isinstance(value, str) and len(value) >= LARGE_BINARY
    if not large or not mime.startswith("image/") or mime == "image/svg+xml":
        return None
    try:
        data = base64.b64decode(value, validate=True)
    except ValueError:
        return None
    return data if len(data) <= MAX_DISPLAY else None


class _Publisher(DisplayPublisher):
    """`display()`, `update_display()` and `clear_output()`."""

    def publish(self, data, metadata=None, *_args, transient=None, update=False, **_kwargs):
        bundle, binary = _encodable(data)
        if bundle:
            kind = "update_display_data" if update else "display_data"
            self.shell.send(kind, {"data": bundle, "metadata": metadata or {}, "transient": transient or {}}, binary)

    def clear_output(self, wait=False):
        self.shell.send("clear_output", {"wait": bool(wait)})


class _Hook(DisplayHook):
    """The value of a cell's last expression."""

    def write_output_prompt(self):
        """No prompt: the message carries the count."""

    def write_format_data(self, format_dict, md_dict=None):
        bundle, binary = _encodable(format_dict)
        content = {"execution_count": self.prompt_count, "data": bundle, "metadata": md_dict or {}}
        self.shell.send("execute_result", content, binary)

    def log_output(self, format_dict):
        """Displays are not kept a second time in this process."""

    def finish_displayhook(self):
        self._is_active = False


class Shell(InteractiveShell):
    """The kernel's shell. `send(msg_type, content, binary)` publishes; `failure` holds the last error and its lines."""

    displayhook_class = Type(_Hook)
    display_pub_class = Type(_Publisher)

    def attach(self, send):
        """Connects the shell to its kernel."""
        self.send = send
        self.failure = None
        self.exit_code = None

    def init_display_formatter(self):
        self.display_formatter = _Formatter(parent=self)
        self.configurables.append(self.display_formatter)
        self.display_formatter.active_types = self.display_formatter.format_types
        png = self.display_formatter.formatters["image/png"]
        png.for_type_by_name("matplotlib.figure", "Figure", _figure_png)

    def _tee(self, channel):
        # IPython 9 keeps everything that was ever printed in its history.
        return contextlib.nullcontext()

    def init_virtualenv(self):
        """The sandbox's Python is the one that runs."""

    def enable_gui(self, gui=None):
        """Figures are always inline, whatever `%matplotlib` asks for."""

    def enable_matplotlib(self, gui=None):
        return "inline", "module://codeinterp_inline"

    def ask_exit(self):
        raise SystemExit(0)

    def system(self, cmd):
        """`!cmd`: output goes to descriptors 1 and 2, which belong to the running cell."""
        command = self.var_expand(cmd, depth=1)
        self.user_ns["_exit_code"] = run_shell(command)

    system_piped = system_raw = system

    def showtraceback(self, exc_tuple=None, filename=None, tb_offset=None, exception_only=False, **kwargs):
        if exc_tuple is not None:
            # A formatter failed; the cell itself goes on.
            kind, value, _trace = exc_tuple
            sys.stderr.write(f"This could not be shown: {kind.__name__}: {str(value)[:2000]}\n")
            return
        error = sys.exc_info()[1]
        if isinstance(error, SystemExit):
            return
        if error is not None:
            self.failure = (error, [])
        super().showtraceback(None, filename, tb_offset, exception_only, **kwargs)

    def _showtraceback(self, etype, evalue, stb):
        self.failure = (evalue, list(stb))

    def show_usage_error(self, exc):
        self.failure = (exc, [f"UsageError: {exc}"])


def run_shell(command):
    """Runs a command by the shell; its exit code, or minus the signal that ended it."""
    return subprocess.call(command, shell=True, stdin=subprocess.DEVNULL)


def _figure_png(figure):
    import codeinterp_inline

    return codeinterp_inline.png(figure)


def _leave(code=None):
    """Ends the cell, as sys.exit() does; the kernel and its variables live on."""
    raise SystemExit(code)


def make():
    """The shell, with nothing of it tied to a terminal, a history file or a profile of the user."""
    config = Config()
    config.HistoryManager.enabled = False
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.colors = "nocolor" if _major() >= 9 else "NoColor"
    # The other modes read and parse source files for every frame: 40 ms for each error.
    config.InteractiveShell.xmode = "Plain"
    # Old results are let go early: each holds memory of the sandbox.
    config.InteractiveShell.cache_size = 100
    config.InteractiveShell.banner1 = ""
    config.IPCompleter.use_jedi = False
    shell = Shell.instance(config=config)
    import builtins
    import getpass

    builtins.input = _refuse_input
    getpass.getpass = getpass.unix_getpass = _refuse_input
    shell.raw_input = _refuse_input
    for name in ("exit", "quit"):
        setattr(builtins, name, _leave)
        shell.user_ns[name] = shell.user_ns_hidden[name] = _leave
    # The C function ignores interrupts while it waits.
    os.system = lambda command: _wait_status(run_shell(command))
    os.environ.setdefault("PAGER", "cat")
    shell.display_page = False
    # IPython's advice on leaving a terminal.
    warnings.filterwarnings("ignore", message="To exit: use", category=UserWarning)
    warnings.filterwarnings("ignore", message="Output cache limit", category=UserWarning)
    # Since Python 3.12, for any thread: ours sleeps, and is not missed in the child.
    warnings.filterwarnings("ignore", message="This process .* is multi-threaded", category=DeprecationWarning)
    shell.attach(lambda *_: None)
    return shell


def _wait_status(code):
    return -code if code < 0 else code << 8


def _major():
    from IPython import version_info

    return version_info[0]
