"""A server with odd moments: results of any size, calls that are never answered, sudden ends, garbage."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake  # noqa: E402

fake = Fake("odd")
fake.cli()


@fake.tool("big", "a result of so many bytes", {"type": "object", "properties": {"bytes": {"type": "integer"}}})
def big(args, ctx):
    return "x" * int(args.get("bytes", 0))


@fake.tool("hang", "never answers")
def hang(args, ctx):
    ctx.sleep(600)
    return None


@fake.tool("die", "ends the process")
def die(args, ctx):
    sys.stderr.write("the disk is on fire\n")
    sys.stderr.flush()
    os._exit(9)


@fake.tool("flood", "a thousand notifications, then the answer")
def flood(args, ctx):
    for number in range(1000):
        ctx.progress(number)
        ctx.notify("notifications/message", {"level": "info", "data": "line %d" % number})
    return "flooded"


@fake.tool("latin1", "an answer that is not UTF-8")
def latin1(args, ctx):
    return b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"caf\xe9"}]}}\n' % ctx.id


@fake.tool("ok", "answers")
def ok(args, ctx):
    return "fine"


fake.run(parse=False)
