//! [`Event`]: something that happened, with whom and when, in 120 bytes.
//!
//! ```text
//!   0  time_ns u64                                     word 0
//!   8  kind u16 | flags u16 | slot u32                 word 1, from the low end
//!  16  generation u32 | instance u32                   word 2
//!  24  value u64                                       word 3
//!  32  detail u64                                      word 4
//!  40  label 64 B                                      words 5 to 12
//! 104  pid u32 | 0 u32                                 word 13
//! 112  table_id u64                                    word 14
//! ```
//! Contract: any words are an event; what a later version says that this one does not know is shown by
//! number.

mod field;
mod kind;

use core::fmt;

use bumpless_heartbeat::{Label, UnitSet};

pub use field::FieldValue;
pub use kind::EventKind;

use kind::Meaning;

/// How many words of 8 B an event is.
pub const EVENT_WORDS: usize = 15;

/// Something that happened.
///
/// ```
/// use bumpless_heartbeat::Label;
/// use bumpless_sidecar::{Event, EventKind};
///
/// let event = Event {
///     slot: 3,
///     generation: 2,
///     label: Label::new("resizer")?,
///     value: 7,
///     detail: 3,
///     ..Event::new(EventKind::Silent, 1_500_000_000)
/// };
/// assert_eq!(
///     event.to_string(),
///     "1.500000000 silent slot=3 generation=2 label=resizer lag_epochs=7 grace_epochs=3"
/// );
/// assert_eq!(Event::from_words(event.to_words()), event);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Event {
    /// When, by the clock of [`bumpless_substrate::clock`]; unit: ns.
    pub time_ns: u64,
    /// What.
    pub kind: EventKind,
    /// 0; bits are a later version's.
    pub flags: u16,
    /// To the owner of which slot, or which node of a pair; [`NO_SLOT`](Self::NO_SLOT): neither.
    pub slot: u32,
    /// In which generation of the slot; 0: none.
    pub generation: u32,
    /// Which observed instance says so, among those of its process; 0: none.
    pub instance: u32,
    /// See the kind.
    pub value: u64,
    /// See the kind.
    pub detail: u64,
    /// How the owner calls itself.
    pub label: Label,
    /// The process to which it happened; 0: none.
    pub pid: u32,
    /// Creation id of the table, or of what else has slots: with slot, generation and unit the name of a
    /// unit of work. 0: none.
    pub table_id: u64,
}

impl Event {
    /// The slot of an event that has nothing to do with one.
    pub const NO_SLOT: u32 = u32::MAX;

    /// An event of nobody.
    #[must_use]
    pub fn new(kind: EventKind, time_ns: u64) -> Self {
        Self {
            time_ns,
            kind,
            flags: 0,
            slot: Self::NO_SLOT,
            generation: 0,
            instance: 0,
            value: 0,
            detail: 0,
            label: Label::default(),
            pid: 0,
            table_id: 0,
        }
    }

    /// The same with `value` and `detail` as a set of units.
    #[must_use]
    pub const fn with_units(mut self, units: UnitSet) -> Self {
        self.value = units.bits() as u64;
        self.detail = (units.bits() >> 64) as u64;
        self
    }

    /// The set of units that `value` and `detail` are, if the kind says so.
    #[must_use]
    pub const fn units(&self) -> UnitSet {
        UnitSet::from_bits(self.value as u128 | (self.detail as u128) << 64)
    }

    /// The same with `value` and `detail` as a standby's epoch, and a code that the kind gives a meaning.
    #[must_use]
    pub const fn with_epoch(mut self, counter: u64, owner: u8, code: u8) -> Self {
        self.value = counter;
        self.detail = owner as u64 | (code as u64) << 8;
        self
    }

    /// What it says besides time and kind, name by name; what says nothing is left out. Cost: an allocation.
    #[must_use]
    pub fn fields(&self) -> Vec<(&'static str, FieldValue)> {
        use FieldValue::{Id, Number, Text, Units};
        let mut fields = Vec::new();
        let mut add = |name, value, says_something: bool| {
            if says_something {
                fields.push((name, value));
            }
        };
        add("slot", Number(self.slot.into()), self.slot != Self::NO_SLOT);
        add(
            "generation",
            Number(self.generation.into()),
            self.generation != 0,
        );
        add("label", Text(self.label), self.label != Label::default());
        add("pid", Number(self.pid.into()), self.pid != 0);
        add("instance", Number(self.instance.into()), self.instance != 0);
        match self.kind.meaning() {
            Meaning::Nothing => {}
            Meaning::One(name) => add(name, Number(self.value), true),
            Meaning::Two(first, second) => {
                add(first, Number(self.value), true);
                add(second, Number(self.detail), true);
            }
            Meaning::Units => add("units", Units(self.units()), true),
            Meaning::Epoch(code) => {
                add("epoch", Number(self.value), true);
                add("owner", Number(self.detail & 0xff), true);
                add(code, Number(self.detail >> 8), !code.is_empty());
            }
            Meaning::Unknown => {
                add("kind", Number(self.kind.number().into()), true);
                add("value", Number(self.value), true);
                add("detail", Number(self.detail), true);
            }
        }
        add("flags", Number(self.flags.into()), self.flags != 0);
        add("table", Id(self.table_id), self.table_id != 0);
        fields
    }

    /// How it lies in a ring.
    #[must_use]
    pub fn to_words(self) -> [u64; EVENT_WORDS] {
        let mut words = [0; EVENT_WORDS];
        words[0] = self.time_ns;
        words[1] = u64::from(self.kind.number())
            | u64::from(self.flags) << 16
            | u64::from(self.slot) << 32;
        words[2] = u64::from(self.generation) | u64::from(self.instance) << 32;
        words[3] = self.value;
        words[4] = self.detail;
        words[5..13].copy_from_slice(&self.label.to_words());
        words[13] = self.pid.into();
        words[14] = self.table_id;
        words
    }

    /// The event that lies in a ring as these words.
    #[must_use]
    pub fn from_words(words: [u64; EVENT_WORDS]) -> Self {
        Self {
            time_ns: words[0],
            kind: EventKind::from_u16(words[1] as u16),
            flags: (words[1] >> 16) as u16,
            slot: (words[1] >> 32) as u32,
            generation: words[2] as u32,
            instance: (words[2] >> 32) as u32,
            value: words[3],
            detail: words[4],
            label: Label::from_words(core::array::from_fn(|index| words[5 + index])),
            pid: words[13] as u32,
            table_id: words[14],
        }
    }
}

/// One line: the time in seconds, the name, and the fields.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SECOND_NS: u64 = 1_000_000_000;
        let (seconds, rest_ns) = (self.time_ns / SECOND_NS, self.time_ns % SECOND_NS);
        write!(f, "{seconds}.{rest_ns:09} {}", self.kind)?;
        for (name, value) in self.fields() {
            write!(f, " {name}={value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_field() -> Event {
        Event {
            time_ns: u64::MAX - 1,
            kind: EventKind::HandedBack,
            flags: 2,
            slot: 3,
            generation: 4,
            instance: 5,
            value: 1 << 6,
            detail: 1 << 7,
            label: Label::new("é\"=\n").unwrap(),
            pid: 8,
            table_id: 9,
        }
    }

    #[test]
    fn every_field_survives_and_is_said() {
        let event = every_field();
        assert_eq!(Event::from_words(event.to_words()), event);
        assert_eq!(
            event.to_string(),
            "18446744073.709551614 handed_back slot=3 generation=4 label=\"é\\\"=\\n\" pid=8 instance=5 \
             units={6, 71} flags=2 table=0000000000000009"
        );
    }

    #[test]
    fn any_words_are_an_event_that_can_be_shown() {
        let event = Event::from_words([u64::MAX; EVENT_WORDS]);
        assert_eq!(event.kind, EventKind::Other(u16::MAX));
        assert!(
            event
                .to_string()
                .contains("event 65535 generation=4294967295"),
            "{event}"
        );
        assert!(
            event
                .to_string()
                .contains("kind=65535 value=18446744073709551615")
        );
        let nothing = Event::from_words([0; EVENT_WORDS]);
        assert_eq!(
            nothing.to_string(),
            "0.000000000 event 0 slot=0 kind=0 value=0 detail=0"
        );
    }

    #[test]
    fn an_epoch_has_a_counter_an_owner_and_a_code() {
        let event = Event::new(EventKind::Promoted, 0).with_epoch(12, 1, 3);
        assert_eq!(
            event.to_string(),
            "0.000000000 promoted epoch=12 owner=1 cause=3"
        );
        let event = Event::new(EventKind::Resumed, 0).with_epoch(12, 1, 0);
        assert_eq!(event.to_string(), "0.000000000 resumed epoch=12 owner=1");
    }
}
