import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

import json

fake = Fake("chatty")
fake.f["junk_stdout"] = 3
NOISE = {"text": [b"fetching..."], "scalar": [b"42", b"null", b"true", b"[]", b'"x"'],
         "object": [b'{"not":"rpc"}', b'{"jsonrpc":"2.0","id":"nobody","result":{}}'], "blank": [b"", b"   "],
         "binary": [b"\xff\xfe\x80 not text"], "long": [b"x" * 300000], "half": [b'{"jsonrpc":"2.0","id":1,"resu']}


@fake.tool("say", "noisy", {"type": "object", "properties": {"kind": {"type": "string"}}})
def say(args, ctx):
    kind = args.get("kind", "text")
    for line in NOISE.get(kind, []):
        fake.send(line + b"\n")
    if kind in ("bom", "crlf"):
        body = json.dumps({"jsonrpc": "2.0", "id": ctx.id, "result": {"content": [{"type": "text", "text": "said " + kind}]}}).encode()
        return (b"\xef\xbb\xbf" if kind == "bom" else b"") + body + (b"\r" if kind == "crlf" else b"") + b"\n"
    return "said " + kind


fake.run()
