import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

fake = Fake("split")
ns = fake.cli(extra=lambda p: p.add_argument("--tool", action="append", default=[]))
for name in ns.tool or ["do__it"]:
    fake.raw_tool({"name": name, "description": "echoes where it ran", "inputSchema": {"type": "object"}},
                  lambda args, ctx, n=name: "%s|%s" % (ns.name, n))
fake.run(parse=False)
