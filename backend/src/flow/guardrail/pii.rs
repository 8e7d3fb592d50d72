//! `pii-redaction`: numbers that identify people or that people pay with, namely US social security numbers and card
//! numbers.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::code_safety::fold;
use crate::flow::work_limit;

/// Groups of digits, separated by at most three blanks, dots or dashes.
static DIGITS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"[0-9]+(?:[ .-]{1,3}[0-9]+)*").expect("a sound pattern"));
static GROUP: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"[0-9]+").expect("a sound pattern"));

/// The possible numbers of digits of a card number.
const CARD: std::ops::RangeInclusive<usize> = 13..=19;
/// The possible lengths of groups in a grouped card number. Only the last group may be shorter.
const GROUPED: std::ops::RangeInclusive<usize> = 3..=6;

/// The units of work per byte of a text with enough digits, to bring it into plain form.
const PER_BYTE: usize = 4;
/// The units of work per group of digits, with which several numbers may begin.
const PER_GROUP: usize = 128;

/// A text with digits, blanks and dashes in plain form, and for each byte its position in the original text.
struct Folded {
    text: String,
    places: Vec<usize>,
    end: usize,
}

impl Folded {
    fn new(text: &str) -> Self {
        let mut folded = Self { text: String::with_capacity(text.len()), places: Vec::new(), end: text.len() };
        for (place, c) in text.char_indices() {
            let Some(c) = fold(c) else { continue };
            let before = folded.text.len();
            folded.text.push(digit(c).unwrap_or(c));
            folded.places.resize(folded.places.len() + folded.text.len() - before, place);
        }
        folded
    }

    /// Converts a range to one of the original text, up to the next visible character.
    fn original(&self, range: &Range<usize>) -> Range<usize> {
        let place = |at: usize| self.places.get(at).copied().unwrap_or(self.end);
        place(range.start)..place(range.end)
    }
}

/// Converts a decimal digit of another script to ASCII, by blocks of ten that begin with the zero.
fn digit(c: char) -> Option<char> {
    const ZEROS: [u32; 6] = [0x660, 0x6f0, 0x966, 0x9e6, 0xe50, 0xff10];
    let code = u32::from(c);
    let zero = ZEROS.iter().find(|zero| (**zero..**zero + 10).contains(&code))?;
    char::from_digit(code - zero, 10)
}

/// Returns the ranges of such numbers in a text, with their kind.
pub fn find(text: &str) -> Vec<(Range<usize>, &'static str)> {
    if text.bytes().filter(u8::is_ascii_digit).count() < 9 && text.is_ascii() {
        work_limit::count(text.len() as u64);
        return Vec::new();
    }
    work_limit::count((text.len() * PER_BYTE + groups(text) * PER_GROUP) as u64);
    let folded = Folded::new(text);
    let mut found = Vec::new();
    for run in DIGITS.find_iter(&folded.text) {
        let groups: Vec<Range<usize>> =
            GROUP.find_iter(run.as_str()).map(|group| run.start() + group.start()..run.start() + group.end()).collect();
        let mut first = 0;
        while first < groups.len() {
            match at(&folded.text, &groups[first..]) {
                Some((count, what)) => {
                    let range = groups[first].start..groups[first + count - 1].end;
                    found.push((folded.original(&range), what));
                    first += count;
                }
                None => first += 1,
            }
        }
    }
    found
}

/// Counts the groups of digits of a text.
fn groups(text: &str) -> usize {
    let mut was_digit = false;
    text.chars().filter(|c| !std::mem::replace(&mut was_digit, c.is_numeric()) && c.is_numeric()).count()
}

/// Returns the number that begins with the first group: how many groups it has, and its kind.
fn at(text: &str, groups: &[Range<usize>]) -> Option<(usize, &'static str)> {
    if !stands_alone_before(text, groups[0].start) {
        return None;
    }
    let most = groups.len().min(*CARD.end());
    let mut counts = (1..=most).rev();
    if let Some(count) = counts.find(|count| is_card(text, &groups[..*count])) {
        return Some((count, "a card number"));
    }
    let three = groups.get(..3).filter(|three| is_social_security(text, three));
    three.map(|_| (3, "a social security number"))
}

/// Whether a number that begins here is not part of a word, a fraction or a longer number.
fn stands_alone_before(text: &str, start: usize) -> bool {
    let mut before = text[..start].chars().rev();
    match before.next() {
        Some(c) if c.is_alphanumeric() || c == '_' => false,
        Some('.' | ',') => !before.next().is_some_and(|c| c.is_ascii_digit()),
        _ => true,
    }
}

fn stands_alone_after(text: &str, end: usize) -> bool {
    !text[end..].chars().next().is_some_and(|c| c.is_alphanumeric() || c == '_')
}

fn is_card(text: &str, groups: &[Range<usize>]) -> bool {
    let digits: usize = groups.iter().map(ExactSizeIterator::len).sum();
    let (last, others) = match groups {
        [.., last] => (last, &groups[..groups.len() - 1]),
        [] => return false,
    };
    let grouped = others.iter().all(|group| GROUPED.contains(&group.len())) && last.len() <= *GROUPED.end();
    CARD.contains(&digits) && (others.is_empty() || grouped) && stands_alone_after(text, last.end) && {
        let number: String = groups.iter().map(|group| &text[group.clone()]).collect();
        is_of_a_network(&number) && luhn(&number)
    }
}

/// Whether card numbers can begin like this. Timestamps in milliseconds begin with 1, and one in ten would pass as a
/// card number.
fn is_of_a_network(number: &str) -> bool {
    match number.as_bytes().first() {
        Some(b'2') => (2221..=2720).contains(&number[..4].parse().unwrap_or(0)),
        Some(first) => (b'3'..=b'9').contains(first) && *first != b'7',
        None => false,
    }
}

/// Checks the check digit of card numbers (ISO/IEC 7812-1).
fn luhn(number: &str) -> bool {
    let doubled = |digit: u32| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let digits = number.chars().rev().filter_map(|c| c.to_digit(10)).enumerate();
    let sum: u32 = digits.map(|(place, digit)| if place % 2 == 1 { doubled(digit) } else { digit }).sum();
    sum.is_multiple_of(10)
}

/// Whether these are groups of 3, 2 and 4 digits in the ranges that have been issued.
fn is_social_security(text: &str, groups: &[Range<usize>]) -> bool {
    let [area, group, serial] = groups else { return false };
    let digits = |range: &Range<usize>| text[range.clone()].parse::<u32>().unwrap_or(0);
    let separators = [&text[area.end..group.start], &text[group.end..serial.start]];
    (area.len(), group.len(), serial.len()) == (3, 2, 4)
        && separators[0] == separators[1]
        && (1..900).contains(&digits(area))
        && digits(area) != 666
        && digits(group) > 0
        && digits(serial) > 0
        && stands_alone_after(text, serial.end)
        && !text[..area.start].trim_end_matches(['-', '.']).ends_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::find;

    fn found(text: &str) -> Vec<(&str, &'static str)> {
        find(text).into_iter().map(|(range, what)| (&text[range], what)).collect()
    }

    #[test]
    fn card_numbers_and_social_security_numbers_are_found_where_they_stand() {
        for number in [
            "4111111111111111",
            "4111 1111 1111 1111",
            "4111-1111-1111-1111",
            "4111.1111.1111.1111",
            "378282246310005",
            "3782 822463 10005",
            "5555555555554444",
            "2223003122003222",
            "6011111111111117",
            "4222222222222",
            "4111\u{a0}1111\u{2009}1111\u{202f}1111",
            "4111\u{2013}1111\u{2013}1111\u{2013}1111",
            "4111  1111  1111  1111",
            "４１１１１１１１１１１１１１１１",
            "4111\u{200b}111111111111",
            "٤١١١١١١١١١١١١١١١",
        ] {
            let text = format!("Paid with {number}, 12/27.");
            assert_eq!(found(&text), [(number, "a card number")], "{number}");
        }
        assert_eq!(found("4111 1111 1111 1111 12 27"), [("4111 1111 1111 1111", "a card number")]);
        assert_eq!(found("12 4111 1111 1111 1111"), [("4111 1111 1111 1111", "a card number")]);
        for number in ["078-05-1120", "078 05 1120", "078\u{2011}05\u{2011}1120"] {
            let text = format!("SSN: {number}.");
            assert_eq!(found(&text), [(number, "a social security number")], "{number}");
        }
        assert_eq!(found("078-05-1120 and 4111111111111111").len(), 2);
    }

    #[test]
    fn other_numbers_are_none() {
        for text in [
            "4111111111111112",
            "411111111111111",
            "1700000000000000",
            "1764000000001",
            "0000000000000000",
            "0.4111111111111111",
            "550e8400-e29b-41d4-a716-446655440000",
            "x4111111111111111",
            "4111111111111111x",
            "41111111111111111111111",
            "+1 (555) 010-9999",
            "2026-11-22 21:14:32",
            "IBAN DE02 1203 0000 0000 2020 51",
            "000-12-3456",
            "666-12-3456",
            "900-12-3456",
            "123-00-4567",
            "123-45-0000",
            "12-345-6789",
            "1123-45-6789",
            "123-45-67890",
            "9-123-45-6789",
            "2001 2005 2010 2024",
            "10.0.0.1 and 192.168.100.200",
            "",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }
}
