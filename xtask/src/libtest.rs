//! What the lines of the standard test harness say.

use anyhow::{Result, ensure};

/// Sums over the `test result:` lines of one or more test binaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Tests that passed.
    pub passed: u32,
    /// Tests that failed.
    pub failed: u32,
    /// Tests that were not run, which is not accepted.
    pub ignored: u32,
}

impl Count {
    /// Adds up the `test result:` lines.
    pub fn of(lines: &[String]) -> Self {
        let mut count = Self::default();
        for line in lines
            .iter()
            .filter_map(|line| line.strip_prefix("test result: "))
        {
            count.passed += number_before(line, " passed");
            count.failed += number_before(line, " failed");
            count.ignored += number_before(line, " ignored");
        }
        count
    }

    /// Fails when a test was ignored: it then proves nothing.
    pub fn require_none_ignored(self) -> Result<Self> {
        ensure!(
            self.ignored == 0,
            "{} ignored tests (also doc tests marked `ignore`)",
            self.ignored
        );
        Ok(self)
    }
}

fn number_before(line: &str, word: &str) -> u32 {
    let before = line
        .split(word)
        .next()
        .filter(|before| before.len() < line.len());
    let digits = before.and_then(|before| before.rsplit(' ').next());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_several_binaries_add_up() {
        let lines = [
            "running 2 tests",
            "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 17 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.2s",
        ];
        let count = Count::of(&lines.map(String::from));
        assert_eq!(
            count,
            Count {
                passed: 22,
                failed: 2,
                ignored: 1
            }
        );
        assert_eq!(
            count.require_none_ignored().unwrap_err().to_string(),
            "1 ignored tests (also doc tests marked `ignore`)"
        );
    }
}
