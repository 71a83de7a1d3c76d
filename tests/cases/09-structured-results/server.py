import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

import json

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}
fake = Fake("data")
fake.cli()
with open(os.path.join(HERE, "expected-results.json"), encoding="utf-8") as fh:
    for name, result in json.load(fh).items():
        entry = {"name": name, "description": "returns a fixed result", "inputSchema": {"type": "object"}}
        if name != "plain":
            entry["outputSchema"] = OUT
        fake.raw_tool(entry, lambda args, ctx, r=result: r)
fake.run(parse=False)
