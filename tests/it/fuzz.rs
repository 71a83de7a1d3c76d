//! The checks of the fuzz targets over their seeds, and over some thousands of inputs made of these: what a fuzzer once
//! found stays mended, and the checks stay true between its long runs.

use std::panic::catch_unwind;

use proptest::{
    prelude::RngExt as _,
    test_runner::{RngAlgorithm, TestRng},
};

use crate::support::root;

#[path = "../../fuzz/checks/mod.rs"]
#[expect(unreachable_pub, reason = "the fuzz package has the same file as its library")]
mod checks;

/// Bytes that mean something to one of the formats.
const TELLING: &[u8] = b"{}[]\":,\\ \t\r\n\0-#=$&*|>'u0\xef\xbb\xbf\xff";
/// A mutated input is cut here.
const MOST_BYTES: usize = 4_096;

/// The same inputs in each run: the seeds of `target`, then `n_mutated` mutations of them.
fn run(target: &str, check: fn(&[u8]), n_mutated: usize) {
    let folder = root().join("fuzz/seeds").join(target);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let seeds: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    let mut rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mutations = std::iter::repeat_with(|| mutated(&seeds, &mut rng)).take(n_mutated);
    for input in seeds.iter().cloned().chain(mutations) {
        assert!(catch_unwind(|| check(&input)).is_ok(), "{target} fails on b\"{}\"", input.escape_ascii());
    }
}

fn mutated(seeds: &[Vec<u8>], rng: &mut TestRng) -> Vec<u8> {
    let mut input = seeds[rng.random_range(0..seeds.len())].clone();
    for _ in 0..rng.random_range(1..=4) {
        let at = rng.random_range(0..=input.len());
        let until = rng.random_range(at..=input.len());
        match rng.random_range(0..6) {
            0 => input.truncate(at),
            1 => drop(input.drain(at..until)),
            2 => input.extend_from_within(at..until),
            3 => input.insert(at, TELLING[rng.random_range(0..TELLING.len())]),
            4 => input.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << rng.random_range(0..8)),
            _ => {
                let other = &seeds[rng.random_range(0..seeds.len())];
                input.splice(at..until, other[rng.random_range(0..=other.len())..].iter().copied());
            }
        }
        input.truncate(MOST_BYTES);
    }
    input
}

#[test]
fn configs_and_maps_are_read_or_refused_with_places() {
    run("config", checks::config::check, 3_000);
}

#[test]
fn messages_change_where_they_are_to_change_only() {
    run("envelope", checks::envelope::check, 10_000);
}

#[test]
fn skill_headers_are_read_or_refused_with_a_line() {
    run("frontmatter", checks::frontmatter::check, 3_000);
}

#[test]
fn headers_are_read_as_they_are_written() {
    run("headers", checks::headers::check, 5_000);
}

#[test]
fn lines_are_the_same_however_they_arrive() {
    run("line", checks::line::check, 2_000);
}

#[test]
fn events_are_the_same_however_they_arrive() {
    run("sse", checks::sse::check, 5_000);
}
