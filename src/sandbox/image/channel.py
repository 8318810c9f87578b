"""The socket pair between the supervisor and one of its children: JSON frames, with descriptors beside them."""

import array
import socket
import threading

import frames

_MAX_FDS = 8


def pair():
    """Two connected ends; neither is inherited by programs that a child starts."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)


class Channel:
    """The child's end: blocking, usable from several threads for sending."""

    def __init__(self, sock):
        self._sock = sock
        self._decoder = frames.Decoder(frames.MAX_JSON_FROM_HOST)
        self._messages = []
        self._fds = []
        self._lock = threading.RLock()

    def fileno(self):
        return self._sock.fileno()

    def close(self):
        self._sock.close()

    def send(self, message, blobs=()):
        """Sends one message whole, its binary data before it; False where it is too large."""
        data = frames.encode_json(message)
        if len(data) > frames.MAX_JSON_FROM_CHILD or any(len(blob) > frames.MAX_BLOB for blob in blobs):
            return False
        with self._lock:
            for blob in blobs:
                self._sock.sendall(frames.HEADER.pack(len(blob), frames.KIND_BLOB))
                self._sock.sendall(blob)
            self._sock.sendall(data)
        return True

    def receive(self):
        """The next message, or None when the supervisor is gone."""
        while not self._messages:
            data, ancillary, _flags, _address = self._sock.recvmsg(1 << 16, socket.CMSG_SPACE(_MAX_FDS * 4), socket.MSG_CMSG_CLOEXEC)
            if not data:
                return None
            self._fds += _descriptors(ancillary)
            for _kind, payload in self._decoder.feed(data):
                message = frames.parse_json(payload)
                if message is not None:
                    self._messages.append(message)
        return self._messages.pop(0)

    def take_fds(self, count):
        """The oldest `count` descriptors that came with the messages."""
        taken, self._fds = self._fds[:count], self._fds[count:]
        return taken


def _descriptors(ancillary):
    found = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return list(found)


def send_with_fds(sock, message, fds=()):
    """The supervisor's side of sending: a small message, with descriptors for the child.

    The socket is in blocking mode for this: its peer reads whenever it is idle, and messages go to it only then.
    """
    data = frames.encode_json(message)
    sent = 0
    if fds:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
        sent = sock.sendmsg([data], rights)
    if sent < len(data):
        sock.sendall(data[sent:])
