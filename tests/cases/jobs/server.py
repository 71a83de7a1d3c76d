"""Calls that become tasks: every one of `start` is one. Tells of the last one when `finish` is called."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402

EXTENSION = "io.modelcontextprotocol/tasks"
fake = Fake("jobs")
ns = fake.cli()
legacy = fake.f["era"] == "legacy"
capabilities = {"tools": {}}
if legacy:
    capabilities["tasks"] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
else:
    capabilities["extensions"] = {EXTENSION: {}}
fake.caps = capabilities
jobs = {}


def task(job):
    return dict(jobs[job], taskId=job)


@fake.tool("start", "begins a job", execution={"taskSupport": "optional"})
def start(args, ctx):
    job = "job-%d" % (len(jobs) + 1)
    jobs[job] = {"status": "working", "ttl": 60000, "createdAt": "2026-01-01T00:00:00Z",
                 "lastUpdatedAt": "2026-01-01T00:00:00Z"}
    if legacy:
        return {"task": task(job)}
    return dict(task(job), resultType="task")


@fake.tool("finish", "ends the last job")
def finish(args, ctx):
    job = "job-%d" % len(jobs)
    jobs[job]["status"] = "completed"
    fake.send({"jsonrpc": "2.0", "method": "notifications/tasks/status" if legacy else "notifications/tasks",
               "params": task(job)})
    return "finished"


def known(params):
    if params.get("taskId") not in jobs:
        raise RpcError(-32602, "no such task")
    return params["taskId"]


@fake.method("tasks/get")
def get(params, ctx):
    return task(known(params))


@fake.method("tasks/result")
def result(params, ctx):
    return {"content": [{"type": "text", "text": "done " + known(params)}]}


@fake.method("tasks/cancel")
def cancel(params, ctx):
    jobs[known(params)]["status"] = "cancelled"
    return task(params["taskId"])


@fake.method("tasks/update")
def update(params, ctx):
    known(params)
    return {}


@fake.method("tasks/list")
def listed(params, ctx):
    return {"tasks": [task(job) for job in jobs]}


fake.run(parse=False)
