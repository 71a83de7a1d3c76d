import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

import threading
import time

fake = Fake("worker")


@fake.tool("work", "reports progress", {"type": "object", "properties": {"steps": {"type": "integer"}}})
def work(args, ctx):
    n = int(args.get("steps", 3))
    for i in range(1, n + 1):
        time.sleep(0.1)
        ctx.progress(i, n, "step %d" % i)
    return "steps %d, meta %s" % (n, ",".join(sorted(ctx.meta)))


@fake.tool("late", "reports once more after its answer")
def late(args, ctx):
    t = threading.Timer(0.5, ctx.progress, (9, 9, "too late"))
    t.daemon = True
    t.start()
    return "answered"


@fake.tool("rude", "reports under a token nobody gave")
def rude(args, ctx):
    ctx.notify("notifications/progress", {"progressToken": "made-up", "progress": 1})
    return "answered"


fake.run()
