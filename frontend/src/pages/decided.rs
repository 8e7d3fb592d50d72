//! The reviews that the person decided, newest decision first: what they decided, when, and what came of it.

use leptos::html;
use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use shared::api::{Page, ReviewQuery};
use shared::person_filter::PersonFilter;

use crate::client::{Session, use_api};
use crate::components::arrival;
use crate::components::inert::inert;
use crate::components::list_filter::{FilterParts, FlowMenu, WordsField, use_filter};
use crate::components::pages::{PagedList, use_pages};
use crate::components::states::{Empty, Refresh};
use crate::components::time::Ago;
use crate::state::decided::DecidedRow;
use crate::state::inbox::address;

/// The path of the page.
const DECIDED: &str = "/decided";

/// The filter in the address.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct DecidedFilter {
    flow: Option<String>,
    q: Option<String>,
}

impl DecidedFilter {
    fn query(&self, cursor: Option<String>) -> ReviewQuery {
        let Self { flow, q } = self.clone();
        ReviewQuery { flow, q, decided_by: Some(PersonFilter::Me), cursor, ..ReviewQuery::default() }
    }
}

#[component]
pub fn DecidedPage() -> impl IntoView {
    arrival::title(|| "Decided by me".to_owned());
    let heading = arrival::heading::<html::H1>();
    let api = use_api();
    let session = expect_context::<Session>();
    let (filter, go) = use_filter::<DecidedFilter>(DECIDED);
    let parts = FilterParts::of(filter, go);
    let fetch = move |asked: DecidedFilter, cursor: Option<String>| async move {
        let page = api.reviews(&asked.query(cursor)).await?;
        let me = untrack(|| session.username());
        let row = |review| DecidedRow::of(review, me.as_ref()?);
        Ok(Page { items: page.items.iter().filter_map(row).collect(), next_cursor: page.next_cursor })
    };
    let pages = use_pages(filter, fetch, |row: &DecidedRow| row.at);
    let none = Memo::new(move |_| pages.with(|rows, _| rows.is_empty()));
    let rows = move || pages.with(|rows, _| rows.to_vec());
    let list = move || {
        if none.get() {
            return nothing(filter.with(|filter| *filter != DecidedFilter::default()));
        }
        view! {
            <ol class="card decided-list">
                <For each=rows key=|row| (row.id, row.at, row.outcome) let:row><Row row/></For>
            </ol>
        }
        .into_any()
    };
    view! {
        <section class="page decided">
            <header>
                <h1 node_ref=heading tabindex="-1" class="grow">"Decided by me"</h1>
                <Refresh press=move |()| pages.again()/>
                <form class="filter-fields" role="search" on:submit=|event| event.prevent_default()>
                    <WordsField parts placeholder="Words in a review" most="500"/>
                    <FlowMenu parts/>
                </form>
            </header>
            <div class="in">
                <PagedList pages failed="Your decisions could not be loaded" older="Load older decisions">{list}</PagedList>
            </div>
        </section>
    }
}

#[component]
fn Row(row: DecidedRow) -> impl IntoView {
    let DecidedRow { id, title, origin, said, at, outcome: (class, outcome), others } = row;
    view! {
        <li>
            <span class="decided-what">
                <a href=address::review(id, "")>{inert(&title)}</a>
                <span class="sub">{inert(&origin)}</span>
            </span>
            <span class="decided-said">{inert(&said)}</span>
            <span class="decided-outcome">
                <span class=class>{outcome}</span>
                {others.map(|others| view! { <span class="sub">{inert(&others)}</span> })}
            </span>
            <span class="decided-at soft nowrap"><Ago at/></span>
        </li>
    }
}

/// The notice in place of an empty list.
fn nothing(filtered: bool) -> AnyView {
    if filtered {
        view! {
            <Empty icon=icondata::LuListFilter title="No matches" text="No review that you decided has these words in this flow."
                link=(DECIDED, "Show all")/>
        }
        .into_any()
    } else {
        view! {
            <Empty icon=icondata::LuHistory title="You have not decided anything yet"
                text="Reviews that you decide or vote on are listed here, even after they are over." link=("/inbox", "Go to the inbox")/>
        }
        .into_any()
    }
}
