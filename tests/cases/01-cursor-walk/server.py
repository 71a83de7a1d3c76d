import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

def more(p):
    p.add_argument("--prefix", default="t")
    p.add_argument("--tools", type=int, default=14)


fake = Fake("paged")
ns = fake.cli(extra=more)
for i in range(1, ns.tools + 1):
    fake.raw_tool({"name": "%s%02d" % (ns.prefix, i), "description": "tool %d" % i, "inputSchema": {"type": "object"}})
fake.run(parse=False)
