//! `gatekey schema` and `gatekey completions`.

use clap::CommandFactory as _;

use super::{
    args::{Args, SchemaOf},
    exit::{Exit, Failed},
    output::Output,
};

pub(super) fn schema(of: SchemaOf, output: &Output) -> Result<Exit, Failed> {
    let schema = match of {
        SchemaOf::Config => crate::config::schema(),
        SchemaOf::Map => crate::gate::map::schema(),
    };
    output.data(&serde_json::to_string_pretty(schema).map_err(|error| Failed::new(Exit::Internal, error))?);
    Ok(Exit::Done)
}

pub(super) fn completions(shell: clap_complete::Shell, output: &Output) -> Result<Exit, Failed> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "gatekey", &mut script);
    output.data(&String::from_utf8_lossy(&script));
    Ok(Exit::Done)
}
