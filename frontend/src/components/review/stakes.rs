//! What is at stake, as tags and sentences; for a whole review, or for one of its calls.

use leptos::prelude::*;
use shared::definition::{Severity, Stakes};

use crate::components::inert::inert;
use crate::state::words;

/// What is at stake, as CSS classes and texts of tags. `category` is in words.
pub fn at_stake(stakes: &Stakes, category: Option<String>) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    match stakes.severity {
        Severity::Critical => facts.push(("tag stop", "critical".to_owned())),
        Severity::High => facts.push(("tag warn", "high".to_owned())),
        Severity::Medium => {}
        Severity::Low => facts.push(("tag", "low".to_owned())),
    }
    if stakes.reversible == Some(false) {
        facts.push(("tag stop", "cannot be undone".to_owned()));
    }
    facts.extend(category.map(|category| ("tag", category)));
    let cost = stakes.estimated_cost.as_ref();
    facts.extend(cost.map(|cost| ("tag warn", format!("about {}", words::amount(cost.amount, &cost.currency)))));
    facts
}

/// The tags, and the consequences beside them. Nothing if nothing is said.
pub fn stakes(stakes: &Stakes, category: Option<String>) -> Option<AnyView> {
    let tags = at_stake(stakes, category);
    (!tags.is_empty() || !stakes.consequences.is_empty()).then(|| {
        let tags = tags.into_iter().map(|(class, text)| view! { <span class=class>{inert(&text)}</span> });
        let follows = stakes.consequences.iter().map(|text| view! { <span class="muted">{inert(text)}</span> });
        view! { <div class="facts">{tags.collect_view()}{follows.collect_view()}</div> }.into_any()
    })
}
