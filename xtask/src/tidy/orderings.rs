//! Rules about atomic accesses in the code of the crates: why this ordering.
//!
//! An access is near a comment when the comment stands inside its statement or arm up to its own
//! line, or ends at most three lines above the statement's first line. `// SAFETY:` comments speak
//! of something else and count only if they speak of orderings too. A comment that begins with
//! `Release, each:` speaks for all of that ordering below it in the function.

use super::source::{Comment, Source};
use super::{Finding, Tree};

/// A comment this many lines above a statement still belongs to it.
const REACH_LINES: usize = 3;

/// Words of which a comment that names a partner has at least one.
const PAIRING: [&str; 9] = [
    "pair", "partner", "acquire", "release", "order", "fence", "publish", "visible", "synchron",
];

/// Every acquire, release or stronger ordering is explained by a comment about the other side.
pub fn partner_named(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (source, index) in uses(tree, &["Acquire", "Release", "AcqRel", "SeqCst"]) {
        let token = &source.tokens[index];
        let each = format!("// {}, each", token.text);
        let speaks_for_run = |c: &Comment| {
            let function = source.function_around(index);
            function.is_some_and(|f| c.first >= f.line && c.last < token.line)
                && c.text.starts_with(&each)
        };
        let explained = near(source, index).any(|comment| speaks_of(comment, &PAIRING))
            || source.comments.iter().any(speaks_for_run);
        if !explained {
            let what = format!("{}: no comment says what it pairs with", token.text);
            findings.push(Finding::new(&source.path, token.line, what));
        }
    }
    findings
}

/// Every relaxed access is explained: near it, for its function, or for its file.
pub fn relaxed_explained(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (source, index) in uses(tree, &["Relaxed"]) {
        let here = near(source, index).any(|c| !is_safety(c) || speaks_of(c, &["relaxed"]));
        let for_function = || {
            let Some(function) = source.function_around(index) else {
                return false;
            };
            let last = source.tokens[function.body.end - 1].line;
            let belongs = |c: &&Comment| c.last + 1 >= function.line && c.first <= last;
            source
                .comments
                .iter()
                .filter(belongs)
                .any(|c| speaks_of(c, &["relaxed"]))
        };
        let speaks_for_file =
            |c: &Comment| c.text.starts_with("//!") && c.text.contains("Relaxed: ");
        let for_file = || source.comments.iter().any(speaks_for_file);
        if !here && !for_function() && !for_file() {
            let line = source.tokens[index].line;
            findings.push(Finding::new(
                &source.path,
                line,
                "no comment says why Relaxed is enough",
            ));
        }
    }
    findings
}

/// Where the crates' code, tests left out, passes one of these orderings to something.
fn uses<'a>(tree: &'a Tree, names: &[&str]) -> Vec<(&'a Source, usize)> {
    let mut found = Vec::new();
    for source in &tree.sources {
        if !source.path.starts_with("crates/") || !source.path.contains("/src/") {
            continue;
        }
        for (index, token) in source.tokens.iter().enumerate() {
            if names.contains(&token.text.as_str())
                && is_passed(source, index)
                && !source.in_test(index)
            {
                found.push((source, index));
            }
        }
    }
    found
}

/// An argument: neither imported, nor a pattern, nor a value in a translation of orderings, nor
/// another enum's variant.
fn is_passed(source: &Source, index: usize) -> bool {
    let qualified = index >= 3 && source.has(index - 2, &[":", ":"]);
    if qualified && source.word(index - 3) != "Ordering" {
        return false;
    }
    let around = (0..index)
        .rev()
        .find(|open| source.tokens[*open].mate > index);
    around.is_some_and(|open| source.word(open) == "(")
}

/// The comments near the access at `index`.
fn near(source: &Source, index: usize) -> impl Iterator<Item = &Comment> {
    let line = source.tokens[index].line;
    let first = statement_line(source, index).saturating_sub(REACH_LINES);
    source
        .comments
        .iter()
        .filter(move |c| c.last >= first && c.first <= line)
}

/// The first line of the statement or arm around a token.
fn statement_line(source: &Source, index: usize) -> usize {
    let mut first = index;
    while let Some(before) = first.checked_sub(1) {
        match source.word(before) {
            ";" | "{" | "}" => break,
            // An arm: its pattern's line.
            ">" if before > 0 && source.word(before - 1) == "=" => {
                return source.tokens[before].line;
            }
            ")" | "]" => first = source.tokens[before].mate,
            _ => first = before,
        }
    }
    source.tokens[first].line
}

fn is_safety(comment: &Comment) -> bool {
    comment.text.contains("SAFETY:")
}

fn speaks_of(comment: &Comment, words: &[&str]) -> bool {
    let text = comment.text.to_lowercase();
    words.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fixture::places;

    const PATH: &str = "crates/a/src/lib.rs";

    #[test]
    fn an_ordering_without_a_word_about_its_partner_is_found() {
        let code = "\
use core::sync::atomic::Ordering::{self, Acquire};

fn explained(&self) {
    // Pairs with the release in `publish`.
    self.a.load(Acquire);
    let x = self
        .b
        .compare_exchange(
            1,
            2,
            Ordering::AcqRel, // publishes the fields
            Ordering::Acquire,
        );
}

fn silent(&self) {
    // Some words.
    self.a.load(Acquire);
}

fn chosen(&self, order: Ordering) -> Ordering {
    match order {
        Ordering::Acquire | Ordering::Release => Ordering::SeqCst,
        _ => f(State::Release),
    }
}

fn arms(&self) {
    match self.state {
        // The partner of `begin`.
        1 => self.a.store(1, Ordering::Release),
        2 => {
            f();
            g();
            h();
            self.a.store(2, Ordering::Release);
        }
    }
}

fn run(&self) {
    // Release, each: in this order for the kernel.
    f();
    g();
    h();
    i();
    self.a.store(1, Ordering::Release);
    self.b.load(Ordering::Acquire);
}
";
        let found = places(
            partner_named,
            &[(PATH, code), ("crates/a/tests/x.rs", code)],
        );
        assert_eq!(
            found,
            [
                format!("{PATH}:18"),
                format!("{PATH}:36"),
                format!("{PATH}:48")
            ]
        );
    }

    #[test]
    fn a_relaxed_access_is_explained_near_it_for_its_function_or_for_its_file() {
        let code = "\
/// Relaxed: the caller's CAS is the truth.
fn for_function(&self) {
    f();
    g();
    h();
    i();
    self.a.load(Ordering::Relaxed);
}

fn near(&self) {
    // Only the owner writes it.
    self.a.load(Ordering::Relaxed);
}




fn silent(&self) {
    // SAFETY: in bounds.
    self.a.load(Ordering::Relaxed);
}
";
        assert_eq!(
            places(relaxed_explained, &[(PATH, code)]),
            [format!("{PATH}:20")]
        );
        let for_file = format!("//! Relaxed: counters only.\n{code}");
        assert_eq!(places(relaxed_explained, &[(PATH, &for_file)]), [""; 0]);
    }
}
