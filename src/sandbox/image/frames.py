"""Framing of the pipe, and the Jupyter message envelope that its JSON frames carry.

A frame is a big-endian u32 payload length, a u8 kind and the payload. Kind 1 is one JSON message in
Jupyter's envelope; kind 2 is a raw chunk: the 16 bytes of a transfer id followed by at most 1 MiB of data.
The same framing joins the supervisor to the host and to its own children, which may send kind 3 as well.
"""

import binascii
import json
import math
import os
import struct
import time
import uuid

HEADER = struct.Struct(">IB")
KIND_JSON = 1
KIND_RAW = 2
# Between the supervisor and its children only: binary data of the message that follows.
KIND_BLOB = 3
CHUNK = 1 << 20
TRANSFER_ID = 16
MAX_RAW = CHUNK + TRANSFER_ID
# Code and requests are small; displays (a 30 MB figure in base64) are not.
MAX_JSON_FROM_HOST = 16 << 20
MAX_JSON_TO_HOST = 64 << 20
MAX_JSON_FROM_CHILD = 48 << 20
MAX_BLOB = 32 << 20

SESSION = uuid.uuid4().hex


class FrameError(Exception):
    """The peer broke the framing, so the rest of the stream cannot be read."""


def encode(kind, payload):
    """One frame as bytes."""
    return HEADER.pack(len(payload), kind) + payload


def encode_json(message):
    """A JSON frame that any reader of JSON takes: without NaN, infinities and lone surrogates."""
    try:
        data = _dump(message)
    except ValueError:
        data = _dump(_clean(message))
    return encode(KIND_JSON, data)


def encode_with_blobs(message, blobs):
    """A JSON frame in which each key of `blobs`, a token that stands as a string, is replaced by its bytes in base64.

    The tokens stand in the message in the order of `blobs`.
    """
    rest = encode_json(message)[HEADER.size :]
    pieces = []
    for token, data in blobs.items():
        before, _, rest = rest.partition(b'"%s"' % token.encode("ascii"))
        pieces += [before, b'"', binascii.b2a_base64(data, newline=False), b'"']
    pieces.append(rest)
    return b"".join([HEADER.pack(sum(map(len, pieces)), KIND_JSON), *pieces])


def _dump(message):
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode("utf-8")


def _clean(value):
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {_clean(str(key)): _clean(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(each) for each in value]
    return value


def encode_chunk(transfer, data):
    """A raw frame with a piece of the transfer."""
    return HEADER.pack(TRANSFER_ID + len(data), KIND_RAW) + transfer + data


class Decoder:
    """Cuts a byte stream into frames; holds at most one. A raw chunk is passed on in pieces, as it comes."""

    def __init__(self, max_json, max_blob=0, raw=False):
        self._max_json = max_json
        self._max_blob = max_blob
        self._max_raw = MAX_RAW if raw else 0
        self._head = bytearray()
        self._head_bytes = HEADER.size
        self._kind = None
        self._left = 0
        self._transfer = b""
        self._pieces = []

    def feed(self, data):
        """Yields `(kind, payload)` for every frame that is complete now, and `(KIND_RAW, (transfer, piece))`.

        A piece is a view of `data`, valid until the next one is asked for.
        """
        view = memoryview(data)
        while True:
            if self._kind is None:
                view = self._take_head(view)
                if self._kind is None:
                    return
            piece, view = view[: self._left], view[self._left :]
            self._left -= len(piece)
            kind = self._kind
            if self._left == 0:
                self._kind = None
            if kind == KIND_RAW:
                yield kind, (self._transfer, piece)
            else:
                self._pieces.append(bytes(piece))
                if self._kind is None:
                    payload = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
                    self._pieces = []
                    yield kind, payload
            if self._kind is not None:
                return

    def _take_head(self, view):
        """Takes the head of a frame, as far as it has come; the rest of the view."""
        while len(view):
            taken = view[: self._head_bytes - len(self._head)]
            self._head += taken
            view = view[len(taken) :]
            if len(self._head) < self._head_bytes:
                break
            length, kind = HEADER.unpack_from(self._head)
            if self._head_bytes == HEADER.size:
                self._check(length, kind)
                if kind == KIND_RAW:
                    self._head_bytes += TRANSFER_ID
                    continue
            self._kind, self._left = kind, length - (len(self._head) - HEADER.size)
            self._transfer = bytes(self._head[HEADER.size :])
            self._head.clear()
            self._head_bytes = HEADER.size
            break
        return view

    def _check(self, length, kind):
        if kind == KIND_JSON and length <= self._max_json:
            return
        if kind == KIND_RAW and TRANSFER_ID <= length <= self._max_raw:
            return
        if kind == KIND_BLOB and length <= self._max_blob:
            return
        raise FrameError(f"frame of kind {kind} with {length} bytes is not allowed")


def parse_json(payload):
    """The JSON object of a frame, or None where it is anything else."""
    try:
        message = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


_USERNAME = "codeinterp"
_counter = 0
_prefix = uuid.uuid4().hex[:16]


def envelope(msg_type, content, parent=None, channel="iopub", metadata=None):
    """A message in Jupyter's envelope; `parent` is the header of the request that caused it."""
    global _counter
    _counter += 1
    now = time.time()
    date = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1e6):06d}Z"
    return {
        "header": {
            "msg_id": f"{_prefix}-{os.getpid()}-{_counter}",
            "msg_type": msg_type,
            "session": SESSION,
            "username": _USERNAME,
            "date": date,
            "version": "5.4",
        },
        "parent_header": parent,
        "metadata": metadata or {},
        "content": content,
        "channel": channel,
    }
