//! Rules about single files: where `unsafe` may stand, how a file opens, names, length, paths.

use super::{Finding, Tree};

/// A file of more lines is listed.
pub const LINES_LISTED: usize = 400;
/// A file of more lines is refused.
const LINES_MAX: usize = 500;

const VAGUE: [&str; 4] = ["util", "utils", "common", "helpers"];

/// `unsafe` in code, not in words or strings, only under the substrate's folder.
pub fn unsafe_in_the_substrate_alone(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree
        .sources
        .iter()
        .filter(|s| !s.path.starts_with("crates/substrate/"))
    {
        for token in source.tokens.iter().filter(|token| token.text == "unsafe") {
            findings.push(Finding::new(
                &source.path,
                token.line,
                "`unsafe` outside the substrate",
            ));
        }
    }
    findings
}

/// Every file says first what it is.
pub fn header(tree: &Tree) -> Vec<Finding> {
    let without = tree
        .sources
        .iter()
        .filter(|source| !source.text.starts_with("//! "));
    without
        .map(|source| Finding::new(&source.path, 1, "does not open with `//! `"))
        .collect()
}

/// No file, folder or inline module with a name that says nothing.
pub fn names(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        let parts = source
            .path
            .split('/')
            .map(|part| part.trim_end_matches(".rs"));
        if let Some(vague) = parts.into_iter().find(|part| VAGUE.contains(part)) {
            findings.push(Finding::new(
                &source.path,
                1,
                format!("`{vague}` says nothing"),
            ));
        }
        for (index, token) in source.tokens.iter().enumerate() {
            let name = source.word(index + 1);
            if token.text == "mod" && VAGUE.contains(&name) {
                let what = format!("module `{name}`: the name says nothing");
                findings.push(Finding::new(&source.path, token.line, what));
            }
        }
    }
    findings
}

/// No file too long to be read at once.
pub fn length(tree: &Tree) -> Vec<Finding> {
    let long = tree
        .sources
        .iter()
        .filter(|source| source.lines() > LINES_MAX);
    long.map(|source| {
        let what = format!("{} lines, at most {LINES_MAX}", source.lines());
        Finding::new(&source.path, LINES_MAX + 1, what)
    })
    .collect()
}

/// Nothing but the lock file names one machine's folders or where packages are fetched from.
pub fn machine_paths(tree: &Tree) -> Vec<Finding> {
    // Put together here, so that this file does not name them.
    let folders = ["work", "root"].map(|folder| format!("/{folder}/"));
    let kinds = ["sparse", "registry"].map(|kind| format!("{kind}+"));
    let tables = ["source.", "registries"].map(|table| format!("[{table}"));
    let texts = tree.texts.iter().map(|(path, text)| (path, text));
    let all = texts.chain(
        tree.sources
            .iter()
            .map(|source| (&source.path, &source.text)),
    );
    let mut findings = Vec::new();
    for (path, text) in all.filter(|(path, _)| *path != "Cargo.lock") {
        for (index, line) in text.lines().enumerate() {
            let folder = folders.iter().find(|folder| begins_a_path(line, folder));
            let mut sources = kinds.iter().chain(&tables);
            let source = sources.find(|word| line.contains(word.as_str()));
            if let Some(word) = folder.or(source) {
                findings.push(Finding::new(path, index + 1, format!("names `{word}`")));
            }
        }
    }
    findings
}

/// Whether `folder` stands in the line as the start of a path: `crates/x/...` has it in the middle.
fn begins_a_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !(c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '}' | '/')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fixture::places;

    #[test]
    fn unsafe_is_found_in_code_only_and_outside_the_substrate_only() {
        let code =
            "//! unsafe\nfn f() {\n    // unsafe\n    let _ = \"unsafe\";\n    unsafe { g() }\n}\n";
        let files = [
            ("crates/a/src/lib.rs", code),
            ("crates/substrate/src/x.rs", code),
        ];
        assert_eq!(
            places(unsafe_in_the_substrate_alone, &files),
            ["crates/a/src/lib.rs:5"]
        );
    }

    #[test]
    fn a_file_without_header_is_found() {
        let files = [
            ("a.rs", "//! A.\n"),
            ("b.rs", "use x;\n//! B.\n"),
            ("c.rs", "// C.\n"),
        ];
        assert_eq!(places(header, &files[..1]), [""; 0]);
        assert_eq!(places(header, &files[2..]), ["c.rs:1"]);
    }

    #[test]
    fn names_that_say_nothing_are_found() {
        let files = [
            ("crates/a/src/util.rs", ""),
            ("crates/a/tests/common/mod.rs", ""),
            (
                "crates/a/src/lib.rs",
                "//! A.\nmod helpers {}\nmod common_case {}\n",
            ),
        ];
        assert_eq!(
            places(names, &files),
            [
                "crates/a/src/util.rs:1",
                "crates/a/tests/common/mod.rs:1",
                "crates/a/src/lib.rs:2"
            ]
        );
    }

    #[test]
    fn a_file_over_the_limit_is_found() {
        let (fits, long) = ("//\n".repeat(LINES_MAX), "//\n".repeat(LINES_MAX + 1));
        assert_eq!(
            places(length, &[("a.rs", &fits), ("b.rs", &long)]),
            ["b.rs:501"]
        );
    }

    #[test]
    fn a_machines_folder_and_a_package_source_are_found_everywhere_but_in_the_lock_file() {
        let (folder, source) = (
            format!("see /{}/x", "root"),
            format!("\"{}+https\"", "registry"),
        );
        let inside = format!("crates/{}/x", "work");
        let files = [
            ("docs/a.md", folder.as_str()),
            ("a.rs", "//! Fine: /tmp/x.\n"),
            ("b.md", &inside),
            ("c.toml", &source),
            ("Cargo.lock", &source),
        ];
        assert_eq!(places(machine_paths, &files), ["docs/a.md:1", "c.toml:1"]);
    }
}
