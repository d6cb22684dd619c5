//! What is wrong after a crash, by kind.

use std::fmt;

/// The four ways in which survivors can be let down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Somebody waits, or is kept waiting, for the dead.
    Hung,
    /// A unit, a death, or a whole table is gone.
    Lost,
    /// Something was given to two.
    Doubled,
    /// A slot or a path cannot be used again.
    Unclaimable,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Hung, Self::Lost, Self::Doubled, Self::Unclaimable];
}

/// Everything that was found wrong at one crash point.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings(pub Vec<(Kind, String)>);

impl Findings {
    /// Notes one thing.
    pub fn add(&mut self, kind: Kind, what: impl Into<String>) {
        self.0.push((kind, what.into()));
    }

    /// Notes what is not so.
    pub fn require(&mut self, kind: Kind, is_so: bool, what: impl FnOnce() -> String) {
        if !is_so {
            self.add(kind, what());
        }
    }

    /// Whether something of this kind was found.
    pub fn has(&self, kind: Kind) -> bool {
        self.0.iter().any(|(found, _)| *found == kind)
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (kind, what)) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{kind:?}: {what}")?;
        }
        Ok(())
    }
}
