//! The walls of the house: which folder may use which, how long a file may be, and what each file must say of itself.

use std::{collections::BTreeMap, fs, path::Path};

use crate::support::root;

/// Floors from the ground up; a folder uses its own files and lower floors only.
const FLOORS: &[&[&str]] = &[
    &["model"],
    &["wire", "config", "skill", "gate", "tokens", "search", "scan", "observe", "files"],
    &["catalog", "trust", "import", "oauth"],
    &["upstream", "session", "lock", "audit", "auth"],
    &["reload", "gateway", "clients", "dashboard"],
    &["front", "report"],
    &["app"],
    &["cli"],
];
/// A file over this is two files.
const MOST_LINES: usize = 800;

fn floor(folder: &str) -> usize {
    let found = FLOORS.iter().position(|floor| floor.contains(&folder));
    found.unwrap_or_else(|| panic!("`{folder}` stands on no floor: add it to the map in lib.rs and here"))
}

/// Every source file, by its path below `src`.
fn files() -> BTreeMap<String, String> {
    files_of("src")
}

/// The Rust files of a folder of the project, by their path in it.
fn files_of(folder: &str) -> BTreeMap<String, String> {
    fn walk(top: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(top, &path, files);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let name = path.strip_prefix(top).unwrap().to_string_lossy().replace('\\', "/");
                files.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut files = BTreeMap::new();
    let top = root().join(folder);
    walk(&top, &top, &mut files);
    files
}

/// The code without comments and the contents of texts.
fn code_of(text: &str) -> String {
    let without_comments = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let mut code = String::new();
    for line in without_comments {
        let mut parts = line.split('"').step_by(2);
        code.push_str(parts.next().unwrap_or_default());
        for part in parts {
            code.push_str("\"\"");
            code.push_str(part);
        }
        code.push('\n');
    }
    code
}

/// The folders that a file names with `crate::`, also in a list: `use crate::{a::b, c};`.
fn used(code: &str) -> Vec<String> {
    let word = |text: &str| -> String { text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let mut used = Vec::new();
    for (start, _) in code.match_indices("crate::") {
        let rest = code.get(start + "crate::".len()..).unwrap_or_default();
        let Some(list) = rest.strip_prefix('{') else {
            used.push(word(rest));
            continue;
        };
        let mut depth = 0;
        let mut item = String::new();
        for c in list.chars() {
            match c {
                '}' if depth == 0 => break,
                ',' if depth == 0 => used.push(word(std::mem::take(&mut item).trim())),
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if !(c == ',' && depth == 0) {
                item.push(c);
            }
        }
        used.push(word(item.trim()));
    }
    used.retain(|folder| !folder.is_empty());
    used
}

#[test]
fn a_file_uses_its_own_folder_and_lower_floors_only() {
    let mut broken = Vec::new();
    for (file, text) in files() {
        let own = file.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        if ["lib", "main"].contains(&own) {
            continue;
        }
        // Tests at a file's end may use what stands beside them.
        let code = code_of(text.split("#[cfg(test)]").next().unwrap_or_default());
        for folder in used(&code) {
            let is_known = FLOORS.iter().any(|floor| floor.contains(&folder.as_str()));
            if is_known && folder != own && floor(&folder) >= floor(own) {
                broken.push(format!("{file} (floor {}) uses {folder} (floor {})", floor(own), floor(&folder)));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn imports_are_found_in_every_form() {
    let code = code_of(
        "use crate::{\n    a::{b, c},\n    d::E,\n};\nfn x() { crate::f::g(); } // crate::h\nlet t = \"crate::i\";",
    );
    assert_eq!(used(&code), ["a", "d", "f"]);
}

#[test]
fn files_say_what_they_own_and_stay_short_and_mod_files_only_declare() {
    let mut broken = Vec::new();
    for (file, text) in files() {
        let n_lines = text.lines().count();
        if !text.starts_with("//!") {
            broken.push(format!("{file} does not open with `//!`"));
        }
        if n_lines > MOST_LINES {
            broken.push(format!("{file} has {n_lines} lines"));
        }
        let has_functions =
            code_of(&text).lines().any(|line| line.trim_start().starts_with("fn ") || line.contains(" fn "));
        if file.ends_with("/mod.rs") && has_functions {
            broken.push(format!("{file} has a function"));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Everywhere else the compiler refuses it. Each of these has a twin without it, and tests that hold it against that.
const UNSAFE: [&str; 4] =
    ["encoder/src/bert.rs", "encoder/src/products.rs", "encoder/src/q4.rs", "encoder/src/vectors.rs"];

#[test]
fn unsafe_code_stands_where_it_is_stated_and_nowhere_else() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(manifest.contains("unsafe_code = \"deny\""));
    for member in ["Cargo.toml", "encoder/Cargo.toml"] {
        let manifest = fs::read_to_string(root().join(member)).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "{member}");
    }
    let mut found = Vec::new();
    for folder in ["src", "encoder", "tests", "benches", "examples"] {
        for (name, text) in files_of(folder) {
            // In two words, so that this file is none of them.
            if ["allow", "expect", "warn"].iter().any(|level| text.contains(&format!("{level}(unsafe{}", "_code"))) {
                found.push(format!("{folder}/{name}"));
            }
        }
    }
    assert_eq!(found, UNSAFE);
}

#[test]
fn main_only_starts_the_library() {
    let n_lines = fs::read_to_string(root().join("src/main.rs")).unwrap().lines().count();
    assert!(n_lines <= 40, "main.rs has {n_lines} lines");
}

#[test]
fn every_code_of_a_finding_is_in_the_list_of_codes() {
    let listed: Vec<&str> = gatekey::model::diagnostic::CODES.to_vec();
    let mut missing = Vec::new();
    for (file, text) in files() {
        for maker in ["Diagnostic::error(", "Diagnostic::warning(", "Diagnostic::note("] {
            for (_, rest) in text.match_indices(maker).map(|(at, found)| text.split_at(at + found.len())) {
                let code = rest.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next());
                if let Some(code) = code.filter(|code| !listed.contains(code)) {
                    missing.push(format!("{file}: `{code}`"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
