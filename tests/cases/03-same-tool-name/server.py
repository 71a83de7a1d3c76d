import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

fake = Fake("twin")
ns = fake.cli()
for name in ("search", "fetch"):
    fake.raw_tool({"name": name, "description": "the %s of this server" % name, "inputSchema": {"type": "object"}},
                  lambda args, ctx, n=name: "%s:%s" % (ns.name, n))
fake.run(parse=False)
