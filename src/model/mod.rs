//! Floor 0, the vocabulary: pure data that every other folder speaks in. Knows nothing of files, processes or the
//! protocol's transports. Read `name` first, then `tool`.

pub mod diagnostic;
pub mod hidden;
pub mod limits;
pub mod name;
pub mod onnx;
pub mod principal;
pub mod program;
pub mod sent;
pub mod source;
pub mod tool;
pub mod trust;
