import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

fake = Fake("era")
ns = fake.cli()
fake.raw_tool({"name": "tool_" + ns.name, "description": "answers", "inputSchema": {"type": "object"}})
fake.run(parse=False)
