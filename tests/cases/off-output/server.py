"""A tool whose output schema has a type that no dialect knows, deep inside; its input schema is right."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake  # noqa: E402

fake = Fake("pages")
fake.cli()
rows = {"type": "object", "properties": {"rows": {"type": "object", "properties": {"cells": {"type": "list"}}}}}
limit = {"type": "object", "properties": {"limit": {"type": "integer", "maximum": 5}}, "required": ["limit"]}
for name, more in (("pages_get", {"outputSchema": rows}), ("pages_list", {})):
    fake.raw_tool(dict({"name": name, "description": "returns pages", "inputSchema": limit}, **more))
fake.run(parse=False)
