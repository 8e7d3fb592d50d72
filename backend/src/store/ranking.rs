//! Searches by relevance, with marked excerpts. The newest matches are ranked by how well they match the words. Works
//! the same for both databases, with the same words as in lists.

use std::collections::HashSet;

use serde_json::Value;
use shared::access::Principal;
use shared::api::{AuditQuery, DEFAULT_LIMIT, MAX_LIMIT, ReviewQuery};
use shared::inbox::ReviewOrder;
use shared::log::Entry;
use shared::review::Review;
use shared::search::{Excerpt, Hit, Mark, SearchResults};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::driver_error::DriverError;
use super::words::{Words, each_place};
use super::{Error, Form, Store};

/// The number of characters of a text that are ranked.
const MAX_TEXT: usize = 20_000;
/// The number of texts of a match that are ranked, and of their bytes.
const MAX_TEXTS: usize = 1_000;
const MAX_BYTES: usize = 256 * 1024;
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
    pub async fn search_audit(&self, query: &AuditQuery) -> Result<SearchResults<Entry>, Error> {
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
            let mut texts = Texts::default();
            texts.add(1.0, entry.event.kind.as_str());
            entry.event.actor.iter().for_each(|actor| texts.add(1.0, &actor.to_string()));
            entry.event.data.values().for_each(|value| texts.add_value(value));
            texts
        };
        off_thread(found, words, query.limit, more, texts).await
    }

    /// Returns the reviews that the viewer may see and that match and have the words, most relevant first.
    pub async fn search_reviews(
        &self,
        viewer: &Principal,
        query: &ReviewQuery,
    ) -> Result<SearchResults<Review>, Error> {
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
            let mut texts = Texts::default();
            texts.add(TITLE, &review.title);
            texts.add(PROMPT, &review.prompt);
            review.flow_title.iter().for_each(|title| texts.add(1.0, title));
            review.node.iter().for_each(|node| texts.add(1.0, node));
            texts.add(1.0, &review.requested_by);
            review.stakes.consequences.iter().for_each(|text| texts.add(1.0, text));
            for action in &review.actions {
                texts.add(1.0, &action.name);
                action.arguments.values().for_each(|value| texts.add_value(value));
            }
            review.items.iter().for_each(|item| texts.add_value(&item.value));
            texts
        };
        off_thread(found, words, query.limit, more, texts).await
    }
}

fn nothing<T>() -> SearchResults<T> {
    SearchResults { items: Vec::new(), at_least: false }
}

/// The texts of a match that are ranked, with their weights. Those that exceed a limit are left out: a match may have
/// a hundred thousand.
#[derive(Default)]
struct Texts {
    texts: Vec<(f64, String)>,
    bytes: usize,
}

impl Texts {
    /// Adds the beginning of a text.
    fn add(&mut self, weight: f64, text: &str) {
        if self.is_full() {
            return;
        }
        let text = beginning(text);
        let text = &text[..text.floor_char_boundary(MAX_BYTES - self.bytes)];
        self.bytes += text.len();
        self.texts.push((weight, text.to_owned()));
    }

    /// Adds every text and number in a value.
    fn add_value(&mut self, value: &Value) {
        if self.is_full() {
            return;
        }
        match value {
            Value::String(text) => self.add(1.0, text),
            Value::Number(number) => self.add(1.0, &number.to_string()),
            Value::Array(list) => list.iter().for_each(|one| self.add_value(one)),
            Value::Object(members) => members.values().for_each(|one| self.add_value(one)),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn is_full(&self) -> bool {
        self.texts.len() >= MAX_TEXTS || self.bytes >= MAX_BYTES
    }
}

/// Limits how many searches are ranked at the same time.
static RANKING: Semaphore = Semaphore::const_new(2);

/// Ranks matches on a blocking thread, because many long ones would delay other requests.
async fn off_thread<T: Send + 'static>(
    found: Vec<T>,
    words: Words,
    limit: Option<u32>,
    more: bool,
    texts: impl Fn(&T) -> Texts + Send + 'static,
) -> Result<SearchResults<T>, Error> {
    let permit = RANKING.acquire().await;
    let work = move || {
        let _permit = permit;
        ranked(found, &words, limit, more, texts)
    };
    Ok(spawn_blocking(work).await.map_err(|_| DriverError::Interrupted)?)
}

/// Sorts matches by relevance. Equally relevant ones keep their order.
fn ranked<T>(
    found: Vec<T>,
    words: &Words,
    limit: Option<u32>,
    more: bool,
    texts: impl Fn(&T) -> Texts,
) -> SearchResults<T> {
    let mut hits: Vec<(f64, Hit<T>)> = Vec::with_capacity(found.len());
    for item in found {
        let mut parts: Vec<(f64, Excerpt)> = Vec::new();
        let mut known = HashSet::new();
        for (weight, text) in texts(&item).texts {
            if let Some((score, excerpt)) = excerpt(&text, words)
                && known.insert(excerpt.text.clone())
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
    SearchResults { items: hits.into_iter().take(limit).map(|(_, hit)| hit).collect(), at_least }
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
    fn a_match_with_very_many_texts_is_ranked_by_the_first_of_them() {
        let item = serde_json::json!(vec!["refund"; 90_000]);
        let mut texts = Texts::default();
        texts.add_value(&item);
        assert_eq!(texts.texts.len(), MAX_TEXTS);
        texts.add(TITLE, "refund");
        assert_eq!(texts.texts.len(), MAX_TEXTS);

        let mut texts = Texts::default();
        texts.add_value(&serde_json::json!(vec!["é".repeat(30_000); 100]));
        assert_eq!((texts.bytes, texts.texts.len()), (MAX_BYTES, 7), "six of 40,000 bytes, and a part of the next");
    }

    #[test]
    fn a_match_shows_its_best_excerpts_once_each() {
        let words = Words::of(Some("refund")).expect("words");
        let texts = |(): &()| {
            let mut texts = Texts::default();
            for text in ["refund", "refund", "the refund", "a refund of it", "refunds and so on"] {
                texts.add(1.0, text);
            }
            texts
        };
        let found = ranked(vec![()], &words, None, false, texts);
        let shown: Vec<_> = found.items[0].excerpts.iter().map(|excerpt| excerpt.text.as_str()).collect();
        assert_eq!(shown, ["refund", "the refund", "a refund of it"]);
    }

    #[test]
    fn a_text_that_says_more_of_it_comes_first() {
        let score = |text: &str| marked(text, "refund order").map_or(0.0, |(score, _)| score);
        assert!(score("refund order") > score("refund something"));
        assert!(score("refund order") > score("refunds orders"), "as it was typed");
        assert!(score("refund order") > score(&format!("refund order {}", "and so on ".repeat(50))), "a short text");
    }
}
