"""An OpenAI-compatible endpoint on loopback whose turns come from a function: recorded ones, scripted ones, or those of
a real server that it asks."""

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# A turn: {"content": text, "calls": [code, ...]}
Turn = dict
PIECE = 40


def _frame(delta: dict, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}).encode() + b"\n\n"


def _frames(turn: Turn) -> Iterator[bytes]:
    """The turn as a stream of server-sent events."""
    yield _frame({"role": "assistant", "content": ""})
    text = turn.get("content") or ""
    for at in range(0, len(text), PIECE):
        yield _frame({"content": text[at : at + PIECE]})
    calls = turn.get("calls") or []
    for index, code in enumerate(calls):
        function = {"name": "python", "arguments": json.dumps({"code": code})}
        yield _frame({"tool_calls": [{"index": index, "id": f"call-{index}", "type": "function", "function": function}]})
    yield _frame({}, "tool_calls" if calls else "stop")
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    yield b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


@contextmanager
def serving(answer: Callable[[dict], Turn]) -> Iterator[str]:
    """Serves until the block ends; gives the base URL. `answer` gets each request's body."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_POST(self):
            turn = answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for frame in _frames(turn):
                self.wfile.write(frame)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def scripted(turns: list[Turn]) -> Callable[[dict], Turn]:
    """Gives the turns one after the other; asking for more than there are is answered in words."""
    rest = iter(turns)
    return lambda _: next(rest, {"content": "There is nothing more to say."})
