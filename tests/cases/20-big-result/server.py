import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

import base64
import hashlib

fake = Fake("camera")


@fake.tool("shot", "an image", {"type": "object", "properties": {"kib": {"type": "integer"}}})
def shot(args, ctx):
    raw = bytes(range(256)) * 4 * int(args.get("kib", 1))
    return {"content": [{"type": "image", "mimeType": "image/png", "data": base64.b64encode(raw).decode()},
                        {"type": "text", "text": hashlib.sha256(raw).hexdigest()}]}


@fake.tool("swallow", "measures its argument", {"type": "object", "properties": {"data": {"type": "string"}}})
def swallow(args, ctx):
    raw = args.get("data", "").encode("utf-8")
    return "%d %s" % (len(raw), hashlib.sha256(raw).hexdigest())


fake.run()
