"""A model hub on this machine, for every test of the builder that needs one."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

Write = Callable[..., Path]
CHUNK_BYTES = 1 << 16
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Hub:
    """A hub with one model, `acme/tiny`; `refuse` makes it answer every request so; `ignores_ranges` sends whole
    files, `cuts_to_bytes` at most so many of a part. `requests` are paths and ranges asked for."""

    folder: Path
    refuse: tuple[int, str] | None = None
    refuse_files: tuple[int, str] | None = None
    requests: list[tuple[str, str]] = field(default_factory=list)
    endpoint: str = ""
    ignores_ranges: bool = False
    cuts_to_bytes: int | None = None
    sent_bytes: int = 0

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        if self.refuse:
            return self.refuse[0], {"X-Error-Code": self.refuse[1]} if self.refuse[1] else {}, b"{}"
        if path.startswith("/api/models/acme/tiny"):
            if "/revision/" in path and path.partition("/revision/")[2].partition("?")[0] not in ("main", "v1", COMMIT):
                return 404, {"X-Error-Code": "RevisionNotFound"}, b"{}"
            if "/tree/" in path:
                tree = [{"type": "file", "path": f.name, "size": f.stat().st_size, "oid": "0"} for f in sorted(self.folder.iterdir())]
                return 200, {}, json.dumps(tree).encode()
            files = [{"rfilename": f.name, "size": f.stat().st_size, "blobId": "0"} for f in sorted(self.folder.iterdir())]
            return 200, {}, json.dumps({"id": "acme/tiny", "modelId": "acme/tiny", "sha": COMMIT, "siblings": files}).encode()
        name = path.rpartition("/")[2].partition("?")[0]
        if path.startswith(f"/acme/tiny/resolve/{COMMIT}/") and (self.folder / name).is_file():
            if self.refuse_files:
                return self.refuse_files[0], {"X-Error-Code": self.refuse_files[1]}, b"{}"
            return 200, {"X-Repo-Commit": COMMIT, "ETag": f'"{name}"'}, (self.folder / name).read_bytes()
        return 404, {"X-Error-Code": "RepoNotFound"}, b"{}"


@pytest.fixture
def hub(write_checkpoint: Write) -> Iterator[Hub]:
    hub = Hub(write_checkpoint("published"))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(body=True)

        def do_HEAD(self) -> None:
            self._send(body=False)

        def _send(self, *, body: bool) -> None:
            asked = self.headers.get("Range", "")
            hub.requests.append((self.path, asked))
            status, headers, content = hub.answer(self.path)
            if asked and status == 200 and not hub.ignores_ranges:
                begin, _, end = asked.removeprefix("bytes=").partition("-")
                status, total = 206, len(content)
                content = content[int(begin) : int(end) + 1 if end else None][: hub.cuts_to_bytes]
                headers["Content-Range"] = f"bytes {begin}-{int(begin) + len(content) - 1}/{total}"
            self.send_response(status)
            for key, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(key, value)
            self.end_headers()
            if body:
                self._write(content)

        def _write(self, content: bytes) -> None:
            """Chunk by chunk, until nobody reads on."""
            with suppress(OSError):
                for begin in range(0, len(content), CHUNK_BYTES):
                    self.wfile.write(content[begin : begin + CHUNK_BYTES])
                    hub.sent_bytes += CHUNK_BYTES

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    hub.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    yield hub
    server.shutdown()
    server.server_close()
