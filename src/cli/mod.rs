//! Floor 6, the command line: arguments → one command → an exit code. Read `args` first, then `run`.

mod args;
mod audit;
mod budget;
mod check;
mod check_against;
mod check_formats;
mod client;
mod diff;
mod eval;
mod eval_catalogue;
mod exit;
mod index;
mod index_file;
mod init;
mod lint;
mod lock;
mod login;
mod misc;
mod output;
mod proxy;
mod run;
mod setup;
mod signals;
mod skills;
mod skills_import;
mod skills_trust;
mod token;
mod tools;

pub use exit::Exit;
pub use run::main;
