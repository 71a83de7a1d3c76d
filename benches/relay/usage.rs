//! What a program and everything below it have used, the echo servers apart.

use std::{collections::HashMap, fs};

use crate::Result;

/// What Linux shows to programs, whatever it counts in.
const TICKS_PER_SECOND: f64 = 100.0;

/// Of all processes together.
#[derive(Clone, Copy, Default)]
pub(crate) struct Usage {
    pub(crate) cpu_us: f64,
    pub(crate) rss_mb: f64,
    pub(crate) peak_rss_mb: f64,
}

pub(crate) fn usage_of(root: u32) -> Usage {
    let mut total = Usage::default();
    for id in tree(root).into_iter().filter(|id| !is_echo(*id)) {
        // One that ends meanwhile counts for nothing.
        let Ok(used) = of_process(id) else { continue };
        total.cpu_us += used.cpu_us;
        total.rss_mb += used.rss_mb;
        total.peak_rss_mb += used.peak_rss_mb;
    }
    total
}

/// The process and all below it.
fn tree(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(fields) = stat(id) else { continue };
        let Some(parent) = fields.get(1).and_then(|field| field.parse().ok()) else { continue };
        children.entry(parent).or_default().push(id);
    }
    let mut found = vec![root];
    let mut looked_at = 0;
    while let Some(id) = found.get(looked_at) {
        found.extend(children.remove(id).unwrap_or_default());
        looked_at += 1;
    }
    found
}

/// Fields of `/proc/ID/stat` from the state on; the name before it may hold anything.
fn stat(id: u32) -> Result<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{id}/stat"))?;
    let (_, fields) = text.rsplit_once(')').ok_or("no name in stat")?;
    Ok(fields.split_whitespace().map(str::to_owned).collect())
}

fn is_echo(id: u32) -> bool {
    let command = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    command.split(|byte| *byte == 0).nth(1) == Some(b"echo")
}

fn of_process(id: u32) -> Result<Usage> {
    // Ticks count threads that have ended, the scheduler's sums are fine enough for single calls: the larger is right.
    let fields = stat(id)?;
    let coarse_us = (fields[11].parse::<f64>()? + fields[12].parse::<f64>()?) * 1e6 / TICKS_PER_SECOND;
    let mut fine_us = 0.0;
    for thread in fs::read_dir(format!("/proc/{id}/task"))?.flatten() {
        let times = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        let ran_ns: f64 = times.split_whitespace().next().and_then(|time| time.parse().ok()).unwrap_or_default();
        fine_us += ran_ns / 1e3;
    }
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let mb = |name: &str| {
        let kb = status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok());
        kb.unwrap_or(0.0) / 1024.0
    };
    Ok(Usage { cpu_us: f64::max(coarse_us, fine_us), rss_mb: mb("VmRSS:"), peak_rss_mb: mb("VmHWM:") })
}
