//! Files of arbitrary bytes.

use bumpless_substrate::region::{Region, RegionError};
use proptest::prelude::*;

use crate::scene::{AT_BOOT_ID, AT_VERSION, Scene, TABLE, overwrite};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Arbitrary bytes are refused: they do not have the mark.
    #[test]
    fn arbitrary_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..5000)) {
        let scene = Scene::new();
        std::fs::write(scene.path(), &bytes).unwrap();
        let error = Region::attach(&scene.path(), &TABLE).unwrap_err();
        let refused = matches!(error, RegionError::Length { .. } | RegionError::Magic { .. });
        prop_assert!(refused, "{}", error);
        prop_assert_eq!(std::fs::read(scene.path()).unwrap(), bytes);
    }

    /// A preamble with some bytes changed is refused unless only ids were changed: then the region
    /// is mapped with its true length, or called stale.
    #[test]
    fn a_damaged_preamble_is_refused_or_harmless(
        damage in proptest::collection::vec((0_u64..64, any::<u8>()), 1..6),
        len in proptest::option::of(0_u64..9000),
    ) {
        let scene = Scene::new().with_region();
        let before = std::fs::read(scene.path()).unwrap();
        for (at, byte) in &damage {
            overwrite(&scene.path(), *at, &[*byte]);
        }
        if let Some(len) = len {
            let file = std::fs::File::options().write(true).open(scene.path()).unwrap();
            file.set_len(len).unwrap();
        }
        let after = std::fs::read(scene.path()).unwrap();
        let same = |range: std::ops::Range<usize>| {
            before.get(range.clone()) == after.get(range)
        };
        match Region::attach(&scene.path(), &TABLE) {
            Ok(region) => {
                prop_assert!(same(0..56) && after.len() == before.len());
                prop_assert_eq!(region.region_len(), 4160);
            }
            Err(RegionError::StaleBoot { .. }) => {
                prop_assert!(same(0..AT_BOOT_ID as usize) && !same(AT_BOOT_ID as usize..56));
            }
            Err(RegionError::Version { found, wanted: 3, .. }) => {
                let at = AT_VERSION as usize;
                prop_assert_eq!(&found.to_ne_bytes()[..], &after[at..at + 4]);
            }
            Err(_) => prop_assert!(!same(0..40) || after.len() != before.len()),
        }
    }
}
