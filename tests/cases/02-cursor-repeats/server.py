import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

fake = Fake("loop")
ns = fake.cli(extra=lambda p: p.add_argument("--plain", action="store_true"))
for name in (["f1", "f2"] if ns.plain else ["n%d" % i for i in range(1, 10)]):
    fake.raw_tool({"name": name, "description": name, "inputSchema": {"type": "object"}})
fake.run(parse=False)
