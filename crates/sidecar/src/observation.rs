//! [`Observation`]: one operation that somebody did, in 24 bytes.
//!
//! ```text
//!  0  instance_id u32 | op_kind u16 | flags u16      word 0, from the low end
//!  8  latency_ns u64                                 word 1
//! 16  producer_id u32 | value u32                    word 2
//! ```

/// How many words of 8 B an observation is.
pub const OBSERVATION_WORDS: usize = 3;

/// The number of the operation that an instance may tally: count in place, by one addition, and record now
/// and then as a sample.
pub const TALLIED_OP: u16 = 0;

/// One operation on one observed instance.
///
/// ```
/// use bumpless_sidecar::Observation;
/// let seen = Observation { instance_id: 3, op_kind: 1, flags: Observation::TIMED, latency_ns: 40, ..Observation::default() };
/// assert_eq!(Observation::from_words(seen.to_words()), seen);
/// assert_eq!(seen.latency(), Some(40));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Observation {
    /// Which instance, among those of its process.
    pub instance_id: u32,
    /// Which of the instance's operations; each type has its own numbers.
    pub op_kind: u16,
    /// [`CONTENDED`](Self::CONTENDED), [`TIMED`](Self::TIMED), [`TALLIED`](Self::TALLIED); other bits are a
    /// later version's.
    pub flags: u16,
    /// How long it took, if `TIMED`; unit: ns.
    pub latency_ns: u64,
    /// The thread that did it, by its number in the kernel.
    pub producer_id: u32,
    /// What else there is to say; each kind of operation has its own meaning for it.
    pub value: u32,
}

impl Observation {
    /// Flag: the operation met another one, and tried again or gave way.
    pub const CONTENDED: u16 = 1;
    /// Flag: `latency_ns` was measured.
    pub const TIMED: u16 = 1 << 1;
    /// Flag: a sample of the operations that the ring tallies, and counted there.
    pub const TALLIED: u16 = 1 << 2;

    /// How long it took, if that was measured; unit: ns.
    #[must_use]
    pub const fn latency(&self) -> Option<u64> {
        if self.flags & Self::TIMED == 0 {
            None
        } else {
            Some(self.latency_ns)
        }
    }

    /// How it lies in a ring.
    #[must_use]
    #[inline]
    pub const fn to_words(self) -> [u64; OBSERVATION_WORDS] {
        [
            self.instance_id as u64 | (self.op_kind as u64) << 32 | (self.flags as u64) << 48,
            self.latency_ns,
            self.producer_id as u64 | (self.value as u64) << 32,
        ]
    }

    /// The observation that lies in a ring as these words. Any words are one.
    #[must_use]
    pub const fn from_words(words: [u64; OBSERVATION_WORDS]) -> Self {
        let [what, latency_ns, by] = words;
        Self {
            instance_id: what as u32,
            op_kind: (what >> 32) as u16,
            flags: (what >> 48) as u16,
            latency_ns,
            producer_id: by as u32,
            value: (by >> 32) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const _: () = assert!(size_of::<Observation>() == 8 * OBSERVATION_WORDS);

    #[test]
    fn every_field_survives_at_its_limit() {
        let all = Observation {
            instance_id: u32::MAX - 1,
            op_kind: u16::MAX - 2,
            flags: u16::MAX - 4,
            latency_ns: u64::MAX - 8,
            producer_id: u32::MAX - 16,
            value: u32::MAX - 32,
        };
        assert_eq!(Observation::from_words(all.to_words()), all);
        assert_eq!(all.to_words()[0], 0xfffb_fffd_ffff_fffe);
    }
}
