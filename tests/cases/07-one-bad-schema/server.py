import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

fake = Fake("mixed")
ns = fake.cli(extra=lambda p: p.add_argument("--good-only", action="store_true"))
obj = {"type": "object", "properties": {"q": {"type": "string"}}}
arm = lambda k: {"type": "object", "properties": {k: {"type": "string"}}, "required": [k]}
fake.raw_tool({"name": "good", "description": "fine", "inputSchema": obj})
if not ns.good_only:
    fake.raw_tool({"name": "root_anyof", "description": "two shapes", "inputSchema": {"anyOf": [arm("id"), arm("url")]}})
    fake.raw_tool({"name": "empty", "description": "no members", "inputSchema": {}})
    fake.raw_tool({"name": "only_dialect", "inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#"}})
    fake.raw_tool({"name": "string_type", "description": "not an object", "inputSchema": {"type": "string"}})
    fake.raw_tool({"name": "no_schema", "description": "member missing"})
    fake.raw_tool({"name": "null_schema", "description": "null", "inputSchema": None})
    fake.raw_tool({"name": "bad_output", "description": "output without type", "inputSchema": obj,
                   "outputSchema": {"description": "a result"}})
    fake.raw_tool({"description": "has no name", "inputSchema": obj})
fake.run(parse=False)
