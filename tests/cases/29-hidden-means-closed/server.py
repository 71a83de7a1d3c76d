import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

fake = Fake("files")
fake.cli()
for name in ("read", "write", "delete", "delete_all"):
    fake.raw_tool({"name": name, "description": name + " a file", "inputSchema": {"type": "object"}})
fake.resource("file:///secret.txt", "secret")
fake.prompts.append({"name": "wipe", "description": "asks to delete"})
fake.run(parse=False)
