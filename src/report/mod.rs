//! Floor 5, reports: what sets of skills cost in tokens. A snapshot and what the gateway says of it go in, a [`Budget`] comes
//! out, which is shown in one of several forms; nothing here starts an upstream, reads a clock or prints. Read `said`, then
//! `budget`.

mod budget;
mod chart;
mod compare;
mod csv;
mod heavy;
mod html;
mod measured;
mod said;
mod sections;
mod surface;
mod table;
mod task;
mod text;

pub use budget::{Budget, Full, Source, Wanted, budget};
pub use compare::compare;
pub use csv::csv;
pub use heavy::{HeavyParameter, HeavyTool};
pub use html::html;
pub use measured::{Measured, MeasuredPart, measured};
pub use said::{Load, Said, Start, said};
pub use surface::Surface;
pub use table::Row;
pub use task::{Cost, Plan, Task, Turn, cost};
pub use text::{markdown, text};
