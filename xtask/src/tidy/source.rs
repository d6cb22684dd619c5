//! A Rust file as flat tokens and comments, both with their lines.
//!
//! Tokens come from `proc_macro2`, so that words in strings and comments are never taken for code;
//! they stay flat, with the mate of each bracket, so that code inside macro calls (`proptest!`) is
//! seen like any other. Comments, doc comments too, are what the tokens leave uncovered.

use std::ops::Range;
use std::str::FromStr;

use anyhow::anyhow;
use proc_macro2::{Delimiter, LexError, Span, TokenStream, TokenTree};

/// A file.
#[derive(Debug)]
pub struct Source {
    /// Relative to the root, with `/`.
    pub path: String,
    /// Its content.
    pub text: String,
    /// Its tokens, doc comments left out.
    pub tokens: Vec<Token>,
    /// Its comments, in order.
    pub comments: Vec<Comment>,
    /// Every `fn` with a name.
    pub functions: Vec<Function>,
    /// Token ranges of items under `#[test]` or a `cfg` that wants `test`.
    tests: Vec<Range<usize>>,
}

/// A word, a punctuation character, a literal or one bracket.
#[derive(Debug)]
pub struct Token {
    /// As written.
    pub text: String,
    /// From 1.
    pub line: usize,
    /// For a bracket, the index of the other one; else its own index.
    pub mate: usize,
}

/// Comment lines that follow each other, as one.
#[derive(Debug)]
pub struct Comment {
    /// First and last line, from 1.
    pub first: usize,
    /// The last line.
    pub last: usize,
    /// All its text.
    pub text: String,
}

/// A function.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of its first attribute or word.
    pub line: usize,
    /// Token ranges of what stands in each `#[...]` of it.
    pub attributes: Vec<Range<usize>>,
    /// The token range of its body, brackets included; empty for a declaration.
    pub body: Range<usize>,
}

impl Source {
    /// Reads the tokens and comments of a file.
    pub fn parse(path: &str, text: String) -> anyhow::Result<Self> {
        let stream = TokenStream::from_str(&text)
            .map_err(|error: LexError| anyhow!("{path}:{}: {error}", error.span().start().line))?;
        let mut flat = Flat {
            text: &text,
            tokens: Vec::new(),
            code: Vec::new(),
        };
        flat.add(stream);
        let Flat { tokens, code, .. } = flat;
        let mut source = Self {
            path: path.to_owned(),
            comments: comments(&text, &code),
            tokens,
            functions: Vec::new(),
            tests: Vec::new(),
            text,
        };
        source.functions = source.find_functions();
        source.tests = source.find_tests();
        Ok(source)
    }

    /// How many lines it has.
    pub fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// The text of a token, or nothing beyond the ends.
    pub fn word(&self, index: usize) -> &str {
        self.tokens.get(index).map_or("", |token| &token.text)
    }

    /// Whether the tokens from `index` on are these.
    pub fn has(&self, index: usize, words: &[&str]) -> bool {
        words
            .iter()
            .enumerate()
            .all(|(offset, word)| self.word(index + offset) == *word)
    }

    /// Whether these tokens follow each other anywhere in the range.
    pub fn contains(&self, range: Range<usize>, words: &[&str]) -> bool {
        range.into_iter().any(|index| self.has(index, words))
    }

    /// Whether a token belongs to test code: an item under a test attribute, or a file of tests.
    pub fn in_test(&self, index: usize) -> bool {
        self.is_test_file() || self.tests.iter().any(|range| range.contains(&index))
    }

    /// Files in a `tests` folder or called so, and files under an inner `cfg(test)`.
    fn is_test_file(&self) -> bool {
        let by_name = self
            .path
            .split('/')
            .any(|part| part == "tests" || part == "tests.rs");
        by_name || (self.has(0, &["#", "!", "["]) && self.wants_test(3..self.tokens[2].mate))
    }

    /// The innermost function around a token.
    pub fn function_around(&self, index: usize) -> Option<&Function> {
        let around = self
            .functions
            .iter()
            .filter(|function| function.body.contains(&index));
        around.min_by_key(|function| function.body.len())
    }

    fn find_functions(&self) -> Vec<Function> {
        let mut functions = Vec::new();
        for index in 0..self.tokens.len() {
            // `fn(` is a type.
            if self.word(index) != "fn" || matches!(self.word(index + 1), "(" | "") {
                continue;
            }
            let (attributes, line) = self.attributes_before(index);
            functions.push(Function {
                name: self.word(index + 1).to_owned(),
                line,
                attributes,
                body: self.next_block(index + 2),
            });
        }
        functions
    }

    /// The attributes of the item whose keyword is at `index`, and the line on which it begins.
    fn attributes_before(&self, index: usize) -> (Vec<Range<usize>>, usize) {
        const QUALIFIERS: [&str; 6] = ["pub", "const", "async", "unsafe", "extern", "default"];
        let (mut first, mut attributes) = (index, Vec::new());
        while let Some(before) = first.checked_sub(1) {
            let text = self.word(before);
            let mate = self.tokens[before].mate;
            if text == "]" && mate > 0 && self.word(mate - 1) == "#" {
                attributes.push(mate + 1..before);
                first = mate - 1;
            } else if text == ")" && mate > 0 && self.word(mate - 1) == "pub" {
                first = mate - 1;
            } else if QUALIFIERS.contains(&text) || text.starts_with('"') {
                first = before;
            } else {
                break;
            }
        }
        (attributes, self.tokens[first].line)
    }

    /// From `index`, the next `{...}` of this level, unless a `;` or the level's end comes first.
    fn next_block(&self, mut index: usize) -> Range<usize> {
        while index < self.tokens.len() {
            match self.word(index) {
                "{" => return index..self.tokens[index].mate + 1,
                "(" | "[" => index = self.tokens[index].mate,
                ";" | "}" | ")" | "]" => break,
                _ => {}
            }
            index += 1;
        }
        index..index
    }

    fn find_tests(&self) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        for index in 0..self.tokens.len() {
            if !self.has(index, &["#", "["]) {
                continue;
            }
            let end = self.tokens[index + 1].mate;
            if is_test_attribute(self, &(index + 2..end)) || self.wants_test(index + 2..end) {
                ranges.push(index..self.next_block(self.after_attributes(end + 1)).end);
            }
        }
        ranges
    }

    fn after_attributes(&self, mut index: usize) -> usize {
        while self.has(index, &["#", "["]) {
            index = self.tokens[index + 1].mate + 1;
        }
        index
    }

    /// Whether an attribute is a `cfg` that holds only in tests.
    fn wants_test(&self, attribute: Range<usize>) -> bool {
        let has_test = self.contains(attribute.clone(), &["test"]);
        let negated = self.contains(attribute.clone(), &["not", "(", "test", ")"]);
        self.word(attribute.start) == "cfg" && has_test && !negated
    }
}

/// Whether what stands in `#[...]` marks a test: `test` or a path that ends so.
pub fn is_test_attribute(source: &Source, attribute: &Range<usize>) -> bool {
    let only_path = attribute.clone().all(|i| {
        let word = source.word(i);
        word == ":" || word.chars().all(|c| c.is_alphanumeric() || c == '_')
    });
    only_path && attribute.end > attribute.start && source.word(attribute.end - 1) == "test"
}

struct Flat<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    /// The byte ranges of the tokens, doc comments left out.
    code: Vec<Range<usize>>,
}

impl Flat<'_> {
    fn add(&mut self, stream: TokenStream) {
        for tree in stream {
            // A doc comment comes as an attribute whose tokens all have the comment's span.
            if self.text[tree.span().byte_range()].starts_with("//")
                || self.text[tree.span().byte_range()].starts_with("/*")
            {
                continue;
            }
            match tree {
                TokenTree::Group(group) => {
                    let (open, close) = match group.delimiter() {
                        Delimiter::Parenthesis => ("(", ")"),
                        Delimiter::Brace => ("{", "}"),
                        Delimiter::Bracket => ("[", "]"),
                        Delimiter::None => ("", ""),
                    };
                    let opening = self.push(open.to_owned(), group.span_open());
                    self.add(group.stream());
                    let closing = self.push(close.to_owned(), group.span_close());
                    self.tokens[opening].mate = closing;
                    self.tokens[closing].mate = opening;
                }
                leaf => {
                    self.push(leaf.to_string(), leaf.span());
                }
            }
        }
    }

    fn push(&mut self, text: String, span: Span) -> usize {
        let mate = self.tokens.len();
        self.tokens.push(Token {
            text,
            line: span.start().line,
            mate,
        });
        self.code.push(span.byte_range());
        mate
    }
}

/// What lies between the tokens, cut into comments; lines that follow each other are one comment.
fn comments(text: &str, code: &[Range<usize>]) -> Vec<Comment> {
    let mut comments: Vec<Comment> = Vec::new();
    let (mut start, mut line) = (0, 1);
    let ends = code
        .iter()
        .cloned()
        .chain(std::iter::once(text.len()..text.len()));
    for token in ends {
        let gap = &text[start..token.start];
        for (offset, part) in gap.split('\n').enumerate() {
            if offset > 0 {
                line += 1;
            }
            let part = part.trim();
            if part.is_empty() {
                continue;
            }
            // The first line of a gap stands behind code, so it begins a comment of its own.
            match comments
                .last_mut()
                .filter(|last| last.last + 1 == line && offset > 0)
            {
                Some(last) => {
                    last.last = line;
                    last.text.push('\n');
                    last.text.push_str(part);
                }
                None => comments.push(Comment {
                    first: line,
                    last: line,
                    text: part.to_owned(),
                }),
            }
        }
        line += text[token.clone()].matches('\n').count();
        start = token.end;
    }
    comments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Source {
        Source::parse("x.rs", text.to_owned()).expect("Rust")
    }

    #[test]
    fn comments_are_found_with_their_lines_and_strings_are_not_comments() {
        let source = parse(
            "//! Ä doc.\n//! More.\n\nfn f() { // behind\n    // über\n    /* and\n    this */\n    g(\"// no\n\");\n}\n// last",
        );
        let found: Vec<_> = source
            .comments
            .iter()
            .map(|c| (c.first, c.last, c.text.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                (1, 2, "//! Ä doc.\n//! More."),
                (4, 7, "// behind\n// über\n/* and\nthis */"),
                (11, 11, "// last")
            ]
        );
    }

    #[test]
    fn functions_have_names_attributes_and_bodies_also_inside_macros() {
        let source = parse(
            "proptest! {\n #[test]\n #[cfg(unix)]\n pub(crate) fn a(x in 0..3) -> R<[u8; 2]> { b(); }\n}\ntrait T { fn c(); }\ntype F = fn(u8);",
        );
        let names: Vec<_> = source
            .functions
            .iter()
            .map(|f| (f.name.as_str(), f.line))
            .collect();
        assert_eq!(names, [("a", 2), ("c", 6)]);
        assert_eq!(source.functions[0].attributes.len(), 2);
        assert!(source.contains(source.functions[0].body.clone(), &["b", "(", ")"]));
        assert!(source.functions[1].body.is_empty());
    }

    #[test]
    fn code_under_a_test_cfg_is_test_code_and_under_its_negation_is_not() {
        let source = parse(
            "fn one() {}\n#[cfg(all(test, unix))]\n#[allow(dead_code)]\nmod tests { fn two() {} }\n#[cfg(not(test))]\nfn three() {}\n#[cfg(test)]\nmod apart;\nfn four() {}",
        );
        let in_test = |name| {
            let at = (0..source.tokens.len()).find(|i| source.has(*i, &["fn", name]));
            source.in_test(at.expect("the function"))
        };
        assert_eq!(
            ["one", "two", "three", "four"].map(in_test),
            [false, true, false, false]
        );
        assert!(
            Source::parse("crates/a/tests/it/main.rs", "fn x() {}".into())
                .expect("Rust")
                .in_test(0)
        );
    }
}
