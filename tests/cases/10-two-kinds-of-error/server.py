import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

fake = Fake("faulty")


@fake.tool("fails", "a tool-level failure")
def fails(args, ctx):
    return {"content": [{"type": "text", "text": "no such row"}, {"type": "text", "text": "try id 7"}], "isError": True}


@fake.tool("rpc", "a protocol-level failure")
def rpc(args, ctx):
    raise RpcError(-32602, "bad argument q", {"field": "q", "got": None})


@fake.tool("custom", "a code with a meaning")
def custom(args, ctx):
    raise RpcError(-32042, "sign in first", {"elicitations": [{"mode": "url", "url": "https://example.invalid/in", "message": "Sign in"}]})


@fake.tool("odd", "an unusual code")
def odd(args, ctx):
    raise RpcError(7, 'line one "quoted"\nline two')


fake.run()
