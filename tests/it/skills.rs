//! Skills as authors leave them: each broken shape with its outcome and reason, a tree of 15,000, and what `skills lint`
//! says. The shapes are those of public collections (openclaw/skills, sickn33/agentic-awesome-skills, davila7/
//! claude-code-templates, alirezarezvani/claude-skills, jeremylongshore and others); the texts are ours.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use gatekey::{model::diagnostic::CODES, skill::load_folders};
use serde_json::Value;

use crate::support::{proxy::run, root};

// Broken shapes

/// What each folder of `skills-fixtures/broken` gives: the skills that are usable, and the codes of all findings.
const SHAPES: &[(&str, &str)] = &[
    // The header is not found or not read: the skill is left out.
    ("no-frontmatter", " [skill-frontmatter-missing]"),
    ("text-before-header", " [skill-frontmatter-missing]"),
    ("unclosed", " [skill-frontmatter-unclosed]"),
    ("bad-yaml", " [skill-frontmatter-invalid]"),
    ("conflict-marker", " [skill-frontmatter-invalid]"),
    ("scalar-not-indented", " [skill-frontmatter-invalid]"),
    ("flow-map-open", " [skill-frontmatter-invalid]"),
    ("alias-bomb", " [skill-frontmatter-invalid]"),
    ("utf16", " [skill-encoding]"),
    ("nul-byte", " [skill-binary]"),
    // Read as meant.
    ("bom", "bom []"),
    ("crlf", "crlf []"),
    ("bom-crlf", "bom-crlf []"),
    ("comma-tools", "comma-tools []"),
    ("list-tools", "list-tools []"),
    ("colon-in-description", "colon-in-description [skill-frontmatter-quoted]"),
    ("flow-map-broken", "flow-map-broken [skill-frontmatter-quoted skill-member-type]"),
    ("skill-md-lowercase", "skill-md-lowercase [skill-file-case]"),
    // Members.
    ("no-name", "no-name [skill-name-missing]"),
    ("name-differs", "some-other-name [skill-name-differs]"),
    ("name-with-blank", "Name With Blank [skill-name-differs skill-name-invalid]"),
    ("name-dash-first", "-dash-first [skill-name-differs skill-name-invalid]"),
    ("number-name", "3000 [skill-name-differs]"),
    (
        "long-name",
        "wind-up-the-climbing-ropes-after-the-course-and-hang-them-by-the-stair [skill-name-differs skill-name-invalid]",
    ),
    ("no-description", " [skill-description-missing]"),
    ("empty-description", " [skill-description-missing]"),
    ("description-list", "description-list [skill-member-type]"),
    ("huge-description", "huge-description [skill-description-cut]"),
    ("metadata-string", "metadata-string [skill-member-type]"),
    ("compatibility-map", "compatibility-map [skill-member-type]"),
    ("unknown-keys", "unknown-keys [skill-extra-member]"),
    ("disable-model-invocation", "disable-model-invocation [skill-extra-member]"),
    // Several files.
    ("nested", "inner,nested []"),
    ("nested-sample", "nested-sample [skill-frontmatter-missing]"),
    ("backups", "price-tags [skill-duplicate skill-duplicate]"),
];

/// The skills that a folder gives, and the codes of all findings, each as often as it is found.
fn outcome(folder: &Path) -> String {
    let set = load_folders(&[folder.to_owned()]);
    let mut codes: Vec<&str> = set.findings.iter().map(|finding| finding.code).collect();
    codes.sort_unstable();
    let names: Vec<&str> = set.skills.keys().map(|name| name.as_str()).collect();
    format!("{} [{}]", names.join(","), codes.join(" "))
}

/// Codes that an [`outcome`] names.
fn codes_of(outcome: &str) -> impl Iterator<Item = &str> {
    outcome.split_once('[').into_iter().flat_map(|(_, codes)| codes.trim_end_matches(']').split_whitespace())
}

#[test]
fn each_broken_skill_has_its_outcome_and_reason_and_each_code_has_a_broken_skill() {
    let broken = root().join("skills-fixtures/broken");
    let mut wrong = Vec::new();
    for (shape, expected) in SHAPES {
        let found = outcome(&broken.join(shape));
        if found != *expected {
            wrong.push(format!("{shape}: {found} instead of {expected}"));
        }
    }
    let scratch = tempfile::tempdir().unwrap();
    let made = make_shapes(scratch.path());
    for (shape, expected) in &made {
        let found = outcome(&scratch.path().join(shape));
        if found != *expected {
            wrong.push(format!("{shape}: {found} instead of {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    let known: BTreeSet<String> = SHAPES.iter().map(|(shape, _)| (*shape).to_owned()).collect();
    let there = fs::read_dir(&broken).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(there.collect::<BTreeSet<_>>(), known, "every folder is in the table");
    let covered: BTreeSet<&str> = SHAPES.iter().chain(&made).flat_map(|(_, outcome)| codes_of(outcome)).collect();
    // These are about skills that are made of upstreams.
    let of_files = |code: &&&str| code.starts_with("skill") && !["skill-of-upstream", "skill-renamed"].contains(*code);
    let missing: Vec<_> = CODES.iter().filter(of_files).filter(|code| !covered.contains(*code)).collect();
    assert!(missing.is_empty() || cfg!(not(unix)), "no broken skill has {missing:?}");
}

/// Makes the shapes that git or some file systems would not keep, or that are large; gives what each is expected to give.
fn make_shapes(root: &Path) -> Vec<(&'static str, &'static str)> {
    let header = |name: &str, description: &str| format!("---\nname: {name}\ndescription: {description}\n---\n");
    let plain = |name: &str| header(name, "Sweep the yard. Use for \"the yard is full of leaves\".") + "# Yard\n";
    write(&root.join("upper-ending/SKILL.MD"), plain("upper-ending"));
    write(&root.join("mixed-case/Skill.md"), plain("mixed-case"));
    write(&root.join("control-character/SKILL.md"), header("control-character", "Sweep\u{80} the yard."));
    write(&root.join("escape/SKILL.md"), header("escape", r#""Sweep \e[31mthe yard.""#));
    write(&root.join("long-description/SKILL.md"), header("long-description", &"Sweep it. ".repeat(193)));
    write(&root.join("long-file/SKILL.md"), plain("long-file") + &"Sweep once more.\n".repeat(294_426 / 17));
    write(&root.join("huge-file/SKILL.md"), plain("huge-file") + &"Sweep once more.\n".repeat(70_000));
    write(&root.join("huge-header/SKILL.md"), header("huge-header", &"Sweep it. ".repeat(7_000)));
    write(&root.join("latin-1/SKILL.md"), b"---\nname: latin-1\ndescription: Caf\xe9\n---\n");
    write(&root.join("many-files/SKILL.md"), plain("many-files"));
    for number in 0..513 {
        write(&root.join(format!("many-files/references/{number}.md")), "x");
    }
    write(&root.join("deep/1/2/3/4/5/6/SKILL.md"), plain("6"));
    write(&root.join("too-deep/1/2/3/4/5/6/7/SKILL.md"), plain("7"));
    let mut made = vec![
        ("upper-ending", "upper-ending [skill-file-case]"),
        ("mixed-case", "mixed-case [skill-file-case]"),
        ("control-character", "control-character [skill-control-character skill-frontmatter-quoted]"),
        ("escape", "escape [skill-control-character]"),
        ("long-description", "long-description [skill-description-cut]"),
        ("long-file", "long-file []"),
        ("huge-file", " [skill-too-large]"),
        ("huge-header", " [skill-too-large]"),
        ("latin-1", " [skill-encoding]"),
        ("many-files", "many-files [skill-too-many]"),
        ("deep", "6 []"),
        ("too-deep", " [skill-too-deep]"),
        ("nowhere", " [skills-folder]"),
    ];
    #[cfg(unix)]
    {
        // As after a checkout of a part of a repository whose skills are links to another part.
        fs::create_dir_all(root.join("dangling/skill")).unwrap();
        std::os::unix::fs::symlink("../../../skills/skill/SKILL.md", root.join("dangling/skill/SKILL.md")).unwrap();
        made.push(("dangling", " [skill-link-dangling]"));
    }
    made
}

fn write(file: &Path, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, bytes).unwrap();
}

// Many

const MANY: usize = 15_000;
/// Folders of tools, none of which may be entered.
const NOISE: &[&str] = &["node_modules", ".git", "target", "__pycache__", ".venv", "venv/lib/site-packages", ".tox"];
/// Whether the shape is usable, the file's name, and what is in it; `N` stands for the skill's name.
const MIXED: &[(bool, &str, &str)] = &[
    (true, "SKILL.md", "---\nname: N\ndescription: Mends what N needs. Use when N is torn.\n---\n# N\n\nSew it.\n"),
    (true, "SKILL.md", "\u{feff}---\r\nname: N\r\ndescription: Mends N.\r\n---\r\nSew it.\r\n"),
    (
        true,
        "SKILL.md",
        "---\nname: N\ndescription: >\n  Use when: N is torn,\n  or worn.\nallowed-tools: a/b, c/d\n---\n",
    ),
    (true, "SKILL.md", "---\nname: N\ndescription: Use for: N, and: more\n---\nSew it.\n"),
    (true, "skill.md", "---\nname: N\ndescription: Mends N.\nmetadata: a text\nversion: 1\n---\n"),
    (true, "SKILL.md", "---\ndescription: Mends something for somebody.\n---\n"),
    (true, "SKILL.md", "---\nname: N\ndescription: [Mends, N]\ntags: [a, b]\n---\n"),
    (true, "SKILL.md", "---\nname: N\ndescription: Mends \u{80}N.\ncompatibility: [1]\n---\n"),
    (false, "SKILL.md", "---\nname: N\ndescription:\n---\n"),
    (false, "SKILL.md", "---\nname: N\ndescription: Mends N.\n# N\n"),
    (false, "SKILL.md", "N\n---\nname: N\ndescription: Mends N.\n---\n"),
    (false, "SKILL.md", "---\nname: N\n<<<<<<< a\ndescription: x\n=======\ndescription: y\n>>>>>>> b\n---\n"),
    (false, "SKILL.md", "---\nname: N\ndescription: Mends\nN.\n---\n"),
    (false, "SKILL.md", "---\nname: N\0\ndescription: Mends N.\n---\n"),
    (false, "SKILL.md", ""),
];

/// Makes the tree, the same in each run; gives the names of the skills that are usable.
fn make_many(root: &Path) -> BTreeSet<String> {
    let mut state: u64 = 0x6b65_7967_6174_6521;
    // Knuth's MMIX numbers; its high bits are good enough to pick shapes.
    let mut pick = |most: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % most
    };
    let mut usable = BTreeSet::new();
    for number in 0..MANY {
        let name = format!("skill-{number}");
        let folder = root.join(format!("group-{}/part-{}/{name}", number % 20, number % 300));
        let (is_usable, file, text) = MIXED[if pick(2) == 0 { 0 } else { pick(MIXED.len()) }];
        write(&folder.join(file), text.replace('N', &name) + &"More of it.\n".repeat(pick(100)));
        if is_usable {
            usable.insert(name);
        }
        if pick(3) == 0 {
            for reference in 0..=pick(3) {
                write(&folder.join(format!("references/{reference}.md")), "Look here.\n".repeat(pick(100)));
            }
        }
        if pick(20) == 0 {
            let noise = NOISE[pick(NOISE.len())];
            write(&folder.join(noise).join("never/SKILL.md"), MIXED[0].2.replace('N', "never"));
        }
    }
    // A SKILL.md above them all, whose references are everything.
    write(&root.join("SKILL.md"), MIXED[0].2.replace('N', "all"));
    usable.insert("all".into());
    usable
}

/// A temporary folder in memory where there is room: on a busy disk, 40,000 small files take minutes to make and delete.
fn large_scratch() -> tempfile::TempDir {
    #[cfg(target_os = "linux")]
    if rustix::fs::statvfs("/dev/shm").is_ok_and(|found| found.f_bavail * found.f_frsize > 1 << 30)
        && let Ok(scratch) = tempfile::tempdir_in("/dev/shm")
    {
        return scratch;
    }
    tempfile::tempdir().unwrap()
}

#[test]
fn a_tree_of_15000_skills_of_all_shapes_loads_within_a_minute_and_noise_is_not_entered() {
    let scratch = large_scratch();
    let usable = make_many(scratch.path());
    let folders = [scratch.path().to_owned()];

    let start = Instant::now();
    let set = load_folders(&folders);
    let first = start.elapsed();
    let start = Instant::now();
    let again = set.read_again(&folders, SystemTime::now());
    let second = start.elapsed();

    assert!(first.max(second) < Duration::from_secs(60), "{first:?}, and again {second:?}");
    let names: BTreeSet<String> = set.skills.keys().map(ToString::to_string).collect();
    assert_eq!(names, usable);
    assert!(set.has_same_skills(&again) && set.findings == again.findings);
    let is_noise = |path: &str| path.split('/').any(|part| NOISE.iter().any(|noise| noise.ends_with(part)));
    let entered: Vec<_> = set.folders.iter().filter(|folder| folder.ends_with("never")).collect();
    assert!(entered.is_empty() && set.folders.len() > MANY, "{entered:?}");
    assert!(set.skills.values().all(|skill| !skill.references.iter().any(|path| is_noise(path))));
    let mut codes: BTreeMap<&str, usize> = BTreeMap::new();
    set.findings.iter().for_each(|finding| *codes.entry(finding.code).or_default() += 1);
    assert!(codes.len() >= 10 && !codes.contains_key("skill-too-deep"), "{codes:?}");
    assert_eq!(codes["skill-too-many"], 1, "of the one above them all");

    let start = Instant::now();
    let (code, stdout, stderr) = run(["skills", "lint", "--json", scratch.path().to_str().unwrap()]);
    let linted = start.elapsed();
    assert_eq!(code, 1, "{stderr}");
    assert!(linted < Duration::from_secs(60), "{linted:?}");
    let envelope: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(envelope["data"]["skills"], usable.len());
}

// Lint

/// `skills lint` over a folder of `skills-fixtures`: exit code, and the findings as place below it, code and severity.
fn lint(folder: &str) -> (i32, Vec<String>, Value) {
    let folder = root().join("skills-fixtures").join(folder);
    let (code, stdout, stderr) = run(["skills", "lint", "--json", folder.to_str().unwrap()]);
    let envelope: Value = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error} in {stdout}{stderr}"));
    assert_eq!(envelope["kind"], "skills.lint");
    let shown = |finding: &Value| {
        let file = Path::new(finding["at"]["file"].as_str().unwrap()).strip_prefix(&folder).unwrap();
        assert!(finding["hint"].is_string(), "{finding}");
        let name = file.parent().unwrap().display();
        format!("{name}:{}:{} {}", finding["at"]["line"], finding["at"]["column"], finding["code"].as_str().unwrap())
    };
    let findings = envelope["diagnostics"].as_array().unwrap().iter().map(shown).collect();
    (code, findings, envelope["data"].clone())
}

#[test]
fn lint_names_what_authors_should_change_with_place_and_hint() {
    let (code, findings, data) = lint("lint");
    insta::assert_snapshot!(findings.join("\n"), @r"
    boots:3:14 lint-description-short
    boots:3:14 lint-trigger-missing
    season-report:3:14 lint-trigger-late
    stock-count:5:1 lint-body-no-heading
    tent-repair:3:14 lint-near-duplicate
    utils:2:7 lint-name-generic
    utils:3:14 lint-description-generic
    utils:3:14 lint-trigger-missing
    utils:4:1 lint-body-empty
    ");
    assert_eq!(code, 1);
    assert_eq!(data["near_duplicates"][0]["skills"], serde_json::json!(["tent-mending", "tent-repair"]));
    let codes: BTreeSet<&str> =
        findings.iter().filter_map(|finding| finding.split_once(' ')).map(|(_, code)| code).collect();
    let of_lint: BTreeSet<&str> = CODES.iter().copied().filter(|code| code.starts_with("lint-")).collect();
    assert_eq!(codes, of_lint, "each code has a skill, and loading finds nothing here");
}

#[test]
fn lint_tells_what_loading_found_too_and_is_silent_over_good_skills() {
    let (code, findings, data) = lint("eshop");
    assert_eq!((code, findings.len(), &data["skills"]), (0, 0, &Value::from(7)), "{findings:?}");
    let (code, findings, _) = lint("broken/compatibility-map");
    assert_eq!(code, 1);
    assert!(findings[0].ends_with(" skill-member-type"), "{findings:?}");
    let (code, findings, _) = lint("broken/empty-description");
    assert_eq!((code, findings[0].as_str()), (1, ":3:14 skill-description-missing"));
}

#[test]
fn lint_takes_the_folders_of_the_config_where_none_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let config = scratch.path().join("gatekey.toml");
    let skills = serde_json::json!([root().join("skills-fixtures/lint")]);
    fs::write(&config, format!("version = 1\nskills = {skills}\n")).unwrap();
    let (code, stdout, _) = run(["skills", "lint", "--config", config.to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(stdout.contains("utils/SKILL.md:3:14: warning[lint-description-generic]: the description has"), "{stdout}");
    assert!(stdout.trim_end().ends_with("warnings, 0 notes"), "{stdout}");
    fs::write(&config, "version = 1\n").unwrap();
    let (code, _, stderr) = run(["skills", "lint", "--config", config.to_str().unwrap()]);
    assert!(code == 2 && stderr.contains("names no folder of skills"), "{stderr}");
    let (code, _, stderr) = run(["skills", "lint", "no-such-folder"]);
    assert!(code == 2 && stderr.contains("there is no folder `no-such-folder`"), "{stderr}");
}
