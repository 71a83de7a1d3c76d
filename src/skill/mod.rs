//! Floor 1, skills on disk: read leniently, every skip with a reason code, no byte of a body changed. Must not know what
//! a skill opens. Read `folder` first.

mod folder;
mod frontmatter;
mod manifest;
mod reference;

pub use folder::{Skill, SkillSet, load_folders};
pub use frontmatter::{Document, Refusal, parse};
pub use manifest::{SKILL_FILE, SkillFile};
pub use reference::{ReferenceError, read_reference};
