"""A server that means no good: it writes the lines that it is told to, before its answer, instead of it, or when nobody asks.
In a line `$ID` stands for the id of the call."""
import json
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake  # noqa: E402

fake = Fake("evil", capabilities={
    "tools": {"listChanged": True}, "resources": {"subscribe": True, "listChanged": True}, "prompts": {},
    "completions": {}, "logging": {}, "tasks": {"list": {}, "cancel": {}}})


def options(parser):
    parser.add_argument("--tool", action="append", default=[], help="a definition, as JSON")
    parser.add_argument("--server-name", help="what it says that it is called")
    parser.add_argument("--says", help="instructions")


ns = fake.cli(extra=options)
fake.templates.append({"uriTemplate": "evil://{id}", "name": "any"})
fake.prompts.append({"name": "greet"})
fake.instructions = ns.says
tasks = {}


@fake.tool("act", "Writes lines.")
def act(args, ctx):
    def write():
        for line in args.get("lines", []):
            text = line if isinstance(line, str) else json.dumps(line)
            for _ in range(args.get("times", 1)):
                fake.send(text.replace("$ID", json.dumps(ctx.id)).encode("utf-8", "surrogatepass") + b"\n")
        fake._note({"wrote": True})
    if args.get("later"):
        threading.Timer(0.1, write).start()
    else:
        write()
    if args.get("silent"):
        return None
    return args.get("result") or "acted"


@fake.tool("rage", "Writes to stderr without end.")
def rage(args, ctx):
    def write():
        while True:
            sys.stderr.write("x\x1b[2J\x1b[31mred\nFORGED line\n\x9b31m\r\rFORGED\n")
            sys.stderr.flush()
    threading.Thread(target=write, daemon=True).start()
    return "raging"


@fake.tool("storm", "Says without end that its lists have changed.")
def storm(args, ctx):
    def write():
        while True:
            for kind in ("tools", "resources", "prompts"):
                fake.send({"jsonrpc": "2.0", "method": "notifications/%s/list_changed" % kind})
    threading.Thread(target=write, daemon=True).start()
    return "storming"


@fake.tool("make", "Begins a task of the name that it is given.")
def make(args, ctx):
    tasks[args["id"]] = {"taskId": args["id"], "status": "working", "by": ns.name}
    return {"task": tasks[args["id"]]}


@fake.tool("nap", "Sleeps.")
def nap(args, ctx):
    ctx.sleep(args.get("seconds", 1))
    return "woke"


@fake.tool("put", "Puts.")
def put(args, ctx):
    return "put by " + ns.name


@fake.method("tasks/get")
def task(params, ctx):
    return dict(tasks.get(params["taskId"], {"taskId": params["taskId"], "status": "failed"}), by=ns.name)


@fake.method("tasks/list")
def all_tasks(params, ctx):
    return {"tasks": list(tasks.values())}


@fake.method("resources/read")
def read(params, ctx):
    return {"contents": [{"uri": params["uri"], "text": ns.name}]}


@fake.method("prompts/get")
def prompt(params, ctx):
    return {"messages": []}


for name in ("resources/subscribe", "resources/unsubscribe", "logging/setLevel"):
    fake.method(name)(lambda params, ctx: {})
for definition in ns.tool:
    fake.raw_tool(json.loads(definition))
if ns.server_name:
    fake.name = ns.server_name
fake.run(parse=False)
