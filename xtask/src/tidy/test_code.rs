//! Rules about tests: each can fail, none is left out, none sleeps.

use super::source::{Source, is_test_attribute};
use super::{Finding, Tree};

/// A test asserts, or calls a function whose name says that it does.
pub fn asserts(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        for function in &source.functions {
            let mut attributes = function.attributes.iter();
            if !attributes
                .clone()
                .any(|attribute| is_test_attribute(source, attribute))
            {
                continue;
            }
            let should_panic = attributes.any(|a| source.word(a.start) == "should_panic");
            if !should_panic && !function.body.clone().any(|index| can_fail(source, index)) {
                let what = format!("test `{}` asserts nothing", function.name);
                findings.push(Finding::new(&source.path, function.line, what));
            }
        }
    }
    findings
}

fn can_fail(source: &Source, index: usize) -> bool {
    let (word, next) = (source.word(index), source.word(index + 1));
    let macro_call = next == "!" && source.word(index + 2) != "=";
    // A turbofish may stand between the name and the arguments.
    let call = next == "(" || source.has(index + 1, &[":", ":", "<"]);
    let asserting_macro = ["assert", "prop_assert"]
        .iter()
        .any(|start| word.starts_with(start))
        || matches!(word, "panic" | "unreachable");
    let asserting_call = ["assert_", "check_", "expect_"]
        .iter()
        .any(|s| word.starts_with(s))
        || word == "unwrap_err";
    (macro_call && asserting_macro) || (call && asserting_call)
}

/// Nothing is put off.
pub fn shortcuts(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        for (index, token) in source.tokens.iter().enumerate() {
            let word = token.text.as_str();
            let put_off = matches!(word, "todo" | "unimplemented" | "dbg")
                && source.word(index + 1) == "!"
                && source.word(index + 2) != "=";
            // `#[ignore]`, `#[ignore = ".."]`, `#[cfg_attr(.., ignore)]`.
            let ignored = word == "#" && source.word(index + 1) == "[" && {
                let end = source.tokens[index + 1].mate;
                let direct = source.word(index + 2) == "ignore";
                let by_cfg = source.word(index + 2) == "cfg_attr";
                direct || (by_cfg && source.contains(index..end, &["ignore"]))
            };
            if put_off || ignored {
                let what = if ignored {
                    "ignored test".to_owned()
                } else {
                    format!("`{word}!`")
                };
                findings.push(Finding::new(&source.path, token.line, what));
            }
        }
    }
    findings
}

/// Tests await a condition with a deadline; only the function that does so may pause, and is named so.
pub fn sleeps(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        for (index, token) in source.tokens.iter().enumerate() {
            // `x.sleep()` is a method with a meaning of its own.
            let method = index > 0 && source.word(index - 1) == ".";
            let named =
                !method && matches!(token.text.as_str(), "sleep" | "sleep_ms" | "sleep_until");
            if !named || source.word(index + 1) != "(" || !source.in_test(index) {
                continue;
            }
            let awaits = source
                .function_around(index)
                .is_some_and(|f| f.name.starts_with("await_"));
            if !awaits {
                let what = "a test sleeps: await a condition with a deadline";
                findings.push(Finding::new(&source.path, token.line, what));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fixture::places;

    #[test]
    fn tests_that_cannot_fail_are_found_also_in_macros() {
        let code = "\
#[test]
fn asserts() { assert_eq!(1, 1); }
#[test]
fn empty() { let _ = f().unwrap(); }
#[test]
fn by_name() -> R { check_all(f()?) }
#[tokio::test]
async fn words_only() { f(\"assert!(x)\"); /* assert!(x) */ }
#[test]
#[should_panic(expected = \"x\")]
fn panics() { f(); }
proptest! {
    #[test]
    fn drawn(x in 0..3u8) { prop_assert!(x < 3); }
    #[test]
    fn drawn_and_dropped(x in 0..3u8) { f(x); }
}
fn no_test() {}
";
        assert_eq!(
            places(asserts, &[("a.rs", code)]),
            ["a.rs:3", "a.rs:7", "a.rs:15"]
        );
    }

    #[test]
    fn what_is_put_off_is_found() {
        let code = "\
#[test]
#[ignore = \"slow\"]
fn a() { todo!() }
#[cfg_attr(miri, ignore)]
fn b() { dbg!(1); unimplemented!(\"x\"); }
// todo!()
fn c(ignore: bool, todo: bool) -> bool { todo != ignore }
";
        assert_eq!(
            places(shortcuts, &[("a.rs", code)]),
            ["a.rs:2", "a.rs:3", "a.rs:4", "a.rs:5", "a.rs:5"]
        );
    }

    #[test]
    fn a_sleeping_test_is_found_but_neither_product_code_nor_the_awaiting_function() {
        let code = "\
fn product() { std::thread::sleep(x); }
#[cfg(test)]
mod tests {
    fn t() { thread::sleep(x); bell.sleep(); }
    fn await_condition() { sleep(x); }
}
";
        let files = [
            ("a.rs", code),
            ("crates/a/tests/it/main.rs", "fn t() { sleep(x); }"),
        ];
        assert_eq!(
            places(sleeps, &files),
            ["a.rs:4", "crates/a/tests/it/main.rs:1"]
        );
    }
}
