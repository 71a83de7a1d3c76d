import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

import json

HERE = os.path.dirname(os.path.abspath(__file__))
TEXT = open(os.path.join(HERE, "expected.txt"), encoding="utf-8", newline="").read()
fake = Fake("poet")


@fake.tool("verse", "a hard text \U0001f469\u200d\U0001f680")
def verse(args, ctx):
    return TEXT


@fake.tool("echo", "its argument", {"type": "object", "properties": {"text": {"type": "string"}}})
def echo(args, ctx):
    return args.get("text", "")


@fake.tool("lone", "half an emoji")
def lone(args, ctx):
    return b'{"jsonrpc":"2.0","id":' + json.dumps(ctx.id).encode() + b',"result":{"content":[{"type":"text","text":"half \\ud83d here"}]}}\n'


fake.run()
