import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

HERE = os.path.dirname(os.path.abspath(__file__))
NUMBERS = open(os.path.join(HERE, "numbers.json"), "rb").read().strip()
fake = Fake("ledger")


@fake.tool("numbers", "a fixed line of numbers")
def numbers(args, ctx):
    import json
    return (b'{"jsonrpc":"2.0","id":' + json.dumps(ctx.id).encode() + b',"result":{"content":[{"type":"text","text":"see structured"}],"structuredContent":'
            + NUMBERS + b"}}\n")


@fake.tool("deep", "two hundred arrays inside each other")
def deep(args, ctx):
    import json
    return (b'{"jsonrpc":"2.0","id":' + json.dumps(ctx.id).encode() + b',"result":{"content":[{"type":"text","text":"deep"}],"structuredContent":{"d":'
            + b"[" * 200 + b"]" * 200 + b"}}}\n")


@fake.tool("seen", "the raw arguments", {"type": "object"})
def seen(args, ctx):
    raw = ctx.raw.decode("utf-8")
    return raw[raw.index('"arguments"'):].strip()


fake.run()
