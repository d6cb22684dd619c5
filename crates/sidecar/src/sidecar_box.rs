//! The box: a thing and its instruments, with the thing's own calls.
//!
//! Contract: a call of the box does what the same call of the inner thing does, gives the same answer,
//! and pushes one observation, or is tallied; some tell events. Nobody waits for an observer: a full ring
//! drops, and counts what it dropped. Who wants a call unobserved takes [`inner`](SidecarBox::inner).

use core::fmt::Debug;
use std::sync::Arc;

use bumpless_substrate::clock::monotonic_ns;

use crate::instance::{AdaptiveInstance, Instruments};
use crate::observation::TALLIED_OP;
use crate::policy::{NoMigrationPolicy, Policy};

/// What the box must know of a thing.
pub trait Observe {
    /// What it is, in one word: `table`, `watchdog`.
    const KIND: &'static str;

    /// What its box remembers between two calls: which news it has told.
    type Memory: Default + Debug;

    /// The name of an operation of it, by the number in its observations.
    fn op_name(number: u16) -> Option<&'static str>;

    /// Becomes what the tag asks for; nothing, for most.
    fn apply(&self, _tag: u32) {}
}

/// A thing that is observed.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("workers.tbl");
/// use bumpless_heartbeat::HeartbeatTable;
/// use bumpless_sidecar::{Scanner, SidecarBox, TableOp};
///
/// let table = HeartbeatTable::create(&path, 64)?;
/// let observed = SidecarBox::new(&table); // borrowed; an owned one goes as well
/// let mut scanner = Scanner::new();
/// let id = scanner.register(&observed);
///
/// let me = observed.register(std::process::id())?;
/// for _ in 0..1_000 {
///     observed.beat(me)?;
/// }
/// scanner.scan(1);
/// let stats = scanner.stats(id).unwrap();
/// assert_eq!((stats.op(TableOp::Beat).count, stats.dropped), (1_000, 0));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct SidecarBox<T: Observe> {
    pub(crate) inner: T,
    pub(crate) memory: T::Memory,
    pub(crate) instruments: Arc<Instruments>,
}

impl<T: Observe> SidecarBox<T> {
    /// With new instruments: a ring in the heap, and no events.
    #[must_use]
    pub fn new(inner: T) -> Self {
        Self::with_instruments(inner, Arc::new(Instruments::new()))
    }

    /// With instruments of one's own. Several things may share them: they are one instance then.
    #[must_use]
    pub fn with_instruments(inner: T, instruments: Arc<Instruments>) -> Self {
        Self {
            inner,
            memory: T::Memory::default(),
            instruments,
        }
    }

    /// The thing itself, for calls that nobody observes.
    #[must_use]
    pub fn inner(&self) -> &T {
        &self.inner
    }

    /// As [`inner`](Self::inner).
    #[must_use]
    pub fn inner_mut(&mut self) -> &mut T {
        &mut self.inner
    }

    /// The thing, observed no more.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.inner
    }

    /// One call: takes a new tag over, makes the call, and pushes what it was. One call in 256 is timed.
    #[inline]
    pub(crate) fn observed<R>(
        &self,
        op_kind: impl Into<u16>,
        value: u32,
        call: impl FnOnce(&T) -> R,
        is_contended: impl FnOnce(&R) -> bool,
    ) -> R {
        let instruments = &*self.instruments;
        instruments.follow(|tag| self.inner.apply(tag));
        if instruments.ring().sample_due() {
            return timed(
                instruments,
                op_kind.into(),
                value,
                || call(&self.inner),
                is_contended,
            );
        }
        let answer = call(&self.inner);
        instruments.observe(op_kind.into(), is_contended(&answer), value);
        answer
    }

    /// As [`observed`](Self::observed), for the operation that costs so little that a record of each would be
    /// dearer than the thing itself: it is tallied by one locked addition, and one in 256 is timed and
    /// recorded as a sample. One that fails is recorded, and not tallied.
    #[inline(always)]
    pub(crate) fn tallied<E>(
        &self,
        value: u32,
        call: impl Fn(&T) -> Result<(), E>,
        is_contended: impl Fn(&Result<(), E>) -> bool,
    ) -> Result<(), E> {
        let instruments = &*self.instruments;
        instruments.follow(|tag| self.inner.apply(tag));
        let answer = if instruments.ring().tally_sample_due() {
            sampled(instruments, value, || call(&self.inner))
        } else {
            call(&self.inner)
        };
        match answer {
            Ok(()) => {
                instruments.ring().tally();
                Ok(())
            }
            Err(error) => failed(instruments, value, error, is_contended),
        }
    }
}

#[cold]
#[inline(never)]
fn failed<E>(
    instruments: &Instruments,
    value: u32,
    error: E,
    is_contended: impl Fn(&Result<(), E>) -> bool,
) -> Result<(), E> {
    let answer = Err(error);
    instruments.observe(TALLIED_OP, is_contended(&answer), value);
    answer
}

#[cold]
#[inline(never)]
fn sampled<E>(
    instruments: &Instruments,
    value: u32,
    call: impl FnOnce() -> Result<(), E>,
) -> Result<(), E> {
    let began_ns = monotonic_ns();
    let answer = call();
    if answer.is_ok() {
        instruments.observe_sample(value, monotonic_ns().saturating_sub(began_ns));
    }
    answer
}

#[cold]
#[inline(never)]
pub(crate) fn timed<R>(
    instruments: &Instruments,
    op_kind: u16,
    value: u32,
    call: impl FnOnce() -> R,
    is_contended: impl FnOnce(&R) -> bool,
) -> R {
    let began_ns = monotonic_ns();
    let answer = call();
    let latency_ns = monotonic_ns().saturating_sub(began_ns);
    instruments.observe_timed(op_kind, is_contended(&answer), value, latency_ns);
    answer
}

impl<T: Observe> AdaptiveInstance for SidecarBox<T> {
    fn instruments(&self) -> &Arc<Instruments> {
        &self.instruments
    }

    fn make_policy(&self) -> Box<dyn Policy> {
        Box::new(NoMigrationPolicy)
    }

    fn apply_migration(&self, tag: u32) {
        self.inner.apply(tag);
    }
}

/// The operations of a thing: an enum, the numbers in observations, and names for people.
macro_rules! operations {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $number:literal, $text:literal;)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum $name {
            $($(#[$doc])* $variant = $number,)*
        }

        impl $name {
            /// Its name, in snake case.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            /// The name of the operation with this number.
            #[must_use]
            pub const fn name_of(number: u16) -> Option<&'static str> {
                match number {
                    $($number => Some($text),)*
                    _ => None,
                }
            }
        }

        impl From<$name> for u16 {
            fn from(op: $name) -> Self {
                op as Self
            }
        }
    };
}
pub(crate) use operations;
