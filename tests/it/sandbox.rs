//! Servers in a sandbox, on Linux: what is not named cannot be reached, in whatever way somebody tries it, nor by what they
//! start; what is named can; real servers work. And what reaches every child: nothing of our environment but what is usual.
//!
//! Where the system has no sandbox these tests fail and say so: `cargo nextest run -E 'not test(/^sandbox::boxed/)'` leaves
//! them out.
#![cfg(target_os = "linux")]

use std::{
    net::{TcpListener, UdpSocket},
    os::unix::net::UnixListener,
    path::PathBuf,
    process::Command,
};

use serde_json::{Value, json};

use crate::support::{
    cases::Case,
    installed,
    process::proxy_of,
    proxy::{PATIENCE, Proxy, gatekey, run, text_of},
    root, wait_until,
};

/// A server that runs Python in a sandbox; `in`, `out` and `home` are folders of the scratch folder with a file each.
struct Boxed {
    case: Case,
    proxy: Proxy,
}

/// The interpreter itself: what is on PATH may be a script of a version manager, which needs more than the interpreter does.
fn python() -> String {
    let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A case whose server has this sandbox, besides reading its own files.
fn boxed_case(mut sandbox: Value) -> (Case, PathBuf) {
    let mut case = Case::new("boxed");
    for (folder, text) in [("in", "allowed"), ("out", "made"), ("home", "secret")] {
        case.write(&format!("{folder}/{text}"), text);
    }
    let cases = json!(root().join("tests/cases"));
    match sandbox["read"].as_array_mut() {
        Some(read) => read.push(cases),
        None => sandbox["read"] = json!([cases]),
    }
    let server = case.folder.join("server.py");
    let mut server = json!({"command": python(), "args": [server]});
    server["sandbox"] = sandbox;
    case.servers.insert("boxed".into(), server);
    let config = case.own_config("start-wait-ms = 20000");
    (case, config)
}

impl Boxed {
    fn new(sandbox: Value) -> Self {
        gatekey::wire::confine::probe().unwrap_or_else(|why| panic!("these tests cannot be run: {why}"));
        let (case, config) = boxed_case(sandbox);
        let mut command = proxy_of(&config);
        command.env("HOME", case.path("home")).env("MY_SECRET", "of the environment");
        let mut proxy = Proxy::spawn(command);
        proxy.initialize();
        let loaded = proxy.load("boxed");
        assert_eq!(loaded["tools"][0]["name"], "run", "{loaded} {}", proxy.stderr());
        Self { case, proxy }
    }

    /// With `in` to be read and `out` to be written.
    fn usual() -> Self {
        Self::new(json!({"read": ["in"], "write": ["out"]}))
    }

    /// Runs Python in which `S` is the scratch folder; returns `ok` and what it left in `out`, or the name of its error.
    fn run(&mut self, code: &str) -> String {
        let code = format!("S = {}\n{code}", json!(self.case.scratch.path()));
        let result = self.proxy.call("run", json!({"code": code}));
        text_of(&result).to_owned()
    }

    fn is_denied(&mut self, code: &str) {
        let outcome = self.run(code);
        assert!(["EACCES", "EPERM", "EXDEV"].contains(&outcome.as_str()), "{code}: {outcome}");
    }

    fn is_ok(&mut self, code: &str, out: &str) {
        assert_eq!(self.run(code), format!("ok {out}"), "{code}");
    }
}

/// Where the system has no sandbox, these fail.
mod boxed {
    use super::*;

    #[test]
    fn what_is_not_named_cannot_be_read_in_any_way() {
        let mut server = Boxed::usual();
        for code in [
            "open(S + '/home/secret').read()",
            "open(S + '/in/../home/secret').read()",
            "os.symlink(S + '/home/secret', S + '/out/link'); open(S + '/out/link').read()",
            "os.symlink('../home', S + '/out/folder'); open(S + '/out/folder/secret').read()",
            "open('/proc/self/root' + S + '/home/secret').read()",
            "open('/proc/self/cwd/' + os.path.relpath(S + '/home/secret', os.getcwd())).read()",
            "os.link(S + '/home/secret', S + '/out/hard')",
            "os.rename(S + '/home/secret', S + '/out/moved')",
            "f = os.open(S + '/home', os.O_PATH); os.open('secret', os.O_RDONLY, dir_fd=f)",
            "f = os.open(S + '/home/secret', os.O_PATH); open('/proc/self/fd/%d' % f).read()",
            "os.chdir(S + '/home'); open('secret').read()",
            "os.listdir(S + '/home')",
            "os.listdir(S)",
            "os.listdir('/root')",
            "open('/etc/shadow').read()",
            "open('/etc/passwd').read()",
            "open(os.path.expanduser('~/secret')).read()",
            "open('/proc/%d/environ' % os.getppid()).read()",
            "open('/proc/%d/cmdline' % os.getppid()).read()",
            "open('/proc/1/cmdline').read()",
            "open('/proc/%d/mem' % os.getppid(), 'rb').read(1)",
            "os.listdir('/proc/%d/fd' % os.getppid())",
        ] {
            server.is_denied(code);
        }
    }

    #[test]
    fn what_is_not_named_cannot_be_changed_in_any_way() {
        let mut server = Boxed::usual();
        for code in [
            "open(S + '/home/secret', 'w')",
            "open(S + '/home/secret', 'a')",
            "os.truncate(S + '/home/secret', 0)",
            "open(S + '/home/new', 'w')",
            "open(S + '/in/allowed', 'w')",
            "open(S + '/in/new', 'w')",
            "os.unlink(S + '/in/allowed')",
            "os.unlink(S + '/home/secret')",
            "os.mkdir(S + '/home/folder')",
            "os.rename(S + '/out/made', S + '/home/made')",
            "os.rename(S + '/home/secret', S + '/home/renamed')",
            "os.link(S + '/out/made', S + '/home/made')",
            "os.symlink('x', S + '/home/link')",
            "open(S + '/out/../home/secret', 'w')",
            "open('/proc/self/root' + S + '/home/secret', 'w')",
            "os.symlink(S + '/home/secret', S + '/out/w'); open(S + '/out/w', 'w')",
            "os.mknod(S + '/out/disk', 0o60600, os.makedev(8, 0))",
            "open('/tmp/gatekey-sandbox-test', 'w')",
            "open('/dev/shm/gatekey-sandbox-test', 'w')",
        ] {
            server.is_denied(code);
        }
        assert_eq!(std::fs::read_to_string(server.case.path("home/secret")).unwrap(), "secret");
        assert_eq!(std::fs::read_to_string(server.case.path("in/allowed")).unwrap(), "allowed");
    }

    #[test]
    fn what_is_named_can_be_used_and_there_is_a_private_place_for_temporary_files() {
        let mut server = Boxed::usual();
        server.is_ok("out = open(S + '/in/allowed').read()", "allowed");
        server.is_ok("open(S + '/out/made', 'w').write('anew'); out = open(S + '/out/made').read()", "anew");
        server.is_ok("os.makedirs(S + '/out/a/b'); os.rename(S + '/out/made', S + '/out/a/b/c')", "None");
        server.is_ok(
            "out = subprocess.run(['sh', '-c', 'cat \"$0\"', S + '/in/allowed'], capture_output=True).stdout",
            "b'allowed'",
        );
        server.is_ok(
            "open('/dev/null', 'w').write('x'); a, b = socket.socketpair(); a.send(b'x'); out = b.recv(1)",
            "b'x'",
        );
        server.is_ok("import tempfile; f = tempfile.NamedTemporaryFile('w', delete=False); f.write('x')", "None");
        let private = PathBuf::from(server.run("out = os.environ['TMPDIR']").strip_prefix("ok ").unwrap());
        assert!(private.is_dir() && std::fs::read_dir(&private).unwrap().count() > 0);
        let pid = server.proxy.pid();
        server.is_ok("out = os.getppid(), os.getpgid(0) == os.getpid()", &format!("({pid}, True)"));
        server.proxy.close();
        server.proxy.ended(PATIENCE);
        wait_until("the private folder is gone", PATIENCE, || !private.exists());
    }

    #[test]
    fn what_a_server_starts_stays_within() {
        let mut server = Boxed::usual();
        for code in [
            "subprocess.run(['cat', S + '/home/secret'], capture_output=True)",
            "subprocess.run([sys.executable, '-c', 'open(\"%s/home/secret\")' % S], capture_output=True)",
            "subprocess.run(['sh', '-c', 'sh -c \"cat %s/home/secret\" & wait $!' % S], capture_output=True, start_new_session=True)",
            "subprocess.run([sys.executable, '-c', 'import socket; socket.socket()'], capture_output=True)",
        ] {
            let outcome = server.run(&format!("ran = {code}\nout = ran.returncode != 0, b'secret' == ran.stdout"));
            assert_eq!(outcome, "ok (True, False)", "{code}");
        }
    }

    /// Python that sends something to a port of this machine.
    fn tcp(port: u16) -> String {
        format!("socket.create_connection(('127.0.0.1', {port}), 5).close()")
    }

    fn udp(port: u16) -> String {
        format!("socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))")
    }

    fn listeners() -> (TcpListener, TcpListener, UdpSocket, [u16; 3]) {
        let tcp = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (first, second, udp) = (tcp(), tcp(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let ports =
            [first.local_addr().unwrap().port(), second.local_addr().unwrap().port(), udp.local_addr().unwrap().port()];
        (first, second, udp, ports)
    }

    #[test]
    fn without_the_network_nobody_can_be_reached() {
        let (_first, _second, _udp, ports) = listeners();
        let mut server = Boxed::usual();
        let unix = server.case.path("out/socket");
        let _unix = UnixListener::bind(&unix).unwrap();
        server.is_denied(&tcp(ports[0]));
        server.is_denied(&udp(ports[2]));
        for code in [
            "socket.socket(socket.AF_UNIX).connect(S + '/out/socket')",
            "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', S + '/out/socket')",
            "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
            "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)",
            "socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58)",
            "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
            "socket.socket().bind(('127.0.0.1', 0))",
        ] {
            server.is_denied(code);
        }
    }

    #[test]
    fn with_ports_those_can_be_reached_and_no_others() {
        let (_first, _second, _udp, ports) = listeners();
        let mut server = Boxed::new(json!({"network": [ports[0]]}));
        server.is_ok(&tcp(ports[0]), "None");
        server.is_denied(&tcp(ports[1]));
        server.is_denied(&udp(ports[2]));
        let other = ports[1];
        for code in [
            format!("socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).connect(('127.0.0.1', {other}))"),
            format!("socket.socket().sendto(b'x', 0x20000000, ('127.0.0.1', {other}))"),
            format!("socket.socket().sendmsg([b'x'], [], 0x20000000, ('127.0.0.1', {other}))"),
            format!("s = socket.socket(); s.setsockopt(6, 30, 1); s.connect(('127.0.0.1', {other})); s.send(b'x')"),
            "socket.socket().bind(('127.0.0.1', 0))".to_owned(),
            "socket.socket(socket.AF_UNIX)".to_owned(),
            "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)".to_owned(),
        ] {
            server.is_denied(&code);
        }
    }

    #[test]
    fn with_the_network_everything_of_it_can_be_reached() {
        let (_first, _second, _udp, ports) = listeners();
        let mut server = Boxed::new(json!({"network": true}));
        server.is_ok(&tcp(ports[0]), "None");
        server.is_ok(&udp(ports[2]), "None");
        server.is_denied("open(S + '/home/secret')");
    }

    #[test]
    fn other_processes_and_the_kernel_are_out_of_reach() {
        let mut server = Boxed::usual();
        for code in [
            // PTRACE_ATTACH.
            "syscall(101, 16, os.getppid(), 0, 0)",
            // process_vm_readv, unshare(CLONE_NEWUSER), mount, bpf, keyctl, userfaultfd, io_uring_setup, pidfd_getfd.
            "syscall(310, os.getppid(), 0, 0, 0, 0, 0)",
            "syscall(272, 0x10000000)",
            "syscall(165, b'none', b'/mnt', b'tmpfs', 0, 0)",
            "syscall(321, 0, 0, 0)",
            "syscall(250, 0, -3, 1)",
            "syscall(323, 0)",
            "syscall(425, 1, 0)",
            "syscall(438, 0, 0, 0)",
            // clone(CLONE_NEWUSER | SIGCHLD), and unshare by its other number.
            "syscall(56, 0x10000011, 0, 0, 0, 0)",
            "os.kill(os.getppid(), 0)",
            "import fcntl; fcntl.ioctl(0, 0x5412, b'x')",
        ] {
            if cfg!(target_arch = "x86_64") || !code.starts_with("syscall") {
                server.is_denied(code);
            }
        }
        if cfg!(target_arch = "x86_64") {
            // Either the filter says no or the kernel has no second calling convention.
            let outcome = server.run("syscall(0x40000000 | 272, 0x10000000)");
            assert!(["EPERM", "ENOSYS"].contains(&outcome.as_str()), "{outcome}");
            assert_eq!(server.run("syscall(435, 0, 0)"), "ENOSYS", "clone3 is not there");
        }
        server.is_ok("import threading; t = threading.Thread(target=print, args=('x',), kwargs={'file': sys.stderr}); t.start(); t.join()", "None");
    }

    #[test]
    fn what_cannot_be_allowed_keeps_the_server_from_starting() {
        let (_case, config) = boxed_case(json!({"read": ["no-such-folder"], "write": ["nor-this"]}));
        let (code, out, _) = run(["check", "--config", config.to_str().unwrap()]);
        let placed = |name: &str| out.lines().any(|line| line.contains("gatekey.toml:") && line.contains(name));
        assert!(
            code == 3 && placed("no-such-folder` of its sandbox is not there") && placed("nor-this"),
            "{code} {out}"
        );
        let (mut case, _) = boxed_case(json!({}));
        case.servers["boxed"]["command"] = json!("no-such-program");
        let config = case.own_config("");
        let (code, out, _) = run(["check", "--config", config.to_str().unwrap()]);
        assert!(code == 4 && out.contains("there is no program `no-such-program`"), "{code} {out}");
    }

    #[test]
    fn real_servers_work_within_a_sandbox() {
        let mut case = Case::new("boxed");
        let note = case.write("files/note.txt", "written by hand");
        let real = installed();
        let module = |name: &str| real.join(format!("npm/node_modules/@modelcontextprotocol/{name}/dist/index.js"));
        let files = case.path("files");
        let modules = real.join("npm/node_modules").canonicalize().unwrap();
        let memory = files.join("memory.jsonl");
        let path = format!("{}:/usr/bin:/bin", real.join("bin").display());
        case.servers.insert(
            "files".into(),
            json!({"command": real.join("bin/node"),
            "args": [module("server-filesystem"), files], "sandbox": {"read": [modules], "write": [files]}}),
        );
        case.servers.insert(
            "memory".into(),
            // A program of a package: what it needs of the others is found by itself.
            json!({"command": real.join("npm/node_modules/.bin/mcp-server-memory"),
            "env": {"MEMORY_FILE_PATH": memory, "PATH": path}, "sandbox": {"write": [files]}}),
        );
        case.servers.insert(
            "time".into(),
            json!({"command": real.join("venv-time/bin/mcp-server-time"),
            "args": ["--local-timezone", "Europe/Prague"], "sandbox": {}}),
        );
        let config = case.own_config("start-wait-ms = 20000");
        let mut proxy = Proxy::with_config(&config);
        proxy.initialize();
        for skill in ["files", "memory", "time"] {
            wait_until(skill, 3 * PATIENCE, || {
                proxy.load(skill)["tools"].as_array().is_some_and(|all| !all.is_empty())
            });
        }
        assert!(text_of(&proxy.call("read_text_file", json!({"path": note}))).contains("written by hand"));
        let made = proxy.call("write_file", json!({"path": files.join("made.txt"), "content": "x"}));
        assert!(made["isError"] != true && files.join("made.txt").is_file(), "{made}");
        let entity = json!({"entities": [{"name": "shop", "entityType": "place", "observations": ["sells tents"]}]});
        let made = proxy.call("create_entities", entity);
        assert!(made["isError"] != true && memory.is_file(), "{made}");
        let time = proxy.call("get_current_time", json!({"timezone": "Europe/Prague"}));
        assert!(text_of(&time).contains("Europe/Prague"), "{time}");
    }
}

/// Takes Landlock's first system call away from a program and what it starts, then becomes it.
const WITHOUT_LANDLOCK: &str = "
import ctypes, os, struct, sys
code = b''.join(struct.pack('HBBI', *line) for line in [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (6, 0, 0, 0x50026), (6, 0, 0, 0x7fff0000)])
lines = ctypes.create_string_buffer(code)
program = struct.pack('HxxxxxxP', 4, ctypes.addressof(lines))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
";

#[test]
fn where_the_system_has_no_sandbox_the_server_is_not_started() {
    let (case, config) = boxed_case(json!({"read": ["in"]}));
    let started = case.path("out/started");
    let mut command = Command::new("python3");
    command.args(["-c", WITHOUT_LANDLOCK]).arg(gatekey().get_program()).args(["check", "--config"]).arg(&config);
    let output = command.output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code() == Some(4) && out.contains("no sandbox can be made"), "{output:?}");
    assert!(out.contains("upstream-unreachable") && !started.exists(), "{out}");
}

#[test]
fn a_sandbox_is_for_programs_and_its_network_is_yes_no_or_ports() {
    for (server, message) in [
        (json!({"url": "http://127.0.0.1:1/mcp", "sandbox": {}}), "`sandbox` is for servers over stdio"),
        (json!({"command": "x", "sandbox": {"network": "all"}}), "network"),
        (json!({"command": "x", "sandbox": {"network": [70_000]}}), "network"),
        (json!({"command": "x", "sandbox": {"reed": []}}), "did you mean `read`?"),
    ] {
        let mut case = Case::new("boxed");
        case.servers.insert("x".into(), server);
        let config = case.own_config("");
        let (code, out, err) = run(["check", "--config", config.to_str().unwrap()]);
        assert!(code == 3 && (out.contains(message) || err.contains(message)), "{message}: {code} {out} {err}");
    }
}

#[test]
fn a_secret_of_our_environment_reaches_no_child() {
    let mut case = Case::new("boxed");
    let server = case.folder.join("server.py");
    for (name, inherits) in [("plain", json!([])), ("named", json!(["MY_SECRET"]))] {
        let args = json!([server]);
        case.servers.insert(
            name.into(),
            json!({"command": "python3", "args": args, "prefix": format!("{name}_"), "inherit-env": inherits}),
        );
    }
    let config = case.own_config("start-wait-ms = 20000");
    let mut command = proxy_of(&config);
    command.env("MY_SECRET", "of the environment").env("AWS_SECRET_ACCESS_KEY", "k").env("SSH_AUTH_SOCK", "/s");
    let mut proxy = Proxy::spawn(command);
    proxy.initialize();
    let mut names = |server: &str| -> Vec<String> {
        proxy.load(server);
        let code = "import json; out = json.dumps(sorted(os.environ))";
        let result = proxy.call(&format!("{server}_run"), json!({"code": code}));
        serde_json::from_str(text_of(&result).strip_prefix("ok ").unwrap()).unwrap()
    };
    let plain = names("plain");
    for name in ["MY_SECRET", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK"] {
        assert!(!plain.contains(&name.to_owned()), "{plain:?}");
    }
    assert!(plain.contains(&"PATH".to_owned()));
    let named = names("named");
    assert!(named.contains(&"MY_SECRET".to_owned()) && !named.contains(&"SSH_AUTH_SOCK".to_owned()), "{named:?}");
}
