//! One check and what came of it.

use serde::Serialize;

use crate::out::plain;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Fine,
    /// It works, and something is worse than it could be, or waits for somebody.
    Warning,
    /// Something does not work.
    Error,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub check: String,
    /// How bad it is.
    pub level: Level,
    /// What was found.
    pub found: String,
    /// What that means.
    pub meaning: &'static str,
    /// What to do; empty: nothing.
    pub advice: &'static str,
}

impl Finding {
    /// All is well.
    pub fn fine(check: &str, found: impl Into<String>, meaning: &'static str) -> Self {
        Self::new(Level::Fine, check, found, meaning, "")
    }

    /// It works, but.
    pub fn warning(
        check: &str,
        found: impl Into<String>,
        meaning: &'static str,
        advice: &'static str,
    ) -> Self {
        Self::new(Level::Warning, check, found, meaning, advice)
    }

    /// It does not work.
    pub fn error(
        check: &str,
        found: impl Into<String>,
        meaning: &'static str,
        advice: &'static str,
    ) -> Self {
        Self::new(Level::Error, check, found, meaning, advice)
    }

    fn new(
        level: Level,
        check: &str,
        found: impl Into<String>,
        meaning: &'static str,
        advice: &'static str,
    ) -> Self {
        Self {
            check: check.to_owned(),
            level,
            found: found.into(),
            meaning,
            advice,
        }
    }

    /// For people: one line, and two more unless all is well.
    pub fn text(&self) -> String {
        let word = match self.level {
            Level::Fine => "fine   ",
            Level::Warning => "WARNING",
            Level::Error => "ERROR  ",
        };
        let (check, found, meaning) = (plain(&self.check), plain(&self.found), self.meaning);
        let mut text = format!("{word}  {check}: {found}\n");
        if self.level != Level::Fine || !self.advice.is_empty() {
            text += &format!("         {meaning}\n");
        }
        if !self.advice.is_empty() {
            text += &format!("         => {}\n", self.advice);
        }
        text
    }
}
