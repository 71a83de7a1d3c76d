"""Tools by name: those given with --read are marked read-only, those with --tool are not."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake  # noqa: E402

fake = Fake("many")


def options(parser):
    parser.add_argument("--tool", action="append", default=[])
    parser.add_argument("--read", action="append", default=[])


ns = fake.cli(extra=options)
schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
for name in ns.tool:
    fake.raw_tool({"name": name, "description": "writes " + name, "inputSchema": schema})
for name in ns.read:
    fake.raw_tool({"name": name, "description": "reads " + name, "inputSchema": schema,
                   "annotations": {"readOnlyHint": True}})
fake.run(parse=False)
