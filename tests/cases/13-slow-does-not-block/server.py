import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

import time

fake = Fake("nap")


@fake.tool("nap", "sleeps", {"type": "object", "properties": {"seconds": {"type": "number"}, "tag": {"type": "string"}}})
def nap(args, ctx):
    time.sleep(float(args.get("seconds", 0)))
    return "woke " + str(args.get("tag", ""))


fake.run()
