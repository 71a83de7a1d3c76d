"""Proves the test ground without gatekey: every server works, and how it behaves.

    python3 tests/real/check_direct.py target/real

Owns the table of what the five servers in servers.json answer when they are
started bare. A failing gatekey test with a good table here is gatekey's fault;
a bad table is the ground's. Each server is started four times: twice raw, to see
lines that the SDK would hide, then with sdk_client.py in both modes.

Exit 0: all servers and the inspector did what they should; 1: one did not.
"""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from string import Template

HERE = Path(__file__).resolve().parent

# One call per server that changes nothing.
READ_CALLS = {
    "everything": {"call": "echo", "arguments": {"message": "hello"}},
    "filesystem": {"call": "list_directory", "arguments": {"path": "${GATEKEY_WORK}/files"}},
    "memory": {"call": "read_graph", "arguments": {}},
    "git": {"call": "git_status", "arguments": {"repo_path": "${GATEKEY_WORK}/repo"}},
    "time": {"call": "get_current_time", "arguments": {"timezone": "Europe/Prague"}},
}

CLIENT_INFO = {"name": "check-direct", "version": "1"}
DISCOVER = {
    "method": "server/discover",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": CLIENT_INFO,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}
INITIALIZE = {
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT_INFO},
}

# The slowest answer seen is 2 s, a Python server importing; a silent server must not hold us up for long.
ANSWER_S = 15
# How long a server may take to end after its stdin is closed, before it is killed.
END_S = 5
# sdk_client.py gives up by itself after 60 s.
PROGRAM_S = 90


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_direct.py FOLDER, the one that setup filled")
    root = Path(sys.argv[1]).resolve()
    if not (root / "stamp").exists():
        sys.exit(f"check_direct: nothing installed, run: tests/real/setup {sys.argv[1]}")

    with tempfile.TemporaryDirectory() as work:
        prepare_work(Path(work))
        variables = {"GATEKEY_REAL": str(root), "GATEKEY_WORK": work}
        servers = json.loads(expand((HERE / "servers.json").read_text(), variables))["mcpServers"]
        rows = [check_server(name, server, root, work, variables) for name, server in servers.items()]
        inspector = check_inspector(servers["everything"], root, work)

    print_table(rows)
    print_details(rows)
    print(f"inspector --cli tools/list on everything: {inspector}")
    if inspector.startswith("failed") or any(row["failures"] for row in rows):
        sys.exit(1)


def prepare_work(work):
    """A folder with a file, and a repository with one commit and one new file."""
    (work / "files").mkdir()
    (work / "files" / "hello.txt").write_text("hello\n")
    repo = work / "repo"
    who = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "init", "--quiet", str(repo)], check=True)
    (repo / "first.txt").write_text("one\n")
    subprocess.run(["git", "-C", str(repo), "add", "."], check=True)
    subprocess.run(["git", "-C", str(repo), *who, "commit", "--quiet", "-m", "first"], check=True)
    (repo / "second.txt").write_text("two\n")


def expand(text, variables):
    return Template(text).substitute(variables)


def check_server(name, server, root, work, variables):
    """Everything about one server; what went wrong is collected in `failures`."""
    command = [server["command"], *server["args"]]
    env = {**os.environ, **server.get("env", {})}
    row = {"name": name, "failures": []}
    row.update(probe_initialize(command, env))
    row.update(probe_discover(command, env))

    call = json.loads(expand(json.dumps(READ_CALLS[name]), variables))
    steps = Path(work) / "steps.json"
    # The wait shows a server that announces changes without being asked.
    steps.write_text(json.dumps([{"list": "full"}, call, {"wait_list_changed": 0.5}]))
    for mode in (["legacy"], ["auto", "--listen"]):
        driver = [root / "venv-sdk" / "bin" / "python", HERE / "sdk_client.py", "--script", steps, "--mode", *mode]
        report = run_json([*driver, "--", *command], env)
        row[mode[0]] = report
        steps_ran = report.get("steps", [])
        if "failed" in report:
            row["failures"].append(f"{mode[0]}: {report['failed']}")
        elif not steps_ran[0].get("tools") or steps_ran[1].get("isError") is not False:
            row["failures"].append(f"{mode[0]}: {json.dumps(steps_ran[:2])[:500]}")
    return row


def probe_initialize(command, env):
    """A cold start by the older handshake, and how the server takes the end of its input."""
    with Raw(command, env) as raw:
        answer, took_s = raw.request(INITIALIZE)
        raw.notify({"method": "notifications/initialized"})
        raw.request({"method": "tools/list", "params": {}})
    return {
        "initialize_s": took_s if answer and "result" in answer else None,
        "ended": raw.ended,
        "noise": raw.noise,
        "stderr": raw.stderr,
    }


def probe_discover(command, env):
    """`server/discover` as the first line, then `initialize` on the same pipe as clients do when refused."""
    with Raw(command, env) as raw:
        answer, took_s = raw.request(DISCOVER)
        if answer is None:
            discover = "silent" if raw.alive() else "exited"
        elif "error" in answer:
            discover = f"refused {answer['error']['code']}"
        else:
            discover = "answered"
        after, _ = raw.request(INITIALIZE) if raw.alive() else (None, None)
        if after is None:
            then = "no answer"
        else:
            then = f"error {after['error']['code']}" if "error" in after else after["result"]["protocolVersion"]
    return {"discover": discover, "discover_s": took_s, "discover_answer": answer, "then_initialize": then}


class Raw:
    """A server spoken to in plain lines. Ends it on leaving the `with` block."""

    def __init__(self, command, env):
        self.next_id = 0
        # Lines on stdout that are no JSON, and what came on stderr.
        self.noise = []
        self.stderr = ""
        # How it ended: seconds after its stdin was closed, or that it had to be killed.
        self.ended = ""
        self.log = tempfile.TemporaryFile()
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log
        )
        self.messages = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        closed = time.monotonic()
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            code = self.process.wait(END_S)
            self.ended = f"{time.monotonic() - closed:.1f} s, code {code}"
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            self.ended = "killed"
        self.reader.join(END_S)
        self.log.seek(0)
        self.stderr = self.log.read().decode(errors="replace").strip()
        self.log.close()

    def alive(self):
        return self.process.poll() is None

    def request(self, message):
        """The answer, or None, and the seconds since this server was started or last asked."""
        self.next_id += 1
        started = self.started if self.next_id == 1 else time.monotonic()
        self._send({"id": self.next_id, **message})
        deadline = time.monotonic() + ANSWER_S
        while True:
            try:
                answer = self.messages.get(timeout=max(0, deadline - time.monotonic()))
            except queue.Empty:
                return None, ANSWER_S
            if answer is None:
                return None, time.monotonic() - started
            if answer.get("id") == self.next_id and "method" not in answer:
                return answer, time.monotonic() - started

    def notify(self, message):
        self._send(message)

    def _send(self, message):
        try:
            self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # It is gone; the reader tells by its None.

    def _read(self):
        for line in self.process.stdout:
            try:
                self.messages.put(json.loads(line))
            except ValueError:
                self.noise.append(line.decode(errors="replace").rstrip())
        self.messages.put(None)


def check_inspector(server, root, work):
    """The MCP inspector as a one-shot client; README.md has the invocation for a shell."""
    launcher = root / "npm" / "node_modules" / "@modelcontextprotocol" / "inspector" / "clients" / "launcher"
    command = [
        root / "bin" / "node", launcher / "build" / "index.js", "--cli", "--quiet",
        "--method", "tools/list", "--", server["command"], *server["args"],
    ]
    # It keeps a catalog in the home folder; not in the home of whoever runs this.
    started = time.monotonic()
    result = run_json(command, {**os.environ, "HOME": work})
    if "tools" not in result:
        return f"failed: {json.dumps(result)[:500]}"
    return f"{len(result['tools'])} tools in {time.monotonic() - started:.1f} s"


def run_json(command, env):
    """Runs a program that prints one JSON object; {"failed": …} if it did not."""
    try:
        done = subprocess.run(
            [str(part) for part in command], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=PROGRAM_S,
        )
        return json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {PROGRAM_S} s"}
    except ValueError:
        return {"failed": f"no JSON, exit code {done.returncode}: {done.stdout[-300:]}{done.stderr[-300:]}"}


def print_table(rows):
    table = [[
        "server", "tools", "read-only", "legacy", "auto", "discover", "then initialize", "initialize", "listen",
        "unasked list_changed", "end of stdin", "call",
    ]]
    for row in rows:
        legacy, auto = row["legacy"], row["auto"]
        tools = tools_of(legacy)
        table.append([
            row["name"],
            str(len(tools)),
            str(len(read_only(tools))),
            legacy.get("protocol_version", "-"),
            auto.get("protocol_version", "-"),
            f"{row['discover']} {row['discover_s']:.2f} s",
            row["then_initialize"],
            "-" if row["initialize_s"] is None else f"{row['initialize_s']:.2f} s",
            "yes" if auto.get("listen", {}).get("opened") else "no",
            str(legacy.get("list_changed", {}).get("notifications", "-")),
            row["ended"],
            "failed" if row["failures"] else "ok",
        ])
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
    print()


def print_details(rows):
    for row in rows:
        legacy = row["legacy"]
        tools = tools_of(legacy)
        other = [tool["name"] for tool in tools if tool not in read_only(tools)]
        print(f"{row['name']}: {json.dumps(legacy.get('server_info'))}")
        print(f"  read-only: {', '.join(tool['name'] for tool in read_only(tools)) or '-'}")
        print(f"  other: {', '.join(other) or '-'}")
        print(f"  capabilities: {json.dumps(legacy.get('capabilities'))}")
        print(f"  instructions: {len(legacy.get('instructions') or '')} characters")
        print(f"  discover: {json.dumps(row['discover_answer'])}")
        print(f"  stdout noise: {row['noise'] or '-'}; stderr: {row['stderr'] or '-'}")
        for failure in row["failures"]:
            print(f"  FAILED {failure}")
    print()


def tools_of(report):
    steps = report.get("steps") or [{}]
    return steps[0].get("definitions", [])


def read_only(tools):
    return [tool for tool in tools if tool.get("annotations", {}).get("readOnlyHint") is True]


if __name__ == "__main__":
    main()
