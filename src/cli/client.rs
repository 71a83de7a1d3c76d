//! A client of our own gateway, within the process: commands that try a tool go the way that every client goes.

use serde_json::{Value, json};
use tokio::io::{DuplexStream, ReadHalf, WriteHalf, split};

use super::exit::{Exit, Failed};
use crate::{
    app::App,
    model::{limits::LINE_BYTES, principal::Principal},
    wire::{
        envelope::request_line,
        era::LEGACY,
        line::{Line, LineReader},
    },
};

/// Bytes on their way between the two ends.
const PIPE_BYTES: usize = 64 << 10;

/// A legacy client.
pub(super) struct Client {
    reader: LineReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
    last_id: u64,
}

/// Serves `talk` as a client of `app`.
pub(super) async fn with_client<T>(
    app: &App,
    principal: Principal,
    talk: impl AsyncFnOnce(Client) -> Result<T, Failed>,
) -> Result<T, Failed> {
    let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
    let (input, output) = split(theirs);
    let (reader, writer) = split(ours);
    let client = Client { reader: LineReader::new(reader, LINE_BYTES), writer, last_id: 0 };
    let served = app.serve(principal, Box::new(input), Box::new(output), std::future::pending());
    let talk = async {
        let mut client = client;
        let introduction =
            json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "gatekey", "version": "0"}});
        client.ask("initialize", &introduction).await?;
        talk(client).await
    };
    // The talk ends by dropping its end of the pipe, which ends the serving.
    let (outcome, ()) = tokio::join!(talk, served);
    outcome
}

impl Client {
    /// Asks and waits for the answer: the result, or the error object as `Err`'s message.
    pub(super) async fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Failed> {
        use tokio::io::AsyncWriteExt as _;
        self.last_id += 1;
        let mut line = request_line(&self.last_id.to_string(), method, &params.to_string());
        line.push(b'\n');
        self.writer.write_all(&line).await?;
        loop {
            let Some(Line::Whole(line)) = self.reader.next().await? else {
                return Err(Failed::new(Exit::Upstream, format!("there is no answer to `{method}`")));
            };
            let mut message: Value =
                serde_json::from_slice(line).map_err(|error| Failed::new(Exit::Internal, error))?;
            if message["id"] == self.last_id {
                let error = &message["error"];
                return match error.is_object() {
                    false => Ok(message["result"].take()),
                    true => {
                        let (text, code) = (error["message"].as_str().unwrap_or_default(), &error["code"]);
                        Err(Failed::new(Exit::Upstream, format!("`{method}`: {text} ({code})")))
                    }
                };
            }
        }
    }
}
