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
    """A JSON frame in which each key of `blobs`, a token that stands as a string, is replaced by its bytes in base64."""
    payload = encode_json(message)[HEADER.size :]
    for token, data in blobs.items():
        quoted = b'"%s"' % binascii.b2a_base64(data, newline=False)
        payload = payload.replace(b'"%s"' % token.encode("ascii"), quoted, 1)
    return encode(KIND_JSON, payload)


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
    """Cuts a byte stream into frames; never holds more than one frame beyond what was fed."""

    def __init__(self, max_json, max_blob=0):
        self._max_json = max_json
        self._max_blob = max_blob
        self._buffer = bytearray()

    def feed(self, data):
        """Yields `(kind, payload)` for every frame that is complete now."""
        self._buffer += data
        start = 0
        try:
            while len(self._buffer) - start >= HEADER.size:
                length, kind = HEADER.unpack_from(self._buffer, start)
                self._check(length, kind)
                end = start + HEADER.size + length
                if len(self._buffer) < end:
                    break
                payload = bytes(memoryview(self._buffer)[start + HEADER.size : end])
                start = end
                yield kind, payload
        finally:
            if start:
                del self._buffer[:start]

    def _check(self, length, kind):
        if kind == KIND_JSON and length <= self._max_json:
            return
        if kind == KIND_RAW and TRANSFER_ID <= length <= MAX_RAW:
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
