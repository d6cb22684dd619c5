#![cfg(bumpless_loom)]
