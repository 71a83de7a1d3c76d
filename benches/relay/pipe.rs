//! A session over a program's stdio. It blocks, so that nothing of ours stands between the pipe and the clock.

use std::{
    collections::{HashMap, HashSet},
    io::{BufRead as _, BufReader, Write as _},
    process::{ChildStdin, ChildStdout},
    time::Instant,
};

use bytes::Bytes;

use crate::{
    Result,
    lanes::SLOW_AT_ONCE,
    message::{Answer, Template, start_of},
    process::Process,
    sample::{Limit, Tally},
    task::Plan,
};

pub(crate) struct Pipe {
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    line: Vec<u8>,
    last_id: u64,
}

impl Pipe {
    pub(crate) fn new(process: &Process) -> Result<Self> {
        let (stdin, stdout) = process.pipes()?;
        Ok(Self { stdin, stdout: BufReader::with_capacity(256 << 10, stdout), line: Vec::new(), last_id: 0 })
    }

    pub(crate) fn ask(&mut self, request: &Template) -> Result<Bytes> {
        let id = self.send(request)?;
        loop {
            let answer = self.read()?;
            if answer.id == id && answer.is_error {
                return Err(format!("refused: {}", start_of(&self.line)).into());
            }
            if answer.id == id {
                return Ok(std::mem::take(&mut self.line).into());
            }
        }
    }

    pub(crate) fn tell(&mut self, message: &str) -> Result<()> {
        Ok(self.stdin.write_all(format!("{message}\n").as_bytes())?)
    }

    /// Keeps the plan's requests in flight until the limit.
    pub(crate) fn keep(&mut self, plan: &Plan, limit: &Limit) -> Result<Tally> {
        let mut tally = Tally::default();
        let (mut asked, mut slow_ids) = (HashMap::new(), HashSet::new());
        for slow in std::iter::repeat_n(&plan.slow, SLOW_AT_ONCE).flatten() {
            slow_ids.insert(self.send(slow)?);
        }
        while asked.len() < plan.lanes && limit.take() {
            let began = Instant::now();
            asked.insert(self.send(&plan.request)?, began);
        }
        while !asked.is_empty() {
            let answer = self.read()?;
            if let Some(began) = asked.remove(&answer.id) {
                tally.add(began.elapsed(), plan.judge(&self.line, answer.is_error));
                if limit.take() {
                    let began = Instant::now();
                    asked.insert(self.send(&plan.request)?, began);
                }
            } else if let (true, Some(slow)) = (slow_ids.remove(&answer.id), &plan.slow) {
                slow_ids.insert(self.send(slow)?);
            }
        }
        Ok(tally)
    }

    fn send(&mut self, request: &Template) -> Result<u64> {
        self.last_id += 1;
        self.tell(&request.with(self.last_id))?;
        Ok(self.last_id)
    }

    /// The next answer; what the other side says or asks by itself is left out.
    fn read(&mut self) -> Result<Answer> {
        loop {
            self.line.clear();
            if self.stdout.read_until(b'\n', &mut self.line)? == 0 {
                return Err("it closed its stdout".into());
            }
            if let Some(answer) = Answer::peek(&self.line) {
                return Ok(answer);
            }
        }
    }
}
