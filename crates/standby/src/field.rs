//! Records as bytes: each number at its offset, and blocks of them without a gap.
//!
//! Contract: all numbers are little-endian, whatever the machine. That the fields of a block follow each
//! other and fill it holds at compile time.

use std::marker::PhantomData;

/// An unsigned number of this type, little-endian, at a fixed offset.
#[derive(Debug)]
pub struct Field<T> {
    at: usize,
    number: PhantomData<T>,
}

/// An unsigned number of a fixed width.
pub trait Number: Sized {
    /// From the little-endian bytes at `at`, which the caller's array has.
    fn read(bytes: &[u8], at: usize) -> Self;

    /// To there.
    fn write(self, bytes: &mut [u8], at: usize);
}

macro_rules! number {
    ($($number:ty),+) => {$(
        impl Number for $number {
            fn read(bytes: &[u8], at: usize) -> Self {
                let mut number = [0; size_of::<Self>()];
                number.copy_from_slice(&bytes[at..at + size_of::<Self>()]);
                Self::from_le_bytes(number)
            }

            fn write(self, bytes: &mut [u8], at: usize) {
                bytes[at..at + size_of::<Self>()].copy_from_slice(&self.to_le_bytes());
            }
        }
    )+};
}

number!(u8, u16, u32, u64);

impl<T: Number> Field<T> {
    pub const fn at(at: usize) -> Self {
        Self {
            at,
            number: PhantomData,
        }
    }

    /// Where it starts and where it ends.
    pub const fn span(&self) -> (usize, usize) {
        (self.at, self.at + size_of::<T>())
    }

    /// `bytes` has at least the length that the layout of the field asserts.
    pub fn get(&self, bytes: &[u8]) -> T {
        T::read(bytes, self.at)
    }

    pub fn put(&self, bytes: &mut [u8], value: T) {
        value.write(bytes, self.at);
    }
}

/// Whether each span starts where the one before ends, from 0 to `len`.
pub const fn fill(spans: &[(usize, usize)], len: usize) -> bool {
    let (mut end, mut index) = (0, 0);
    while index < spans.len() {
        if spans[index].0 != end {
            return false;
        }
        end = spans[index].1;
        index += 1;
    }
    end == len
}

/// Declares a block: a module with a constant for each field, and the assertion that they fill it.
macro_rules! block {
    ($name:ident, $len:expr; $($field:ident: $number:ty = $at:expr,)+) => {
        pub mod $name {
            use $crate::field::Field;
            $(pub const $field: Field<$number> = Field::at($at);)+
        }
        const _: () = assert!($crate::field::fill(&[$($name::$field.span()),+], $len));
    };
}
pub(crate) use block;
