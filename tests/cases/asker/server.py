"""A server of the newer era only, which asks for input before it answers."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402

fake = Fake("asker", era="modern")
fake.cli()

STATE = "signed:\u2603:1e400"


@fake.tool("ask", "asks for a name and a city")
def ask(args, ctx):
    return None


@fake.method("tools/call")
def call(params, ctx):
    answers = params.get("inputResponses")
    if answers is None:
        form = {"type": "object", "properties": {"name": {"type": "string", "x-own": 1}}}
        question = {"method": "elicitation/create", "params": {"mode": "form", "message": "Who?", "requestedSchema": form}}
        return {"resultType": "input_required", "inputRequests": {"who": question}, "requestState": STATE}
    if params.get("requestState") != STATE:
        raise RpcError(-32602, "the state was changed")
    return {"content": [{"type": "text", "text": "hello " + answers["who"]["content"]["name"]}]}


fake.run(parse=False)
