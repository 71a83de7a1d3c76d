import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

import json

HERE = os.path.dirname(os.path.abspath(__file__))
fake = Fake("forms")
fake.cli()
with open(os.path.join(HERE, "expected-schemas.json"), encoding="utf-8") as fh:
    for name, s in json.load(fh).items():
        fake.raw_tool(dict({"name": name, "description": "keeps its schema"}, **s))
fake.run(parse=False)
