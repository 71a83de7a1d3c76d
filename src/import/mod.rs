//! Floor 2, skills from elsewhere: a folder, an archive or a git repository becomes a [`Bundle`] of plain files within limits,
//! and skills of it are written to disk. Nothing of it is run, and no link is followed. Must not know what people are
//! asked. Read `bundle` first.

mod bundle;
mod source;

pub use bundle::{Bundle, Imported, Unfit};
pub use source::{ImportError, read};
