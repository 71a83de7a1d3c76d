import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

fake = Fake("loud")
fake.f["stderr_bytes"] = 300000


@fake.tool("echo", "answers after a flood on stderr")
def echo(args, ctx):
    return "still here"


fake.run()
