//! What no proxy can beat: relays that move bytes and, where clients share a server, change ids. They keep no sessions,
//! merge nothing and check nothing.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read, Write},
    os::fd::AsFd as _,
    process::Stdio,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request, Response, StatusCode, body::Incoming};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::{ChildStdin, ChildStdout, Command},
    runtime::Runtime,
    sync::oneshot,
};

use crate::{
    Result,
    http::{Connection, split},
    message::{Message, with_id},
    serve,
};

/// One pipe buffer.
const CHUNK_BYTES: usize = 64 << 10;

/// Which sides it stands between.
#[derive(clap::Subcommand)]
pub(crate) enum Mode {
    /// Between stdio and a program's
    Stdio {
        #[arg(last = true)]
        command: Vec<String>,
    },
    /// Between HTTP and one program's stdio
    HttpStdio {
        #[arg(last = true)]
        command: Vec<String>,
    },
    /// Between HTTP and HTTP
    HttpHttp { url: String },
}

pub(crate) fn run(mode: Mode, runtime: &Runtime) -> Result<()> {
    match mode {
        Mode::Stdio { command } => stdio(&command),
        Mode::HttpStdio { command } => runtime.block_on(http_stdio(&command)),
        Mode::HttpHttp { url } => runtime.block_on(http_http(&url)),
    }
}

fn stdio(command: &[String]) -> Result<()> {
    let mut child = std::process::Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (Some(to_child), Some(from_child)) = (child.stdin.take(), child.stdout.take()) else { return Ok(()) };
    // The descriptors themselves: std's own handles hold back what is no whole line.
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    thread::spawn(move || copy(input, to_child));
    copy(from_child, output)?;
    child.wait()?;
    Ok(())
}

fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match from.read(&mut chunk)? {
            0 => return Ok(()),
            n_read => to.write_all(&chunk[..n_read])?,
        }
    }
}

/// A client's own id, and where its answer is waited for.
type Asked = (String, oneshot::Sender<Vec<u8>>);

/// One program that all clients share.
struct Shared {
    /// Over a whole line, so that lines do not mix.
    stdin: tokio::sync::Mutex<ChildStdin>,
    /// By the id on the program's side.
    waiting: Mutex<HashMap<u64, Asked>>,
    last_id: AtomicU64,
}

async fn http_stdio(command: &[String]) -> Result<()> {
    let mut child =
        Command::new(&command[0]).args(&command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else { return Ok(()) };
    let shared =
        Arc::new(Shared { stdin: tokio::sync::Mutex::new(stdin), waiting: Mutex::default(), last_id: 0.into() });
    let serving = serve::serve(|| {
        let shared = Arc::clone(&shared);
        move |request| ask(Arc::clone(&shared), request)
    });
    tokio::select! {
        ended = serving => ended,
        ended = answers(&shared, stdout) => ended,
    }
}

async fn ask(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>> {
    match *request.method() {
        Method::POST => {}
        Method::DELETE => return serve::empty(StatusCode::OK),
        _ => return serve::empty(StatusCode::METHOD_NOT_ALLOWED),
    }
    let body = request.into_body().collect().await?.to_bytes();
    let message = Message::parse(&body).ok_or("no JSON-RPC")?;
    let Some(id) = message.id else { return serve::empty(StatusCode::ACCEPTED) };
    let own_id = shared.last_id.fetch_add(1, Ordering::Relaxed);
    let (sender, answer) = oneshot::channel();
    shared.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(own_id, (id.get().to_owned(), sender));
    let mut line = with_id(&body, id, &own_id.to_string());
    line.push(b'\n');
    shared.stdin.lock().await.write_all(&line).await?;
    let begins = message.method.as_deref() == Some("initialize");
    serve::json(answer.await?, begins.then(|| format!("ideal-{own_id}")))
}

/// Brings answers to who asked, until the program ends.
async fn answers(shared: &Shared, stdout: ChildStdout) -> Result<()> {
    let mut lines = BufReader::with_capacity(CHUNK_BYTES, stdout);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).await? > 0 {
        if let Some(id) = Message::parse(&line).and_then(|message| message.id) {
            let own_id: u64 = id.get().parse()?;
            let asked = shared.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&own_id);
            if let Some((client_id, sender)) = asked {
                // A client that left is no failure.
                sender.send(with_id(&line, id, &client_id)).ok();
            }
        }
        line.clear();
    }
    Ok(())
}

/// One connection to the server for each of a client; whole requests and answers pass as they come.
async fn http_http(url: &str) -> Result<()> {
    let (authority, _) = split(url)?;
    let authority: Arc<str> = authority.into();
    serve::serve(|| {
        let (authority, connection) = (Arc::clone(&authority), Arc::new(tokio::sync::Mutex::new(None)));
        move |request| forward(Arc::clone(&authority), Arc::clone(&connection), request)
    })
    .await
}

async fn forward(
    authority: Arc<str>,
    connection: Arc<tokio::sync::Mutex<Option<Connection<Incoming>>>>,
    request: Request<Incoming>,
) -> Result<Response<Incoming>> {
    // Never contended: requests of one connection come one after another.
    let mut connection = connection.lock().await;
    if connection.is_none() {
        *connection = Some(Connection::open(&authority).await?);
    }
    connection.as_mut().ok_or("it was just opened")?.send(request).await
}
