//! The promises of `check`: every mistake is found at once, at its line and column.

use std::fmt::Write;

use super::*;

/// `line:column code message` of every mistake, and of every warning with `?`.
fn found(source: &str) -> Vec<String> {
    let checked = check(source);
    let line = |mark: &str, m: &Mistake| {
        format!("{mark}{}:{} {} {}", m.line.unwrap_or(0), m.column.unwrap_or(0), m.code, m.message)
    };
    let errors = checked.errors.iter().map(|mistake| line("", mistake));
    errors.chain(checked.warnings.iter().map(|mistake| line("?", mistake))).collect()
}

#[test]
fn the_example_flows_have_no_mistakes_and_nothing_doubtful() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../flows");
    let mut files = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let source = std::fs::read_to_string(&path).unwrap();
        assert_eq!(found(&source), Vec::<String>::new(), "{}", path.display());
        let flow = check(&source).flow.unwrap();
        assert_eq!(path.file_stem().unwrap().to_str(), Some(flow.id.as_str()), "a file is named as its flow");
        assert!(graph(&flow).nodes.len() >= flow.nodes.len());
        let again = check(&serde_json::to_string(&flow).unwrap());
        assert_eq!(again.flow, Some(flow.clone()), "{:?}", again.errors);
        assert!(Compiled::new(flow, 1).is_ok());
        files += 1;
    }
    assert!(files >= 5);
}

#[test]
fn show() {
    let mut out = String::new();
    for source in std::fs::read_to_string("/tmp/bad.txt").unwrap().split("\n=====\n") {
        writeln!(out, "----\n{source}\n>>>>").unwrap();
        for line in found(source) {
            writeln!(out, "{line}").unwrap();
        }
    }
    std::fs::write("/tmp/bad.out", out).unwrap();
}
