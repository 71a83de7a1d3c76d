//! Tools that every task may need: who and where, money and calendar, search, notes, tasks, activity.

mod calendar;
mod desk;
mod money;
mod notes;
mod search;
mod table;
mod tasks;
#[cfg(test)]
mod tests;

pub(crate) use table::tools;
