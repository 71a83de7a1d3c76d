import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

NAMES = ["calendar.respond", "calendar_respond", "calendar/respond", "fs read", "a:b", "na\u00efve",
         "\u5de5\u5177", "\U0001f600", "UPPER", "upper", "-lead", "9nine"]
fake = Fake("odd")
fake.cli()
for name in NAMES:
    fake.raw_tool({"name": name, "description": "odd name", "inputSchema": {"type": "object"}},
                  lambda args, ctx, n=name: "ran " + n)
fake.run(parse=False)
