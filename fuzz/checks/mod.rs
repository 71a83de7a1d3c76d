//! What must hold for every input of what reads texts from outside. The fuzz targets and the short run of
//! `tests/it/fuzz.rs` share these checks, one a target; each has its seeds in `seeds/`.

pub mod config;
pub mod envelope;
pub mod frontmatter;
pub mod headers;
pub mod line;
pub mod sse;
mod torn;
