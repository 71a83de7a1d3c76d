import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

fake = Fake("neighbour")
ns = fake.cli(extra=lambda p: p.add_argument("--quit", action="store_true"))
if ns.quit:
    fake._note({"started": True})
    sys.stderr.write("config file not found\n")
    sys.exit(3)
fake.raw_tool({"name": "hello_" + ns.name, "description": "answers", "inputSchema": {"type": "object"}})
fake.run(parse=False)
