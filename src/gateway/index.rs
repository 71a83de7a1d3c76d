//! The catalogue as a text for files that clients load (`gatekey index`): what [`super::catalogue`] shows, as Markdown, with
//! tags and numbers of tools. Must not know of files. Read [`mini_index`] first.

use std::{cmp::Reverse, collections::BTreeSet, fmt::Write as _};

use super::catalogue::{self, LEVELS, Level, Shown, tag_counts};
use crate::{
    catalog::{CatalogSkill, Origin, Snapshot},
    model::{
        limits::CATALOG_TAGS,
        principal::Principal,
        tool::{cut, estimate_tokens},
    },
};

/// The lines between which the index stands in a file.
pub const INDEX_MARKERS: [&str; 2] = ["<!-- gatekey:index start -->", "<!-- gatekey:index end -->"];

/// The index as a text. The same snapshot, caller and budget give the same bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MiniIndex {
    /// Markdown without markers, lines ended by LF.
    pub text: String,
    /// How much it shows: `full`, `sentences`, `names` or `counts`.
    pub level: &'static str,
    /// Skills that it is about.
    pub n_skills: usize,
    /// Of the text with its markers, estimated.
    pub n_tokens: usize,
}

/// A skill of the index.
struct Entry<'a> {
    shown: Shown<'a>,
    /// Tools that the caller may use once it is loaded.
    n_tools: usize,
}

const INTRODUCTION: &str = "## Skills\n\nBefore a task that one of these skills fits, call `skill_load` with its name: it returns how to \
     proceed and opens the skill's tools.";
const WITH_SEARCH: &str = " `skill_search` finds the one that fits.";
const WITHOUT_SEARCH: &str = " The description of `skill_load` says what each is for.";
const NOTHING: &str = "## Skills\n\nThere are no skills.\n";

/// Characters shown of a tag.
const TAG_CHARS: usize = 40;

/// Makes the index of what `principal` may see, with its markers within `budget_tokens`.
pub fn mini_index(snapshot: &Snapshot, principal: &Principal, budget_tokens: usize) -> MiniIndex {
    let n_tools =
        |skill: &CatalogSkill| skill.tools.iter().filter(|position| snapshot.is_shown(**position, principal)).count();
    let entries: Vec<Entry<'_>> = catalogue::shown(snapshot, principal)
        .into_iter()
        .map(|shown| Entry { n_tools: n_tools(shown.skill), shown })
        .collect();
    // Where the catalogue tells everything, `skill_search` is not listed.
    let has_search = catalogue::texts(snapshot, principal).is_cut;
    index_of(&entries, budget_tokens, has_search)
}

fn index_of(entries: &[Entry<'_>], budget_tokens: usize, has_search: bool) -> MiniIndex {
    let made = |text: String, level| MiniIndex { n_tokens: tokens(&text), n_skills: entries.len(), text, level };
    if entries.is_empty() {
        return made(NOTHING.to_owned(), "full");
    }
    let levels = LEVELS.iter().map(|level| (*level, at(*level, entries, has_search)));
    match levels.into_iter().find(|(_, text)| tokens(text) <= budget_tokens) {
        Some((Level::Full, text)) => made(text, "full"),
        Some((Level::Sentence, text)) => made(text, "sentences"),
        Some((Level::Name, text)) => made(text, "names"),
        None => made(counted(entries, budget_tokens, has_search), "counts"),
    }
}

/// Of a text with the markers around it.
fn tokens(text: &str) -> usize {
    let n_bytes: usize = INDEX_MARKERS.iter().map(|marker| marker.len() + 1).sum();
    estimate_tokens(text) + n_bytes.div_ceil(3)
}

fn at(level: Level, entries: &[Entry<'_>], has_search: bool) -> String {
    if level == Level::Name {
        let names: Vec<String> = entries.iter().map(|entry| name(entry.shown.skill)).collect();
        return format!("{INTRODUCTION}{}\n\n{}\n", search(has_search), names.join(", "));
    }
    let mut text = format!("{INTRODUCTION}\n\n");
    for entry in entries {
        let skill = entry.shown.skill;
        let description = plain(&level.of(&entry.shown.description).unwrap_or_default());
        // Writing to a text cannot fail.
        writeln!(text, "- {}: {description}{}", name(skill), behind(entry, level)).ok();
    }
    text
}

/// What stands behind a description: tags, and how many tools the skill opens where the description does not say it.
fn behind(entry: &Entry<'_>, level: Level) -> String {
    let skill = entry.shown.skill;
    let tags: Vec<String> = skill.tags.iter().map(|tag| shown_tag(tag)).collect();
    let says_tools = level == Level::Full && skill.origin != Origin::Folder;
    let tools = match entry.n_tools {
        0 => None,
        _ if says_tools => None,
        1 => Some("1 tool".to_owned()),
        n_tools => Some(format!("{n_tools} tools")),
    };
    let parts: Vec<String> = Some(tags.join(", ")).filter(|tags| !tags.is_empty()).into_iter().chain(tools).collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
}

/// Tags with their counts, and as many names as there is room for: of each tag as many as of the others, those first that
/// open the most tools.
fn counted(entries: &[Entry<'_>], budget_tokens: usize, has_search: bool) -> String {
    /// One line: its beginning, and the names that follow.
    struct Group {
        head: String,
        names: Vec<String>,
    }
    let head = format!("{INTRODUCTION}{}\n\nThere are {} skills", search(has_search), entries.len());
    // Each name comes with what stands before it; a byte is left for the end, and two tokens for what is rounded up.
    let most_bytes = budget_tokens.saturating_sub(2) * 3;
    let mut room = most_bytes.saturating_sub(tokens(&head) * 3 + ", by tag, with some of each:\n\n".len() + 1);
    let tags = tag_counts(entries.iter().map(|entry| entry.shown.skill));
    let mut ranked: Vec<&Entry<'_>> = entries.iter().collect();
    ranked.sort_by_key(|entry| (Reverse(entry.n_tools), &entry.shown.skill.name));
    let mut groups: Vec<(Group, Vec<&CatalogSkill>)> = Vec::new();
    let mut for_heads = room / 2;
    for (tag, count) in tags.into_iter().take(CATALOG_TAGS) {
        let head = format!("- {} ({count}):", shown_tag(tag));
        let Some(left) = for_heads.checked_sub(head.len() + 1) else { break };
        room -= for_heads - left;
        for_heads = left;
        let has_tag = |entry: &&&Entry<'_>| entry.shown.skill.tags.iter().any(|own| own == tag);
        let members = ranked.iter().filter(has_tag).map(|entry| entry.shown.skill).collect();
        groups.push((Group { head, names: Vec::new() }, members));
    }
    let has_tags = !groups.is_empty();
    if !has_tags {
        let all = ranked.iter().map(|entry| entry.shown.skill).collect();
        groups.push((Group { head: "Some of them:".to_owned(), names: Vec::new() }, all));
    }
    let mut seen = BTreeSet::new();
    let mut queues: Vec<_> = groups.into_iter().map(|(group, members)| (group, members.into_iter())).collect();
    'full: loop {
        let n_before = seen.len();
        for (group, members) in &mut queues {
            let Some(skill) = members.find(|skill| !seen.contains(&skill.name)) else { continue };
            let name = name(skill);
            let Some(left) = room.checked_sub(name.len() + 2) else { break 'full };
            room = left;
            seen.insert(&skill.name);
            group.names.push(name);
        }
        if seen.len() == n_before {
            break;
        }
    }
    let lines: Vec<String> =
        queues.into_iter().map(|(group, _)| format!("{} {}", group.head, group.names.join(", "))).collect();
    let lead = if has_tags { ", by tag, with some of each:\n\n" } else { ". " };
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    format!("{head}{lead}{}\n", lines.join("\n"))
}

fn search(has_search: bool) -> &'static str {
    if has_search { WITH_SEARCH } else { WITHOUT_SEARCH }
}

fn name(skill: &CatalogSkill) -> String {
    // Clients import nothing that stands between these.
    let name: String = skill.name.as_str().chars().filter(|c| !c.is_control() && *c != '`').collect();
    format!("`{name}`")
}

fn shown_tag(tag: &str) -> String {
    plain(&cut(&tag.split_whitespace().collect::<Vec<_>>().join(" "), TAG_CHARS))
}

/// The text without what would be more than text in the file it stands in: comments, among them our markers, and `@path`,
/// by which clients import files.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut before = ' ';
    for c in text.chars().filter(|c| !c.is_control()) {
        if c == '@' && !before.is_alphanumeric() {
            plain.push('\\');
        }
        plain.push(c);
        before = c;
    }
    plain.replace("<!--", "&lt;!--")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        limits::INDEX_TOKENS_LEAST,
        name::SkillName,
        trust::{Trust, TrustRules},
    };

    fn skill(name: &str, description: &str, tags: &[&str]) -> CatalogSkill {
        CatalogSkill {
            name: SkillName::new(name),
            description: description.to_owned(),
            body: String::new(),
            patterns: Vec::new(),
            origin: Origin::Folder,
            trust: Trust::User,
            rule: TrustRules::default().user,
            on_disk: None,
            is_hidden: false,
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            tools: Vec::new(),
        }
    }

    fn entry(skill: &CatalogSkill, n_tools: usize) -> Entry<'_> {
        Entry { shown: Shown { skill, description: skill.description.clone() }, n_tools }
    }

    /// So many skills, each with a description of two sentences and one of thirty tags.
    fn many(n_skills: usize) -> Vec<CatalogSkill> {
        let make = |n: usize| {
            let description =
                format!("Does thing number {n} for whoever asks. Use it when somebody asks for it twice.");
            skill(&format!("skill-number-{n:04}"), &description, &[&format!("tag-{}", n % 30)])
        };
        (0..n_skills).map(make).collect()
    }

    fn index(skills: &[CatalogSkill], budget_tokens: usize) -> MiniIndex {
        let entries: Vec<Entry<'_>> = skills.iter().enumerate().map(|(n, skill)| entry(skill, n % 7)).collect();
        index_of(&entries, budget_tokens, true)
    }

    #[test]
    fn it_shows_what_fits_and_is_never_over_its_budget() {
        let mut shown = Vec::new();
        for n_skills in [0, 1, 40, 400, 5_000] {
            let skills = many(n_skills);
            for budget in [INDEX_TOKENS_LEAST, 1_000, 2_000, 10_000] {
                let index = index(&skills, budget);
                assert!(index.n_tokens <= budget, "{} of {budget} for {n_skills}:\n{}", index.n_tokens, index.text);
                let whole = format!("{}\n{}{}\n", INDEX_MARKERS[0], index.text, INDEX_MARKERS[1]);
                assert!(estimate_tokens(&whole) <= index.n_tokens);
                assert_eq!(index.n_skills, n_skills);
                shown.push(format!("{n_skills} in {budget}: {} {}", index.level, index.n_tokens));
            }
        }
        insta::assert_snapshot!(shown.join("\n"), @r"
        0 in 200: full 30
        0 in 1000: full 30
        0 in 2000: full 30
        0 in 10000: full 30
        1 in 200: full 104
        1 in 1000: full 104
        1 in 2000: full 104
        1 in 10000: full 104
        40 in 200: counts 192
        40 in 1000: names 361
        40 in 2000: full 1638
        40 in 10000: full 1638
        400 in 200: counts 191
        400 in 1000: counts 986
        400 in 2000: counts 1987
        400 in 10000: names 2881
        5000 in 200: counts 192
        5000 in 1000: counts 986
        5000 in 2000: counts 1987
        5000 in 10000: counts 9988
        ");
    }

    #[test]
    fn a_skill_has_its_description_tags_and_number_of_tools() {
        let refunds = skill("refunds", "Give money back. Use it for\n  complaints.", &["money", "shop"]);
        let notes = skill("notes", "Takes notes.", &[]);
        let mut files = skill("files", "Tools of the files. Opens 2 tools: read, write.", &[]);
        files.origin = Origin::Upstream(crate::model::name::UpstreamName::new("files"));
        let entries = [entry(&files, 2), entry(&notes, 1), entry(&refunds, 12)];
        insta::assert_snapshot!(at(Level::Full, &entries, false), @r"
        ## Skills

        Before a task that one of these skills fits, call `skill_load` with its name: it returns how to proceed and opens the skill's tools.

        - `files`: Tools of the files. Opens 2 tools: read, write.
        - `notes`: Takes notes. (1 tool)
        - `refunds`: Give money back. Use it for complaints. (money, shop; 12 tools)
        ");
        let shorter = |level, has_search| at(level, &entries, has_search).replace(INTRODUCTION, "…");
        insta::assert_snapshot!(shorter(Level::Sentence, false), @r"
        …

        - `files`: Tools of the files. (2 tools)
        - `notes`: Takes notes. (1 tool)
        - `refunds`: Give money back. (money, shop; 12 tools)
        ");
        insta::assert_snapshot!(shorter(Level::Name, false), @r"
        … The description of `skill_load` says what each is for.

        `files`, `notes`, `refunds`
        ");
        assert!(shorter(Level::Name, true).starts_with("… `skill_search` finds the one that fits.\n"));
    }

    #[test]
    fn many_skills_are_counted_by_tag_with_those_that_open_the_most_tools() {
        let mut skills = many(3_000);
        for (n, skill) in skills.iter_mut().enumerate() {
            skill.tags = vec![if n % 3 == 0 { "rare" } else { "frequent" }.to_owned()];
        }
        insta::assert_snapshot!(index(&skills, 200).text, @r"
        ## Skills

        Before a task that one of these skills fits, call `skill_load` with its name: it returns how to proceed and opens the skill's tools. `skill_search` finds the one that fits.

        There are 3000 skills, by tag, with some of each:

        - frequent (2000): `skill-number-0013`, `skill-number-0020`, `skill-number-0034`, `skill-number-0041`, `skill-number-0055`, `skill-number-0062`
        - rare (1000): `skill-number-0006`, `skill-number-0027`, `skill-number-0048`, `skill-number-0069`, `skill-number-0090`, `skill-number-0111`
        ");
        for skill in &mut skills {
            skill.tags.clear();
        }
        let untagged = index(&skills, 200);
        let begins = "\nThere are 3000 skills. Some of them: `skill-number-0006`, `skill-number-0013`, ";
        assert!(untagged.text.contains(begins) && untagged.n_tokens <= 200, "{untagged:?}");
    }

    #[test]
    fn the_same_skills_give_the_same_bytes() {
        assert_eq!(index(&many(400), 1_000), index(&many(400), 1_000));
    }

    #[test]
    fn a_description_is_nothing_but_text_in_the_file() {
        assert_eq!(
            plain("See @~/.ssh/key, (@b) and a@b.cz. <!-- gatekey:index end -->\u{7}"),
            "See \\@~/.ssh/key, (\\@b) and a@b.cz. &lt;!-- gatekey:index end -->"
        );
    }
}
