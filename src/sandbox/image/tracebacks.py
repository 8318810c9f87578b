"""Errors of a cell as Jupyter reports them, without colours, and the same with the user's own frames only."""

import linecache
import os
import traceback

MAX_VALUE = 8 << 10
MAX_TRACEBACK = 64 << 10
MAX_FRAMES = 40


def report(shell, error, lines, workdir):
    """The content of a Jupyter `error` message, with `traceback_user`: the trimmed variant as one string."""
    return {
        "ename": type(error).__name__[:200],
        "evalue": clip(_value(error), MAX_VALUE),
        "traceback": _clip_lines(lines),
        "traceback_user": clip(_user_frames(shell, error, workdir), MAX_TRACEBACK // 4),
    }


def clip(text, limit):
    """Head and tail of a text that is too long, with what was left out said between them."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"


def _value(error):
    try:
        return str(error)
    except Exception as broken:
        return f"<its message raises {type(broken).__name__}>"


def _clip_lines(lines):
    lines = [clip(str(line), MAX_TRACEBACK // 4) for line in lines]
    if sum(map(len, lines)) <= MAX_TRACEBACK:
        return lines
    return clip("\n".join(lines), MAX_TRACEBACK).split("\n")


def _cell_name(shell, filename):
    name = getattr(shell.compile, "format_code_name", lambda _: None)(filename)
    return " ".join(name) if name else None


def _user_frames(shell, error, workdir):
    out = []
    if isinstance(error, SyntaxError):
        place = _cell_name(shell, error.filename or "") or os.path.basename(error.filename or "?")
        out.append(f"  {place}, line {error.lineno}\n")
        if error.text:
            text = error.text.rstrip("\n")[:500]
            out.append(f"    {text}\n")
            if error.offset and error.offset <= len(text) + 1:
                out.append("    " + " " * (error.offset - 1) + "^\n")
    else:
        # Walked by hand: a recursion error has thousands of frames, and only a few matter.
        frames = []
        step = error.__traceback__
        while step is not None and len(frames) < 20000:
            code = step.tb_frame.f_code
            place = _cell_name(shell, code.co_filename)
            if place is None and code.co_filename.startswith(workdir + os.sep):
                place = code.co_filename[len(workdir) + 1 :]
            if place is not None:
                frames.append((place, code.co_filename, step.tb_lineno, code.co_name))
            step = step.tb_next
        if len(frames) > MAX_FRAMES:
            half = MAX_FRAMES // 2
            left_out = len(frames) - 2 * half
            frames = [*frames[:half], (f"... {left_out} more frames ...", None, None, None), *frames[-half:]]
        if frames:
            out.append("Traceback (your frames only):\n")
        for place, filename, line, name in frames:
            if filename is None:
                out.append(f"  {place}\n")
                continue
            out.append(f"  {place}, line {line}" + ("\n" if name == "<module>" else f", in {name}\n"))
            source = linecache.getline(filename, line).strip()[:300]
            if source:
                out.append(f"    {source}\n")
    try:
        out.extend(traceback.format_exception_only(type(error), error)[-1:])
    except Exception:
        out.append(f"{type(error).__name__}\n")
    return "".join(out)
