//! Floor 1, skills on disk: read leniently, every skip with a reason code, no byte of a body changed. Must not know what
//! a skill opens. Read `walk` first.

mod folder;
mod frontmatter;
mod inside;
mod manifest;
mod reference;
mod walk;

pub use folder::Skill;
pub use frontmatter::{Document, Refusal, parse};
pub use inside::open_inside;
pub use manifest::{SIGNATURE_FILE, SKILL_FILE, SkillFile};
pub use reference::{ReferenceError, read_reference};
pub use walk::{SkillSet, load_folders};
