"""A server with a child that holds its pipes, as launchers have them. `hold` answers once `release` is called."""
import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake  # noqa: E402

fake = Fake("family")
fake.cli()
child = subprocess.Popen(["sleep", "600"])
released = threading.Event()


@fake.tool("pids", "own process id and the child's")
def pids(args, ctx):
    return "%d %d" % (os.getpid(), child.pid)


@fake.tool("hold", "answers when it is released")
def hold(args, ctx):
    released.wait()
    return "held"


@fake.tool("release", "lets every hold go")
def release(args, ctx):
    released.set()
    return "released"


fake.run(parse=False)
