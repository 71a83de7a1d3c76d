import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

fake = Fake("long")
fake.cli()
base = "synchronize_every_customer_record_across_all_regions_and_then_write_a_report_about_it_"
names = ["x"] + [("tool_%d_" % n + "abcdefghij" * 13)[:n] for n in (63, 64, 65, 90, 128)]
names += [(base[:84] + tail)[:90] for tail in ("_alpha", "_gamma")]
for name in names:
    fake.raw_tool({"name": name, "description": "a name of %d characters" % len(name), "inputSchema": {"type": "object"}},
                  lambda args, ctx, n=name: "len:%d end:%s" % (len(n), n[-5:]))
fake.run(parse=False)
