//! The libFuzzer binary: runs the target that `COUNTERSIGN_FUZZ_TARGET` names. `cargo xtask fuzz` builds and starts it.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("COUNTERSIGN_FUZZ_TARGET").unwrap_or_default();
    let target = fuzz::TARGETS.iter().find(|target| target.name == name);
    target.unwrap_or_else(|| panic!("COUNTERSIGN_FUZZ_TARGET names no target: {name:?}")).run
});

fuzz_target!(|data: &[u8]| (*TARGET)(data));
