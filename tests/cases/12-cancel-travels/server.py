import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

import time

fake = Fake("jobs")


@fake.tool("slow", "ten seconds, can be cancelled")
def slow(args, ctx):
    return "cancelled" if ctx.sleep(10) else "finished"


@fake.tool("stubborn", "answers although cancelled")
def stubborn(args, ctx):
    time.sleep(1.5)
    ctx.cancelled.clear()
    return "answered anyway"


@fake.tool("fast", "at once")
def fast(args, ctx):
    return "done"


fake.run()
