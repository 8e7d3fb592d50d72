//! The filter of the audit log, and its controls.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use shared::api::AuditQuery;
use shared::client::query_string;
use shared::log::{EntryKind, ReviewAct};
use shared::time::Timestamp;

use crate::components::glyph::Glyph;
use crate::components::list_filter::{DayFields, FilterParts, Filters, WordsField};
use crate::components::listeners::while_shown;
use crate::components::time::begin_of_day;
use crate::state::{days, words};

/// The prefix of acts on reviews in the menu of events; other values are kinds of entries.
const ACT: &str = "act:";
/// The choices at the top of the menu: label and value.
const OFTEN: [(&str, &str); 5] = [
    ("Any event", ""),
    ("Decisions", "act:decision"),
    ("Votes", "act:vote"),
    ("Tool calls", "tool.executed"),
    ("Flows saved", "flow.saved"),
];

/// The filter in the address. Days are in the reader's time zone, as the times of the rows are; both ends are included.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditFilter {
    from: Option<String>,
    to: Option<String>,
    actor: Option<String>,
    kind: Option<String>,
    act: Option<String>,
    run: Option<String>,
    review: Option<String>,
    q: Option<String>,
}

impl AuditFilter {
    /// The request for the filtered entries.
    pub fn query(&self) -> AuditQuery {
        self.query_by(begin_of_day)
    }

    /// Like [`Self::query`], with a function that returns the start of a day, as in [`days::span`].
    fn query_by(&self, begin: fn(u32, u32, u32) -> Option<Timestamp>) -> AuditQuery {
        let (from, to) = days::span(self.from.as_deref(), self.to.as_deref(), begin);
        AuditQuery {
            from,
            to,
            actor: self.actor.clone(),
            kind: self.kind.clone(),
            act: self.act.clone(),
            run: self.run.clone(),
            review: self.review.clone(),
            q: self.q.clone(),
            ..AuditQuery::default()
        }
    }

    /// The address of a file with the same entries.
    pub fn export(&self, format: &str) -> String {
        let query = query_string(&self.query());
        let rest = query.strip_prefix('?').map(|rest| format!("&{rest}")).unwrap_or_default();
        format!("/api/v1/audit/export?format={format}{rest}")
    }

    /// The selected event as one word: `act:vote` for an act on reviews, otherwise the kind of entry.
    fn event(&self) -> String {
        let act = self.act.as_ref().map(|act| format!("{ACT}{act}"));
        act.or_else(|| self.kind.clone()).unwrap_or_default()
    }

    fn set_event(&mut self, event: Option<String>) {
        let act = event.as_ref().and_then(|event| event.strip_prefix(ACT)).map(str::to_owned);
        self.kind = event.filter(|_| act.is_none());
        self.act = act;
    }
}

/// The controls of the filter.
#[component]
pub fn AuditFilters(
    filter: Memo<AuditFilter>,
    /// Called with another filter.
    go: Callback<AuditFilter>,
) -> impl IntoView {
    let parts = FilterParts::of(filter, go);
    let set_event = move |event: String| {
        let mut next = filter.get_untracked();
        next.set_event(Some(event).filter(|event| !event.is_empty()));
        go.run(next);
    };
    let chip = move |name: &'static str| {
        parts.get(name).map(|value| {
            view! {
                <button class="chip" aria-pressed="true" on:click=move |_| parts.set(name, "")>
                    {name}" "<span class="mono">{words::tail(value)}</span>
                    " "<Glyph icon=icondata::LuX/><span class="sr">"remove this filter"</span>
                </button>
            }
        })
    };
    let event = Memo::new(move |_| filter.with(AuditFilter::event));
    let option = move |value: String, words: &'static str| {
        let own = value.clone();
        view! { <option value=value prop:selected=move || event.with(|event| *event == own)>{words}</option> }
    };
    view! {
        <Filters parts>
            <form class="filter-fields" role="search" on:submit=|event| event.prevent_default()>
                <div class="chips" role="group" aria-label="Common filters">
                    {OFTEN.map(|(words, kind)| view! {
                        <button type="button" class="chip" aria-pressed=move || event.with(|event| event == kind).to_string()
                            on:click=move |_| set_event(kind.to_owned())>{words}</button>
                    })}
                </div>
                <WordsField parts placeholder="Words in an entry"/>
                <label><span class="sr">"Event"</span>
                    <select class="select" on:change=while_shown(move |event| set_event(event_target_value(&event)))>
                        {option(String::new(), "Any event")}
                        <optgroup label="Review activity">
                            {ReviewAct::ALL.iter().map(|act| option(format!("{ACT}{}", act.as_str()), words::review_act(*act))).collect_view()}
                        </optgroup>
                        <optgroup label="Entries">
                            {EntryKind::ALL.iter().map(|kind| option(kind.as_str().to_owned(), kind.as_str())).collect_view()}
                        </optgroup>
                    </select></label>
                <label><span class="sr">"Who"</span>
                    <input class="input who-filter" placeholder="Who" autocapitalize="off" spellcheck="false" prop:value=move || parts.text("actor")
                        on:change=while_shown(move |event| parts.set("actor", &event_target_value(&event)))/></label>
                <DayFields parts/>
                {move || chip("run")}
                {move || chip("review")}
                <Show when=move || { parts.count() > 0 }>
                    <a href="/audit" class="b sm ghost">"Clear"</a>
                </Show>
            </form>
        </Filters>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_to_reviews_and_the_kind_of_entries_are_one_choice() {
        let mut filter = AuditFilter::default();
        filter.set_event(Some("act:vote".into()));
        assert_eq!((filter.query().act.as_deref(), filter.query().kind), (Some("vote"), None));
        filter.set_event(Some("flow.saved".into()));
        assert_eq!((filter.query().act, filter.event().as_str()), (None, "flow.saved"));
        filter.set_event(None);
        assert_eq!(filter, AuditFilter::default());
    }

    #[test]
    fn the_last_day_is_included() {
        let filter =
            AuditFilter { from: Some("2026-11-20".into()), to: Some("2026-11-20".into()), ..AuditFilter::default() };
        let query = filter.query_by(|year, month, day| Some(Timestamp(i64::from(year * 10_000 + month * 100 + day))));
        assert_eq!((query.from, query.to), (Some(Timestamp(20_261_120)), Some(Timestamp(20_261_121))));
    }
}
