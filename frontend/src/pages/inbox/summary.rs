//! The count of reviews: beside the heading of the inbox, and announced when more arrive.

use leptos::prelude::*;

use crate::client::{Live, ReviewList};
use crate::state::inbox::{Inbox, Numbers};
use crate::state::words::{count, counted};

#[component]
pub fn Summary(
    filtered: Memo<bool>,
    /// The number of reviews in the list; `None` if unknown.
    total: Memo<Option<u64>>,
) -> impl IntoView {
    let (live, list) = (expect_context::<Live>(), expect_context::<ReviewList>());
    move || {
        let Some(numbers) = live.inbox.with(Inbox::numbers) else { return String::new() };
        let at_least = list.facets.with(|facets| facets.as_ref().is_some_and(|facets| facets.at_least));
        match total.get().filter(|_| filtered.get()) {
            Some(total) => format!("{} of {}", counted(total, at_least), numbers.says()),
            None => numbers.says_mine(),
        }
    }
}

/// Announces arriving reviews to screen readers; those that arrive together are announced once.
#[component]
pub fn Arrivals() -> impl IntoView {
    let live = expect_context::<Live>();
    let arrivals = Memo::new(move |before: Option<&(Option<Numbers>, String)>| {
        let now = live.inbox.with(Inbox::numbers);
        let text = match (before, now) {
            (Some((Some(known), _)), Some(now)) if now.pending > known.pending => {
                let number = usize::try_from(now.pending - known.pending).unwrap_or(usize::MAX);
                format!("{} arrived, {}", count(number, "review", "reviews"), now.says())
            }
            // The text stays until there is a new one: screen readers would miss text that is removed at once.
            (Some((known, text)), _) if now == *known => text.clone(),
            _ => String::new(),
        };
        (now, text)
    });
    view! { <span class="sr" role="status" aria-live="polite">{move || arrivals.get().1}</span> }
}
