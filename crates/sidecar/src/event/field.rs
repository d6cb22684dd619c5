//! [`FieldValue`]: what one field of an event says, for text and for JSON.

use core::fmt;

use bumpless_heartbeat::{Label, UnitSet};

/// What a field says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValue {
    /// A number.
    Number(u64),
    /// A number that only names something: 16 hexadecimal digits.
    Id(u64),
    /// Units of work.
    Units(UnitSet),
    /// What somebody calls itself.
    Text(Label),
}

/// As in a line of text: a label of other characters than letters, digits and `._-/:@+` is quoted.
impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Id(id) => write!(f, "{id:016x}"),
            Self::Units(units) => write!(f, "{units:?}"),
            Self::Text(label) => {
                let text = label.to_string();
                let is_plain = text
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "._-/:@+".contains(c));
                if is_plain && !text.is_empty() {
                    f.write_str(&text)
                } else {
                    write!(f, "{text:?}")
                }
            }
        }
    }
}
