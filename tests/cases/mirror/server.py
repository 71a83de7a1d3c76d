"""Answers a call with the arguments that came with it, byte by byte: no part of a call is decoded. `plain` puts them into
an answer as others write it, `framed` into one with blanks and members of its own. Lists definition.json as it is, too.
Speaks 2026-07-28 with --modern, over HTTP with --http, where a framed answer comes as an event."""
import http.server
import json
import os
import re
import sys

MODERN = "2026-07-28"
CALL = re.compile(rb'\{"jsonrpc":"2.0","id":(\d+),"method":"tools/call","params":')
FRAMES = {b"plain": b'{"jsonrpc":"2.0","id":%s,"result":%s}\n',
          b"framed": b' { "x-before":[1.0,{"id":7}], "result" : %s\t, "id": %s ,"jsonrpc":"2.0"} \r\n'}
TOOL = b'{"name":"%s","description":"a mirror","inputSchema":{"type":"object"}}'
is_modern = "--modern" in sys.argv
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "definition.json"), "rb") as file:
    tools = [TOOL % name for name in FRAMES] + [file.read().strip()]


def result_of(method):
    if method == "server/discover" and is_modern:
        return {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"}
    if method == "initialize" and not is_modern:
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "mirror", "version": "1"}}


def answer(line):
    call = CALL.match(line)
    if call:
        # The tests write the arguments last.
        start = line.index(b'"arguments":')
        said, number = line[start + len(b'"arguments":'):-len(b"}}\n")], call.group(1)
        if b'"name":"framed"' in line[:start]:
            return FRAMES[b"framed"] % (said, number)
        return FRAMES[b"plain"] % (number, said)
    message = json.loads(line)
    if "id" not in message:
        return b""
    if message["method"] == "tools/list":
        listed = b'{"tools":[%s],"resultType":"complete","ttlMs":0,"cacheScope":"private"}' % b",".join(tools)
        return FRAMES[b"plain"] % (b"%d" % message["id"], listed)
    result = result_of(message["method"])
    body = {"result": result} if result else {"error": {"code": -32601, "message": "no such method"}}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}).encode() + b"\n"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_POST(self):
        said = answer(self.rfile.read(int(self.headers["Content-Length"])) + b"\n").rstrip(b"\r\n")
        kind = "application/json"
        if b"x-before" in said[:20]:
            said, kind = b"event: message\ndata: " + said + b"\n\n", "text/event-stream"
        self.send_response(200 if said else 202)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def do_GET(self):
        self.send_response(405)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_DELETE = do_GET

    def log_message(self, *args):
        pass


if "--http" in sys.argv:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print("listening", server.server_address[1], flush=True)
    server.serve_forever()
for line in sys.stdin.buffer:
    sys.stdout.buffer.write(answer(line))
    sys.stdout.buffer.flush()
