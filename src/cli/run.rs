//! From the process's arguments to a command and its exit code.

use std::process::ExitCode;

use clap::Parser as _;

use super::{
    args::{Args, Command},
    audit, budget, check, diff, eval,
    exit::{Exit, Failed},
    index, init, lock, login, misc,
    output::Output,
    proxy, skills, token, tools,
};

/// Runs the command that the process's arguments name.
pub fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    match words.next() {
        Some(word) if word == crate::wire::guard::COMMAND => {
            crate::wire::guard::run(std::io::stdin().lock());
            return ExitCode::SUCCESS;
        }
        // Before anything that starts a thread, which would stay outside.
        Some(word) if word == crate::wire::sandbox::COMMAND => return crate::wire::sandbox::run(words),
        _ => {}
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let is_help = !error.use_stderr();
            // Nobody is left to tell if this fails.
            error.print().ok();
            return if is_help { Exit::Done.into() } else { Exit::Usage.into() };
        }
    };
    let output = Output::new(&args.common);
    // Who looks at something by hand sees its findings anyway.
    let usual = match &args.command {
        Command::Proxy(_) => "warn",
        Command::Index(index) if index.watch => "warn",
        _ => "error",
    };
    output.init_log(args.common.log.as_deref().unwrap_or(usual));
    match run(&args, &output) {
        Ok(exit) => exit.into(),
        Err(error) => {
            output.error(&error);
            error.exit.into()
        }
    }
}

fn run(args: &Args, output: &Output) -> Result<Exit, Failed> {
    match &args.command {
        Command::Proxy(proxy) => proxy::run(proxy),
        Command::Init(init) => init::run(init, output),
        Command::Tools(tools) => tools::run(tools, output),
        Command::Audit(args) => audit::run(args, *output),
        Command::Login(args) => login::login(args, *output),
        Command::Logout(args) => login::logout(args, *output),
        Command::Skills(skills) => skills::run(skills, output),
        Command::Check(check) => check::run(check, output),
        Command::Lock(lock) => lock::run(lock, output),
        Command::Diff(diff) => diff::run(diff, output),
        Command::Budget(budget) => budget::run(budget, output),
        Command::Index(index) => index::run(index, output),
        Command::Token(args) => token::run(args, *output),
        Command::Eval(eval) => eval::run(eval, output),
        Command::Schema { of } => misc::schema(*of, output),
        Command::Completions { shell } => misc::completions(*shell, output),
    }
}
