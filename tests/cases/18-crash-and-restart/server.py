import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

import time

fake = Fake("shaky")


@fake.tool("pid", "the process id")
def pid(args, ctx):
    return "pid %d" % os.getpid()


@fake.tool("nap", "three seconds")
def nap(args, ctx):
    time.sleep(3)
    return "woke"


@fake.tool("boom", "ends the process")
def boom(args, ctx):
    sys.stderr.write("fatal: lost the database\n")
    sys.stderr.flush()
    os._exit(1)


fake.run()
