import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

import subprocess

fake = Fake("launcher")
ns = fake.cli(extra=lambda p: p.add_argument("--pids", default="pids.txt"))
code = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(120)"
kid = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), ns.pids), "w", encoding="utf-8") as fh:
    fh.write("%d\n%d\n" % (os.getpid(), kid.pid))


@fake.tool("pids", "own and second process id")
def pids(args, ctx):
    return "%d %d" % (os.getpid(), kid.pid)


fake.run(parse=False)
