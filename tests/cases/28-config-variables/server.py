import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

import json

fake = Fake("show")
ns = fake.cli(extra=lambda p: p.add_argument("--arg", action="append", default=[]))


@fake.tool("show", "what this process was given")
def show(args, ctx):
    env = {k: v for k, v in os.environ.items() if k.startswith("MX_") or k.startswith("OUT_")}
    return json.dumps({"arg": ns.arg, "env": env, "cwd": os.path.basename(os.getcwd())})


fake.run(parse=False)
