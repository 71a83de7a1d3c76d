"""A small MCP server for the soak test, over stdio or HTTP, that can die.

    server.py NAME [--crash-after CALLS] [--http PORT_FILE] [--forget-after REQUESTS]

It has one tool, NAME_echo, which answers `NAME:` and the text it was given. Over HTTP it
writes its port into PORT_FILE and, every so many requests, forgets all sessions.
"""

import argparse
import json
import os
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def answer(name, message):
    """The answer to one message, or None."""
    method, params = message.get("method"), message.get("params") or {}
    if "id" not in message:
        return None
    if method == "initialize":
        result = {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": name, "version": "1"},
        }
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        result = {"tools": [{"name": f"{name}_echo", "inputSchema": schema, "annotations": {"readOnlyHint": True}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": f"{name}:{params['arguments']['text']}"}]}
    elif method == "ping":
        result = {}
    else:
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "method not found"}}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def serve_stdio(name, crash_after):
    n_calls = 0
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "tools/call":
            n_calls += 1
            if crash_after and n_calls > crash_after:
                os._exit(3)
        reply = answer(name, message)
        if reply:
            print(json.dumps(reply), flush=True)


def serve_http(name, port_file, forget_after):
    sessions, lock, counter = set(), threading.Lock(), [0]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self):
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                counter[0] += 1
                if forget_after and counter[0] % forget_after == 0:
                    sessions.clear()
                known = self.headers.get("Mcp-Session-Id") in sessions
            if message.get("method") == "initialize":
                session = uuid.uuid4().hex
                with lock:
                    sessions.add(session)
                self.reply(200, answer(name, message), session)
            elif not known:
                self.reply(404 if self.headers.get("Mcp-Session-Id") else 400, None)
            else:
                reply = answer(name, message)
                self.reply(200 if reply else 202, reply)

        def do_GET(self):
            self.reply(405, None)

        def do_DELETE(self):
            with lock:
                sessions.discard(self.headers.get("Mcp-Session-Id"))
            self.reply(200, None)

        def reply(self, status, body, session=None):
            data = json.dumps(body).encode() if body else b""
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            if data:
                self.send_header("Content-Type", "application/json")
            if session:
                self.send_header("Mcp-Session-Id", session)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Path(port_file).write_text(str(server.server_port))
    server.serve_forever()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--crash-after", type=int, default=0)
    parser.add_argument("--http")
    parser.add_argument("--forget-after", type=int, default=0)
    options = parser.parse_args()
    if options.http:
        serve_http(options.name, options.http, options.forget_after)
    else:
        serve_stdio(options.name, options.crash_after)


if __name__ == "__main__":
    main()
