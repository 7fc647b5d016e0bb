"""A server that says what a test tells it to: the real page, answered by scripted streams and errors."""
import http.server
import json
import threading
import time


def chunk(delta=None, finish=None, **more):
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return f"data: {json.dumps({'id': 'x', 'object': 'chat.completion.chunk', 'choices': choices, **more})}\n\n".encode()


def usage(prompt=10, answer=5, cached=0):
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer, "prompt_tokens_details": {"cached_tokens": cached}}


def said(*deltas, finish="stop"):
    """An answer's whole stream. A string is content."""
    parts = [chunk({"content": d} if isinstance(d, str) else d) for d in deltas]
    return [*parts, chunk({}, finish), chunk(usage=usage()), b"data: [DONE]\n\n"]


class Error:
    def __init__(self, status, message="no", code=None, **headers):
        self.status, self.headers = status, headers
        self.body = json.dumps({"error": {"message": message, "type": "x", "param": None, "code": code}}).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def reply(self, status, body, headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        fake = self.server
        if self.path == "/":
            self.reply(200, fake.page, fake.page_headers)
        elif self.path == "/health":
            self.reply(503 if fake.loading else 200, json.dumps({"status": "loading", "progress": fake.loading}).encode(), {})
        elif fake.loading:
            self.fail(Error(503, code="loading"))
        else:
            fake.named.wait(10)
            self.reply(200, b'{"data": [{"id": "fake"}]}', {"Content-Type": "application/json"})

    def fail(self, error):
        self.reply(error.status, error.body, {"Content-Type": "application/json", **error.headers})

    def do_POST(self):
        """The next of .answers: an Error, or pieces of bytes, of which a number is a pause in seconds."""
        fake = self.server
        fake.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        answer = fake.answers.pop(0)
        if isinstance(answer, Error):
            return self.fail(answer)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        try:
            for piece in answer:
                if isinstance(piece, (int, float)):
                    time.sleep(piece)
                else:
                    self.wfile.write(piece)
        except (BrokenPipeError, ConnectionResetError):
            fake.left += 1


class Fake(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, page, page_headers):
        super().__init__(("127.0.0.1", 0), Handler)
        self.page, self.page_headers = page, page_headers
        self.answers, self.requests, self.left, self.loading = [], [], 0, None
        self.named = threading.Event()  # cleared: the list of models waits
        self.named.set()
        self.url = f"http://127.0.0.1:{self.server_port}/"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()
