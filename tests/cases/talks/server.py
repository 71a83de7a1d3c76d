"""A server that does what is asked of it: asks the client back, tells it things, fails over HTTP in every way. What it did
is in the journal as {"ran": NAME}, apart from what reached it."""
import json
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402

fake = Fake("talks", capabilities={
    "tools": {"listChanged": True}, "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True}, "completions": {}, "logging": {}})


ns = fake.cli(extra=lambda p: p.add_argument("--prompt", action="append", default=[]))
fake.resource("info://about", "about " + ns.name)
fake.resource("doc://flaky", "read at last")
fake.templates.append({"uriTemplate": "note://{id}", "name": "note"})
for prompt in ns.prompt or ["greet"]:
    fake.prompts.append({"name": prompt, "arguments": [{"name": "x"}]})
n_flaky = 0


def tool(name):
    def wrap(fn):
        def run(args, ctx):
            fake._note({"ran": name})
            return fn(args, ctx)
        fake.raw_tool({"name": name, "inputSchema": {"type": "object"}}, run)
        return fn
    return wrap


@tool("ask")
def ask(args, ctx):
    return json.dumps(ctx.request(args["method"], args.get("params")))


@tool("say")
def say(args, ctx):
    """Logs each text; `later` after the answer, when nobody asked."""
    def all_of_them():
        for text in args["texts"]:
            message = {"jsonrpc": "2.0", "method": "notifications/message",
                       "params": {"level": args.get("level", "info"), "data": text * args.get("times", 1)}}
            (fake.send if args.get("later") else ctx._send)(message)
        fake._note({"said": len(args["texts"])})
    if args.get("later"):
        threading.Timer(0.2, all_of_them).start()
    else:
        all_of_them()
    return "said"


@tool("tell")
def tell(args, ctx):
    fake.send({"jsonrpc": "2.0", "method": args["method"], "params": args.get("params", {})})
    return "told"


@tool("nap")
def nap(args, ctx):
    ctx.sleep(args.get("seconds", 1))
    return "woke"


@tool("work")
def work(args, ctx):
    for step in range(1, args.get("steps", 3) + 1):
        ctx.sleep(0.1)
        ctx.progress(step)
    return "worked"


@tool("forget")
def forget(args, ctx):
    fake.sessions.clear()
    return "forgotten"


for name in ("put", "drop", "early", "status"):
    tool(name)(lambda args, ctx, name=name: name)


@fake.method("prompts/get")
def prompt(params, ctx):
    text = "%s|%s|%s" % (ns.name, params["name"], json.dumps(params.get("arguments")))
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}


@fake.method("completion/complete")
def complete(params, ctx):
    ref = params["ref"].get("name") or params["ref"].get("uri")
    return {"completion": {"values": ["%s|%s|%s" % (ns.name, ref, params["argument"]["value"])]}}


@fake.method("resources/read")
def read(params, ctx):
    uri = params["uri"]
    text = fake.contents.get(uri) or (ns.name + " note " + uri[7:] if uri.startswith("note://") else None)
    if text is None:
        raise RpcError(-32002, "Resource not found", {"uri": uri})
    return {"contents": [{"uri": uri, "text": text}]}


for name in ("resources/subscribe", "resources/unsubscribe", "logging/setLevel"):
    fake.method(name)(lambda params, ctx: {})


def fail(handler, msg):
    """The failures that only HTTP knows; says whether there was one."""
    global n_flaky
    params = msg.get("params") or {}
    if msg.get("method") == "resources/read" and params.get("uri") == "doc://flaky":
        n_flaky += 1
        handler.close_connection = n_flaky == 1
        return n_flaky == 1
    name, args = params.get("name"), params.get("arguments") or {}
    if msg.get("method") != "tools/call" or name not in ("drop", "early", "status"):
        return False
    fake._note({"ran": name})
    if name == "drop":
        handler.close_connection = True
    elif name == "early":
        handler.begin_stream()
        if args.get("id"):
            fake.resumable[args["id"]] = {"jsonrpc": "2.0", "id": msg["id"],
                                          "result": {"content": [{"type": "text", "text": "taken up"}]}}
            handler.event(None, args["id"], retry_ms=50)
        handler.end_stream()
    else:
        body = dict({"jsonrpc": "2.0", "id": msg["id"]}, **args["body"]) if "body" in args else None
        handler.reply(args["code"], body, args.get("headers"))
    return True


if ns.http:
    fake.run_http(0, on_request=fail, streams=True)
else:
    fake.run(parse=False)
