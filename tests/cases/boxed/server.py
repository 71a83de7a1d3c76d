"""A server that runs the Python it is given and says what came of it: for trying what a sandbox lets it do."""
import ctypes
import errno
import os
import socket
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake  # noqa: E402

fake = Fake("boxed")
libc = ctypes.CDLL(None, use_errno=True)


def syscall(*args):
    """Makes a system call by its number; raises as Python's own functions do."""
    if libc.syscall(*args) < 0:
        raise OSError(ctypes.get_errno(), "")


def run(args, ctx):
    scope = {"os": os, "socket": socket, "subprocess": subprocess, "sys": sys, "libc": libc, "syscall": syscall,
             "args": args, "out": None}
    try:
        exec(args["code"], scope)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
    return "ok %s" % (scope["out"],)


fake.cli()
fake.raw_tool({"name": "run", "inputSchema": {"type": "object"}}, run)
fake.run(parse=False)
