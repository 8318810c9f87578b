"""What a kernel says, reduced to what the protocol knows, since user code may have written it; and its end in words."""

import uuid

_TEXTS = {"ename": 200, "evalue": 16 << 10, "traceback_user": 64 << 10}
MAX_LINES = 500
MAX_LINE = 4 << 10
MAX_ENTRIES = 300


def checked(content):
    """A new reply with nothing but known fields of known types and sizes."""
    reply = {"status": "ok" if content.get("status") == "ok" else "error"}
    for name in ("exit_code", "execution_count"):
        value = content.get(name)
        if _is_int(value) and abs(value) < 1 << 31:
            reply[name] = value
    value = content.get("duration_ms")
    if isinstance(value, (int, float)) and 0 <= value < 1e12:
        reply["duration_ms"] = value
    for name, limit in _TEXTS.items():
        if isinstance(content.get(name), str):
            reply[name] = content[name][:limit]
    reply["traceback"] = _texts(content.get("traceback"), MAX_LINES, MAX_LINE)
    reply["installed"] = _texts(content.get("installed"), MAX_ENTRIES, 100)
    reply["variables"] = _variables(content.get("variables"))
    return reply


def _is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _texts(values, count, length):
    if not isinstance(values, list):
        return []
    return [value[:length] for value in values[:count] if isinstance(value, str)]


def _variables(changes):
    if not isinstance(changes, dict):
        changes = {}
    checked_changes = {name: _entries(changes.get(name)) for name in ("created", "changed")}
    return {**checked_changes, "deleted": _texts(changes.get("deleted"), MAX_ENTRIES, 200)}


def _entries(values):
    entries = []
    for value in values[:MAX_ENTRIES] if isinstance(values, list) else ():
        if not isinstance(value, dict) or not isinstance(value.get("name"), str) or not isinstance(value.get("type"), str):
            continue
        entry = {"name": value["name"][:200], "type": value["type"][:200]}
        shape = value.get("shape")
        if isinstance(shape, list) and len(shape) <= 16 and all(_is_int(size) and 0 <= size < 1 << 63 for size in shape):
            entry["shape"] = shape
        entries.append(entry)
    return entries


def place_blobs(content, mimes, blobs):
    """Puts a token into the MIME bundle for each binary representation; the tokens with their data."""
    placed = {}
    data = content.get("data")
    if isinstance(mimes, list) and isinstance(data, dict):
        for mime, blob in {mime: blob for mime, blob in zip(mimes, blobs) if isinstance(mime, str) and len(mime) < 200}.items():
            token = uuid.uuid4().hex
            # In the bundle the tokens stand in the order in which they are listed.
            data.pop(mime, None)
            data[mime], placed[token] = token, blob
    return placed


def sentence(cause):
    """A cause of death for people."""
    kind = cause["kind"]
    if kind == "exit":
        return f"the Python process ended by itself with code {cause['exit_code']}"
    if kind == "signal":
        return f"the Python process was ended by {cause['signal_name']}"
    return {
        "oom": "the Python process was ended because memory ran out",
        "timeout": "the Python process was ended because the time was over",
        "cancelled": "the Python process was ended because the run was cancelled",
        "restart": "the kernel was restarted",
        "closed": "the Python process closed its channel to the supervisor, and was ended because it did not end by itself",
        "protocol": "the Python process broke the protocol of its channel to the supervisor, and was ended",
        "zygote": "the process that starts kernels was ended, and the Python process with it",
    }.get(kind, "the Python process was killed")
