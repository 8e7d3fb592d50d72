//! Both kinds of search find what the crate `regex` finds, and stop when their work is spent.

use std::ops::Range;

use regex::Regex;

use super::{Pattern, Work, WorkExhausted};

const LARGE: usize = 1024 * 1024;

fn places(pattern: &str, text: &str, work: u64) -> Result<Vec<Range<usize>>, WorkExhausted> {
    let pattern = Pattern::with_places(pattern, LARGE).expect("a pattern");
    pattern.find_all(&mut pattern.scratch(), text, &mut Work::new(work))
}

#[test]
fn searches_find_what_the_crate_finds() {
    let patterns = [
        "a",
        "a+",
        "a+?",
        "ab|a",
        "a|ab",
        "(?:a|ab)(?:c|bcd)",
        "^a",
        "a$",
        "(?m)^a",
        "(?m)a$",
        r"\ba\w*\b",
        r"\b",
        r"\B",
        r"\d+\s*(?:EUR|USD)|\d{4}",
        r"(?i)project\s+falcon",
        "[^a]",
        ".",
        "(?s).",
        "ä",
        "[ä-ü]+",
        r"\w+@\w+",
        r"a*?b",
        "(?:)a*b",
        r"(?-u:\b)a",
        r"\pL+",
        "€|a",
        "x*",
        "(?:x|y)*x(?:x|y){3}z",
        r"(?i)straße|k",
    ];
    let texts = [
        "",
        "a",
        "aab abcd",
        "ab\nab\na",
        "12345 EUR 1234",
        "Project  Falcon, project falcon",
        "ännä über a€ 12 ab",
        "K k ſ STRASSE",
        "ana@example.com, öna@x",
        "xyxxyxyz xxxxz",
        "\u{1f600}a\u{1f600}",
        "äb1234USD é1234",
    ];
    for pattern in patterns {
        let expected = Regex::new(pattern).expect("a pattern");
        for text in texts {
            let all: Vec<_> = expected.find_iter(text).map(|found| found.range()).collect();
            assert_eq!(places(pattern, text, u64::MAX), Ok(all.clone()), "{pattern} in {text:?}");
            let compiled = Pattern::with_places(pattern, LARGE).expect("a pattern");
            let (mut scratch, mut work) = (compiled.scratch(), Work::new(u64::MAX));
            assert_eq!(compiled.is_match(&mut scratch, text, &mut work), Ok(!all.is_empty()), "{pattern} in {text:?}");
            // The slow search finds the same range.
            let first = compiled.followed(&mut scratch, text, 0, false, &mut work).expect("enough work");
            assert_eq!(first, expected.find(text).map(|found| found.range()), "{pattern} in {text:?}");
        }
    }
}

#[test]
fn work_grows_with_what_is_read_and_not_with_the_rest_of_a_text() {
    let used = |pattern, text: &str| {
        let pattern = Pattern::with_places(pattern, LARGE).expect("a pattern");
        let mut work = Work::new(u64::MAX);
        pattern.find_all(&mut pattern.scratch(), text, &mut work).expect("enough work");
        u64::MAX - work.left()
    };
    let plain = used("ab", &"ab ".repeat(20_000));
    assert!(plain < 200_000, "each byte is read a few times: {plain}");
    assert!(used(r"\bab\b", &"äb ab ".repeat(5_000)) < 500_000, "the slow way too");
    let again = used(r"\d+EUR|\d{4}", &"1".repeat(8_000));
    assert!(again > 1_000_000, "what is read again counts again: {again}");
}

#[test]
fn a_search_ends_when_its_work_is_spent() {
    assert_eq!(places(r"\d+\s*(?:EUR|USD)|\d{4}", &"1".repeat(50_000), 100_000), Err(WorkExhausted));
    let text: String = (0..100_000_u32)
        .map(|n| if (n.wrapping_mul(2_654_435_761) >> 16).count_ones() % 2 == 0 { 'x' } else { 'y' })
        .collect();
    let pattern = Pattern::new("^(x|y)*x(x|y){1000}z", LARGE).expect("a pattern");
    let mut work = Work::new(3_000_000);
    assert_eq!(pattern.is_match(&mut pattern.scratch(), &text, &mut work), Err(WorkExhausted));
    assert_eq!(work.left(), 0);
    let pattern = Pattern::new(r"\bx(?:x|y){300}z", LARGE).expect("a pattern");
    assert_eq!(
        pattern.is_match(&mut pattern.scratch(), &format!("ä{text}"), &mut Work::new(10_000)),
        Err(WorkExhausted)
    );
}

#[test]
fn what_is_no_pattern_says_why() {
    assert!(Pattern::new("(a", LARGE).is_err_and(|why| format!("{why:?}").contains("unclosed group")));
    assert_eq!(Pattern::new(r"\w{500}", 64 * 1024).err(), Some(super::BadPattern::TooLarge));
}
