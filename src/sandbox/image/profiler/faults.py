"""The one exception by which a reader says that a file cannot be profiled.

`kind` is a stable word for programs, `message` says what happened and where, `hint` what to do next.
"""

KINDS = {
    "not_found": "no such file",
    "not_regular": "a link, pipe, device or folder instead of a file",
    "empty": "no bytes, or nothing but blank lines",
    "too_large": "over a bound on size, depth or width",
    "encrypted": "needs a password or a key",
    "corrupt": "damaged, truncated, or not what its name says",
    "syntax": "text that breaks the rules of its format, with the place",
    "unsupported": "a format that this profile cannot open",
    "memory": "more memory needed than the sandbox has",
    "internal": "a fault of the profiler itself",
}


class Fault(Exception):
    """A file that cannot be read, with a kind from `KINDS`, a message and a hint."""

    def __init__(self, kind, message, hint=""):
        super().__init__(message)
        self.kind = kind if kind in KINDS else "internal"
        self.message = message
        self.hint = hint

    def as_dict(self):
        """The `error` object of a profile."""
        return {"kind": self.kind, "message": self.message, "hint": self.hint}


def one_line(error, limit=300):
    """What a library's exception says, on one line and bounded."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"
