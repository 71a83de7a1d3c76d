import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

import threading
import time

fake = Fake("busy")
ns = fake.cli(extra=lambda p: p.add_argument("--tick", action="store_true"))
changed = lambda ctx: ctx.notify("notifications/tools/list_changed")


@fake.tool("storm", "many notifications", {"type": "object", "properties": {"n": {"type": "integer"}}})
def storm(args, ctx):
    for _ in range(int(args.get("n", 200))):
        changed(ctx)
    return "stormed"


@fake.tool("grow", "adds a tool")
def grow(args, ctx):
    n = len(fake.tools)
    fake.raw_tool({"name": "extra_%d" % n, "description": "new tool %d" % n, "inputSchema": {"type": "object"}})
    changed(ctx)
    return "extra_%d" % n


@fake.tool("shrink", "removes the newest tool")
def shrink(args, ctx):
    gone = fake.tools.pop() if fake.tools[-1]["name"].startswith("extra_") else {"name": "nothing"}
    changed(ctx)
    return gone["name"]


@fake.tool("swap", "changes a description")
def swap(args, ctx):
    fake.tools[0]["description"] = "many notifications, renewed at %f" % time.time()
    changed(ctx)
    return "swapped"


def tick():
    while True:
        time.sleep(0.05)
        if hasattr(fake, "send"):
            fake.send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})


if ns.tick:
    threading.Thread(target=tick, daemon=True).start()
fake.run(parse=False)
