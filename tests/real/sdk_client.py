"""Runs a scripted scenario against any stdio MCP server with the Python SDK.

    venv-sdk/bin/python sdk_client.py --mode auto --listen --script steps.json -- command args…

Owns what a real client sees: the SDK parses, validates and caches as it does in
an agent. It must not know gatekey: the command may be gatekey or a bare server.

Modes:
    legacy   ClientSession: `initialize` at 2025-11-25, no list cache
    auto     Client(mode="auto"): `server/discover` first, 2026-07-28 if it is
             answered, `initialize` if not; lists are cached by their ttlMs
    --listen (auto only) also opens `subscriptions/listen` for tool list changes

The script is a JSON list of steps:
    {"list": true}                  all pages; "full" instead of true adds the definitions,
                                    and "fresh": true goes past the cache of auto mode
    {"call": name, "arguments": {}}
    {"wait_list_changed": seconds}  passes at once if a change came since the last such step

Prints one JSON object on stdout: what was negotiated, then one entry per step.
A tool error or a JSON-RPC error is data. Exit 0: all steps ran; 1: they did not,
and "failed" says why. The server's stderr goes to stderr.
"""

import argparse
import json
import logging
import os
import sys
import time
from contextlib import AsyncExitStack

import anyio
import mcp_types
from mcp import Client, ClientSession, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

# A server whose cursors never end must not keep us listing until the time is up.
MAX_PAGES = 100


def main():
    options = parse_arguments()
    with open(options.script) as file:
        steps = json.load(file)
    # The SDK logs each line of stdout that is not JSON-RPC with a stack; they are counted instead.
    logging.getLogger("mcp.client.stdio").setLevel(logging.CRITICAL)

    report = {"mode": options.mode, "steps": []}
    try:
        anyio.run(run, options, steps, report)
    except Exception as error:  # Whatever happened, the caller gets one JSON object.
        report["failed"] = describe(error)
    print(json.dumps(report))
    sys.exit(1 if "failed" in report else 0)


def parse_arguments():
    parser = argparse.ArgumentParser(description="Run a scenario against a stdio MCP server.")
    parser.add_argument("--mode", choices=["legacy", "auto"], required=True)
    parser.add_argument("--script", required=True, help="JSON file with the list of steps")
    parser.add_argument("--listen", action="store_true", help="auto mode: subscribe to tool list changes")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for the whole scenario (default 60)")
    parser.add_argument("command", nargs="+", help="the server, after --")
    options = parser.parse_args()
    if options.listen and options.mode == "legacy":
        parser.error("--listen needs --mode auto")
    return options


async def run(options, steps, report):
    """Connects, runs the steps and leaves everything it learned in `report`."""
    changes = Changes()
    server = StdioServerParameters(
        command=options.command[0],
        args=options.command[1:],
        # The SDK alone would pass HOME, PATH and little more; tests hand settings over by environment.
        env=dict(os.environ),
    )
    try:
        with anyio.fail_after(options.timeout):
            async with AsyncExitStack() as stack:
                started = time.monotonic()
                if options.mode == "legacy":
                    client = await connect_legacy(stack, server, changes)
                else:
                    client = await connect_auto(stack, server, changes)
                report["connected_s"] = seconds_since(started)
                report["protocol_version"] = client.protocol_version
                report["server_info"] = wire(client.server_info)
                report["capabilities"] = wire(client.server_capabilities)
                report["instructions"] = client.instructions
                if options.listen:
                    report["listen"] = await open_listen(stack, client, changes)
                for step in steps:
                    started = time.monotonic()
                    outcome = await run_step(client, step, changes)
                    report["steps"].append({"step": step, "took_s": seconds_since(started), **outcome})
    except TimeoutError:
        raise RuntimeError(f"not done after {options.timeout:g} s, {len(report['steps'])} steps ran") from None
    finally:
        report["notifications"] = changes.notifications
        report["list_changed"] = {
            "notifications": changes.notified,
            "with_subscription_id": changes.stamped,
            "listen_events": changes.listened,
        }
        report["stdout_noise"] = changes.noise


async def connect_legacy(stack, server, changes):
    read, write = await stack.enter_async_context(stdio_client(server))
    session = ClientSession(read, write, message_handler=changes.on_message)
    await stack.enter_async_context(session)
    await session.initialize()
    return session


async def connect_auto(stack, server, changes):
    return await stack.enter_async_context(Client(server, mode="auto", message_handler=changes.on_message))


async def open_listen(stack, client, changes):
    """Subscribes to tool list changes; that the server does not offer it is a finding, not a failure."""
    try:
        subscription = await stack.enter_async_context(client.listen(tools_list_changed=True))
    except (ListenNotSupportedError, SubscriptionLost, MCPError) as error:
        return {"opened": False, "error": describe(error)}
    tasks = await stack.enter_async_context(anyio.create_task_group())
    # Runs before the task group is left, which would otherwise wait for the stream's end.
    stack.callback(tasks.cancel_scope.cancel)
    tasks.start_soon(changes.follow, subscription)
    return {"opened": True, "honored": wire(subscription.honored)}


async def run_step(client, step, changes):
    if "list" in step:
        return await list_tools(client, full=step["list"] == "full", fresh=step.get("fresh", False))
    if "call" in step:
        return await call_tool(client, step["call"], step.get("arguments", {}))
    if "wait_list_changed" in step:
        return {"arrived": await changes.wait(step["wait_list_changed"])}
    raise ValueError(f"unknown step: {json.dumps(step)}")


async def list_tools(client, full, fresh):
    tools, cursor, n_pages = [], None, 0
    try:
        while n_pages == 0 or cursor is not None:
            if n_pages == MAX_PAGES:
                raise RuntimeError(f"tools/list has over {MAX_PAGES} pages")
            page = await list_page(client, cursor, fresh)
            tools.extend(page.tools)
            cursor = page.next_cursor
            n_pages += 1
    except MCPError as error:
        return json_rpc_error(error)
    outcome = {"tools": [tool.name for tool in tools], "pages": n_pages}
    if full:
        outcome["definitions"] = [wire(tool) for tool in tools]
    return outcome


async def list_page(client, cursor, fresh):
    if isinstance(client, Client):
        return await client.list_tools(cursor=cursor, cache_mode="refresh" if fresh else "use")
    params = mcp_types.PaginatedRequestParams(cursor=cursor) if cursor is not None else None
    return await client.list_tools(params=params)


async def call_tool(client, name, arguments):
    """The result as it was on the wire, or the JSON-RPC error.

    The SDK checks structuredContent against the listed outputSchema, and lists
    the tools by itself if this tool was not listed yet.
    """
    try:
        result = await client.call_tool(name, arguments)
    except MCPError as error:
        return json_rpc_error(error)
    except RuntimeError as error:
        return {"invalid": str(error)}
    # The SDK leaves isError out when it is false; scripts should not have to know.
    return {"isError": False, **wire(result)}


def json_rpc_error(error):
    """The server's error as data; a server that is gone ends the scenario instead."""
    if error.code == mcp_types.CONNECTION_CLOSED and error.message == "Connection closed":
        raise error
    return {"error": wire(error.error)}


class Changes:
    """What the server sent unasked, and whether a tool list change is still unread."""

    def __init__(self):
        # Methods of the notifications, in the order the SDK handed them over.
        self.notifications = []
        # Tool list changes among them, and those that carry the id of a listen stream.
        self.notified = 0
        self.stamped = 0
        # Tool list changes that came out of our listen stream, where several unread ones count as one.
        self.listened = 0
        # Lines on stdout that are no JSON-RPC.
        self.noise = 0
        self.unread = anyio.Event()

    async def on_message(self, message):
        """Gets every notification, those of a listen stream too, so `unread` is set here alone."""
        if isinstance(message, Exception):
            self.noise += 1
            return
        self.notifications.append(message.method)
        if message.method == "notifications/tools/list_changed":
            self.notified += 1
            meta = (wire(message).get("params") or {}).get("_meta") or {}
            self.stamped += "io.modelcontextprotocol/subscriptionId" in meta
            self.unread.set()

    async def follow(self, subscription):
        try:
            async for _event in subscription:
                self.listened += 1
        except SubscriptionLost:
            self.notifications.append("(listen stream lost)")

    async def wait(self, seconds):
        with anyio.move_on_after(seconds):
            await self.unread.wait()
        arrived = self.unread.is_set()
        self.unread = anyio.Event()
        return arrived


def wire(model):
    """A protocol object as it was on the wire: no defaults that the SDK filled in."""
    if model is None:
        return None
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


def describe(error):
    """One line; the SDK's task groups wrap the real error."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


def seconds_since(started):
    return round(time.monotonic() - started, 3)


if __name__ == "__main__":
    main()
