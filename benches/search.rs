//! What finding costs: building an index, learning it, and looking into it, by words and by meaning.
//!
//! `cargo bench --bench search` makes up skills; `--skills DIR` takes those of a folder. Everything is done by one thread, and
//! times are of its processor (Linux: `/proc`), so that other work on the machine counts little.

#![expect(clippy::print_stdout, reason = "a table is for printing")]

use std::{error::Error, fs, path::PathBuf, time::Instant};

use clap::Parser;
use gatekey::{
    config::Config,
    gateway::META_TOOLS,
    reload::Files,
    search::{Choice, Entry, Index, Semantic},
};

/// Measures building, learning and searching an index of skills.
#[derive(Parser)]
struct Args {
    /// How many skills to make up
    #[arg(long, default_value_t = 10_000)]
    made_up: usize,
    /// A folder of skills instead
    #[arg(long)]
    skills: Option<PathBuf>,
    /// Queries of each kind
    #[arg(long, default_value_t = 300)]
    queries: usize,
    /// By words only
    #[arg(long)]
    lexical: bool,
    /// A folder that keeps what was learnt, for the next time
    #[arg(long)]
    cache: Option<PathBuf>,
    /// What cargo passes to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let entries = match &args.skills {
        Some(folder) => read(folder),
        None => (0..args.made_up).map(made_up).collect(),
    };
    let queries: Vec<String> = (0..args.queries).map(|n| words(n * 7 + 1, 3 + n % 8).join(" ")).collect();
    println!("{} skills", entries.len());
    let (index, seconds) = timed(|| Index::build(entries));
    let index = index?;
    println!("index by words             {seconds:8.2} s");
    report("query by words", &queries, |query| {
        index.search(query, &Semantic::off(), 1.0).map(|found| found.hits.len())
    })?;
    if args.lexical {
        return Ok(());
    }
    let passing = std::env::temp_dir().join(format!("gatekey-bench-{}", std::process::id()));
    let cache = args.cache.clone().unwrap_or_else(|| passing.clone());
    let cold = Semantic::new(Choice::Embedded, Some(cache.clone()));
    println!("learn, first time          {:8.2} s", timed(|| index.learn(&cold, || true)).1);
    let warm = Semantic::new(Choice::Embedded, Some(cache.clone()));
    println!("learn, from the cache      {:8.2} s", timed(|| index.learn(&warm, || true)).1);
    report("query by words and meaning", &queries, |query| {
        index.search(query, &warm, 1.0).map(|found| found.hits.len())
    })?;
    println!("memory at most             {:8.1} MB", memory_mb()?);
    if args.cache.is_none() {
        fs::remove_dir_all(passing)?;
    }
    Ok(())
}

/// Prints the median and the 95th percentile of what each query takes, in milliseconds of wall time.
fn report<E: Error + 'static>(what: &str, queries: &[String], ask: impl Fn(&str) -> Result<usize, E>) -> Result<(), E> {
    let mut times = Vec::new();
    for query in queries {
        let started = Instant::now();
        std::hint::black_box(ask(query)?);
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    println!("{what:26} {:8.2} ms at the median, {:.2} ms at 95 %", at(50), at(95));
    Ok(())
}

fn read(folder: &std::path::Path) -> Vec<Entry> {
    let config = Config { skills: vec![folder.to_owned().into()], ..Config::default() };
    let snapshot = Files::read(config).snapshot(0, Vec::new(), META_TOOLS);
    snapshot.skill_entries()
}

/// A skill as authors write them: a sentence or three on what it is for, titles, and some 300 words.
fn made_up(n: usize) -> Entry {
    Entry {
        name: words(n, 3).join("-"),
        tags: words(n / 50, 2).join(" "),
        description: format!("{}. Use when {}.", words(n + 1, 20).join(" "), words(n + 2, 15).join(" ")),
        headings: words(n + 3, 12).join("\n"),
        body: words(n + 4, 300).join(" "),
        tools: String::new(),
    }
}

/// Words that look like a language's: few are frequent, many are rare; the same for the same `seed`.
fn words(seed: usize, n: usize) -> Vec<String> {
    let syllables =
        ["ka", "lor", "mi", "ten", "vo", "sar", "pel", "du", "nim", "gra", "fi", "stol", "be", "rund", "ox", "lin"];
    let mut state = seed as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let mut word = || {
        // The rarer, the longer: 16, 256, 4,096 or 65,536 words.
        let length =
            1 + (random() % 100 > 30) as usize + (random() % 100 > 50) as usize + (random() % 100 > 80) as usize;
        (0..length).map(|_| syllables[random() % syllables.len()]).collect::<String>()
    };
    (0..n).map(|_| word()).collect()
}

/// Runs `work`; seconds of processor time.
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let before = processor_seconds();
    let done = work();
    (done, processor_seconds() - before)
}

fn processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may have blanks in it: user and system time, in hundredths of a second.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    fields.iter().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn memory_mb() -> Result<f64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no such line")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
}
