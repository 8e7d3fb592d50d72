//! Searches by relevance, with marked excerpts. The newest matches are ranked by how well they match the words. Works
//! the same for both databases, with the same words as in lists.

use serde_json::Value;
use shared::access::Principal;
use shared::api::{AuditQuery, DEFAULT_LIMIT, MAX_LIMIT, ReviewQuery};
use shared::inbox::ReviewOrder;
use shared::log::Entry;
use shared::review::Review;
use shared::search::{Excerpt, Found, Hit, Mark};

use super::words::{Words, each_place};
use super::{Error, Form, Store};

/// The number of characters of a text that are ranked.
const MAX_TEXT: usize = 20_000;
/// The number of newest matches after which no further page is read.
const RANKED: usize = 400;
/// The largest number of pages that are read; a page may have no matches.
const PAGES: usize = 3;
/// The largest number of excerpts of a hit, and the number of characters shown around the words.
const EXCERPTS: usize = 3;
const AROUND: usize = 60;
/// The weights of a word in a title, and in a prompt.
const TITLE: f64 = 4.0;
const PROMPT: f64 = 2.0;

impl Store {
    /// Returns the entries of the audit log that match and have the words, most relevant first.
    pub async fn search_audit(&self, query: &AuditQuery) -> Result<Found<Entry>, Error> {
        let Some(words) = Words::of(query.q.as_deref()) else { return Ok(nothing()) };
        let mut page_of = AuditQuery { limit: Some(MAX_LIMIT), ..query.clone() };
        let (mut found, mut more) = (Vec::new(), true);
        for _ in 0..PAGES {
            let page = self.audit(&page_of, Form::Whole).await?;
            found.extend(page.items);
            page_of.cursor = page.next_cursor;
            more = page_of.cursor.is_some();
            if !more || found.len() >= RANKED {
                break;
            }
        }
        let texts = |entry: &Entry| {
            let mut texts = vec![(1.0, entry.event.kind.as_str().to_owned())];
            texts.extend(entry.event.actor.iter().map(|actor| (1.0, actor.to_string())));
            entry.event.data.values().for_each(|value| add(value, &mut texts));
            texts
        };
        Ok(ranked(found, &words, query.limit, more, texts))
    }

    /// Returns the reviews that the viewer may see and that match and have the words, most relevant first.
    pub async fn search_reviews(&self, viewer: &Principal, query: &ReviewQuery) -> Result<Found<Review>, Error> {
        let Some(words) = Words::of(query.q.as_deref()) else { return Ok(nothing()) };
        let mut page_of = ReviewQuery { limit: Some(MAX_LIMIT), order: Some(ReviewOrder::Newest), ..query.clone() };
        let (mut found, mut more) = (Vec::new(), true);
        for _ in 0..PAGES {
            let page = self.reviews(viewer, &page_of).await?;
            found.extend(page.items);
            page_of.cursor = page.next_cursor;
            more = page_of.cursor.is_some();
            if !more || found.len() >= RANKED {
                break;
            }
        }
        let texts = |review: &Review| {
            let mut texts = vec![(TITLE, review.title.clone()), (PROMPT, review.prompt.clone())];
            texts.extend(review.flow_title.iter().map(|title| (1.0, title.clone())));
            texts.extend(review.node.iter().map(|node| (1.0, node.to_string())));
            texts.push((1.0, review.requested_by.to_string()));
            texts.extend(review.stakes.consequences.iter().map(|text| (1.0, text.clone())));
            for action in &review.actions {
                texts.push((1.0, action.name.clone()));
                action.arguments.values().for_each(|value| add(value, &mut texts));
            }
            review.items.iter().for_each(|item| add(&item.value, &mut texts));
            texts
        };
        Ok(ranked(found, &words, query.limit, more, texts))
    }
}

fn nothing<T>() -> Found<T> {
    Found { items: Vec::new(), at_least: false }
}

/// Adds every text and number in a value.
fn add(value: &Value, texts: &mut Vec<(f64, String)>) {
    match value {
        Value::String(text) => texts.push((1.0, text.clone())),
        Value::Number(number) => texts.push((1.0, number.to_string())),
        Value::Array(list) => list.iter().for_each(|one| add(one, texts)),
        Value::Object(members) => members.values().for_each(|one| add(one, texts)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Sorts matches by relevance. Equally relevant ones keep their order.
fn ranked<T>(
    found: Vec<T>,
    words: &Words,
    limit: Option<u32>,
    more: bool,
    texts: impl Fn(&T) -> Vec<(f64, String)>,
) -> Found<T> {
    let mut hits: Vec<(f64, Hit<T>)> = Vec::with_capacity(found.len());
    for item in found {
        let mut parts: Vec<(f64, Excerpt)> = Vec::new();
        for (weight, text) in texts(&item) {
            if let Some((score, excerpt)) = excerpt(beginning(&text), words)
                && !parts.iter().any(|(_, known)| *known == excerpt)
            {
                parts.push((weight * score, excerpt));
            }
        }
        parts.sort_by(|one, other| other.0.total_cmp(&one.0));
        let score = parts.iter().map(|(score, _)| score).sum();
        let excerpts = parts.into_iter().take(EXCERPTS).map(|(_, excerpt)| excerpt).collect();
        hits.push((score, Hit { item, excerpts }));
    }
    hits.sort_by(|one, other| other.0.total_cmp(&one.0));
    let limit = usize::try_from(limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT)).unwrap_or(usize::MAX);
    let at_least = more || hits.len() > limit;
    Found { items: hits.into_iter().take(limit).map(|(_, hit)| hit).collect(), at_least }
}

/// The part of a text that is ranked: ranking hundreds of values of megabytes each would block others.
fn beginning(text: &str) -> &str {
    let end = text.char_indices().nth(MAX_TEXT).map_or(text.len(), |(end, _)| end);
    &text[..end]
}

/// Returns the relevance of a text, with an excerpt around the words. `None` if it has none of them. A whole word
/// counts twice as much as a prefix, several words together more than each alone, and a short text more than a long
/// one.
fn excerpt(text: &str, words: &Words) -> Option<(f64, Excerpt)> {
    let mut places = Vec::new();
    let (mut all, mut score) = (0_u32, 0.0);
    let mut different: Vec<&str> = Vec::new();
    each_place(text, &mut |word, place| {
        all += 1;
        if let Some(wanted) = words.iter().find(|wanted| word.starts_with(wanted)) {
            score += if word == wanted { 2.0 } else { 1.0 };
            if !different.contains(&wanted) {
                different.push(wanted);
            }
            places.push(place);
        }
    });
    let first = places.first()?.start;
    let several = f64::from(u32::try_from(different.len()).unwrap_or(u32::MAX));
    let score = (score / (score + 2.0)) * several / (2.0 + f64::from(all)).ln();
    let begin = text[..first].char_indices().rev().nth(AROUND).map_or(0, |(at, _)| at);
    let end = text[first..].char_indices().nth(2 * AROUND).map_or(text.len(), |(at, _)| first + at);
    let cut = if begin > 0 { "…" } else { "" };
    let shown = format!("{cut}{}{}", &text[begin..end], if end < text.len() { "…" } else { "" });
    let characters =
        |to: usize| u32::try_from(text[begin..to].chars().count() + cut.chars().count()).unwrap_or(u32::MAX);
    let marks = places.into_iter().filter(|place| place.end <= end);
    let marks = marks.map(|place| Mark { start: characters(place.start), end: characters(place.end) }).collect();
    Some((score, Excerpt { text: shown, marks }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str, q: &str) -> Option<(f64, Vec<String>)> {
        let (score, excerpt) = excerpt(text, &Words::of(Some(q))?)?;
        let characters: Vec<char> = excerpt.text.chars().collect();
        let part = |mark: &Mark| characters[mark.start as usize..mark.end as usize].iter().collect();
        Some((score, excerpt.marks.iter().map(part).collect()))
    }

    #[test]
    fn the_words_that_were_found_are_marked() {
        let (_, marks) = marked("Größe: the REFUND of 審査, refunds", "refund grö 審").expect("found");
        assert_eq!(marks, ["Größe", "REFUND", "審", "refunds"]);
        let long = format!("{} needle {}", "hay ".repeat(500), "stack ".repeat(500));
        let (_, marks) = marked(&long, "needle").expect("found");
        assert_eq!(marks, ["needle"]);
        assert_eq!(marked("nothing here", "refund"), None);
    }

    #[test]
    fn a_text_that_says_more_of_it_comes_first() {
        let score = |text: &str| marked(text, "refund order").map_or(0.0, |(score, _)| score);
        assert!(score("refund order") > score("refund something"));
        assert!(score("refund order") > score("refunds orders"), "as it was typed");
        assert!(score("refund order") > score(&format!("refund order {}", "and so on ".repeat(50))), "a short text");
    }
}
