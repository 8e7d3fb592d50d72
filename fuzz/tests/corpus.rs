//! Replays the corpus, which includes every input that ever failed: each input must pass its target.

use std::fs;
use std::path::Path;

use fuzz::TARGETS;

#[test]
fn every_input_of_the_corpus_passes_its_target() {
    for target in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
        let mut inputs: Vec<_> = fs::read_dir(&folder)
            .expect("a corpus for each target")
            .map(|entry| entry.expect("readable").path())
            .collect();
        inputs.sort();
        assert!(!inputs.is_empty(), "{} has no corpus", target.name);
        for input in inputs {
            // The name is shown before, since a stack overflow aborts without naming the input.
            println!("{} {}", target.name, input.display());
            (target.run)(&fs::read(&input).expect("readable"));
        }
    }
}

#[test]
fn every_folder_of_the_corpus_belongs_to_a_target() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for entry in fs::read_dir(corpus).expect("a corpus") {
        let name = entry.expect("readable").file_name();
        assert!(TARGETS.iter().any(|target| name == target.name), "{name:?} is no target");
    }
}
