//! What the fuzz targets do, for some random bytes each: here they are compiled with everything else, and a
//! gross fault is found without a fuzzer.

use std::panic::catch_unwind;

use proptest::collection::vec;
use proptest::prelude::*;

#[path = "../../../../fuzz/exercise.rs"]
mod exercise;

/// Whether it came to an end that is none of its assertions'.
fn ends_well(work: fn(&[u8]), bytes: &[u8]) -> bool {
    catch_unwind(|| work(bytes)).is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_file_harms_who_attaches(bytes in vec(any::<u8>(), 0..1_024)) {
        prop_assert!(ends_well(exercise::attach, &bytes));
    }

    #[test]
    fn no_bytes_in_a_table_harm_any_call(bytes in vec(any::<u8>(), 0..256)) {
        prop_assert!(ends_well(exercise::every_call, &bytes));
    }

    #[test]
    fn a_frame_has_one_encoding(bytes in vec(any::<u8>(), 0..256)) {
        prop_assert!(ends_well(exercise::frame, &bytes));
    }

    #[test]
    fn parts_that_come_together_have_their_digest(bytes in vec(any::<u8>(), 0..1_024)) {
        prop_assert!(ends_well(exercise::parts, &bytes));
    }
}
