"""The supervisor's side of its children: zygotes, the kernel, profile workers. Every byte from them is hostile."""

import os

import channel
import frames
import processes

# A child that does not take its messages for so long is stuck.
SEND_SECONDS = 5
# Representations of one display that are binary.
MAX_BLOBS = 4


class Peer:
    """One child's socket: whole JSON messages in, messages with descriptors out."""

    def __init__(self, sock):
        sock.settimeout(SEND_SECONDS)
        self._sock = sock
        self._decoder = frames.Decoder(frames.MAX_JSON_FROM_CHILD, frames.MAX_BLOB)
        self._blobs = []
        self.fd = sock.fileno()
        self.pid = None
        self.doomed = False
        # It has closed its end of the socket, or broken the framing: nothing can be asked of it any more.
        self.closed = False
        self.broken = False
        # Nothing more can be read now.
        self.idle = False

    def read(self):
        """`(messages with their sizes, still open)`; binary data that came before a message is its `blobs`."""
        self.idle = False
        try:
            data = os.read(self.fd, 1 << 18)
        except BlockingIOError:
            self.idle = True
            return [], True
        except OSError:
            data = b""
        self.idle = not data
        messages = []
        try:
            for kind, payload in self._decoder.feed(data):
                if kind == frames.KIND_BLOB:
                    self._blobs.append(payload)
                    if len(self._blobs) > MAX_BLOBS:
                        raise frames.FrameError("binary data that belongs to no message")
                    continue
                message = frames.parse_json(payload)
                if message is not None:
                    message["blobs"], self._blobs = self._blobs, []
                    messages.append((message, len(payload)))
        except frames.FrameError:
            self.idle = self.broken = True
            return messages, False
        return messages, bool(data)

    def send(self, message, fds=()):
        """False where the child is gone or stuck."""
        try:
            channel.send_with_fds(self._sock, message, fds)
        except OSError:
            return False
        return True

    def kill(self):
        """Ends it and its group, now or as soon as its pid is known."""
        self.doomed = True
        if self.pid is not None:
            processes.kill_group(self.pid)

    def close(self):
        """Gives the socket back."""
        self._sock.close()


class Zygote(Peer):
    """A process that forks others on demand."""

    def __init__(self, sock, name):
        super().__init__(sock)
        self.name = name
        self.ready = False
        self.missing = []
        self._token = 0
        self.forking = {}
        self.children = {}

    def fork(self, peer_type, order):
        """Orders a child and returns the supervisor's end of its socket; its pid comes with a later message."""
        ours, theirs = channel.pair()
        peer = peer_type(ours)
        self._token += 1
        self.forking[self._token] = peer
        self.resume()
        sent = self.send({"token": self._token, **order}, [theirs.fileno()])
        theirs.close()
        if not sent:
            del self.forking[self._token]
            peer.close()
            return None
        peer.zygote = self
        return peer

    def resume(self):
        """Lets it go on where user code has stopped it by a signal: nobody else does its work."""
        if self.pid is not None:
            processes.resume(self.pid)


class Kernel(Peer):
    """The present kernel."""

    def __init__(self, sock):
        super().__init__(sock)
        self.zygote = None
        self.ready = False
        self.cause = None
        self.loaded = []
        # Code in it has started processes, which may live on.
        self.spawned = False
        # When its end, which is expected, has to be brought about.
        self.deadline = None

    @property
    def serves(self):
        """Whether requests can be given to it."""
        return self.ready and not self.doomed and not self.closed


class Worker(Peer):
    """One profile under way."""

    def __init__(self, sock):
        super().__init__(sock)
        self.zygote = None
        self.parent = None
        self.answered = False


def start_zygotes(keep_closed, workdir, folder):
    """Forks the first zygote, which forks the second; `(base, data)`."""
    base_ours, base_theirs = channel.pair()
    data_ours, data_theirs = channel.pair()
    pid = os.fork()
    if pid == 0:
        try:
            for fd in (*keep_closed, base_ours.fileno(), data_ours.fileno()):
                os.close(fd)
            import signal

            import zygote

            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            zygote.start(base_theirs, data_theirs, workdir, folder)
        finally:
            os._exit(1)
    base_theirs.close()
    data_theirs.close()
    base, data = Zygote(base_ours, "base"), Zygote(data_ours, "data")
    base.pid = pid
    return base, data

