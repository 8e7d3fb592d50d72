//! The strip above every page: the connection is lost, or decisions were not sent.

use leptos::prelude::*;
use leptos_router::hooks::use_location;

use super::glyph::Glyph;
use crate::client::{Connection, Live, Workspace};
use crate::state::inbox::address::{review_at, review_from};
use crate::state::outbox::{Outbox, not_sent};
use crate::state::words;

/// Warns that the page may be out of date, and that decisions were not sent.
#[component]
pub fn StatusStrip() -> impl IntoView {
    let live = expect_context::<Live>();
    let workspace = expect_context::<Workspace>();
    let lost = Memo::new(move |_| matches!(live.connection.get(), Connection::Lost { .. }));
    let unsent = Memo::new(move |_| workspace.outbox.with(Outbox::unsent));
    let wait = move || match live.connection.get() {
        Connection::Lost { retry_at } => words::left(live.now.get(), retry_at),
        _ => None,
    };
    let count = move || unsent.with(Vec::len);
    let location = use_location();
    let open = Memo::new(move |_| location.pathname.with(|path| review_at(path)));
    let decisions = move || {
        let unsent = unsent.get();
        if unsent.is_empty() {
            return None;
        }
        let other = unsent.iter().find(|id| open.get() != Some(**id));
        let go = if unsent.len() == 1 { "Open it" } else { "Open another" };
        let link = other.copied().map(|id| {
            let href =
                move || location.pathname.with(|path| location.search.with(|search| review_from(path, search, id)));
            view! { <a class="b sm" href=href>{go}</a> }
        });
        Some(view! { <b class="nowrap">{not_sent(unsent.len())}</b>{link} })
    };
    let says = move || match (lost.get(), count()) {
        (true, 0) => "Reconnecting… What you see may be out of date. Decisions that cannot be sent are kept here.",
        (true, _) => "Reconnecting… What you see may be out of date.",
        (false, _) => "",
    };
    view! {
        <Show when=move || lost.get() || { count() > 0 }>
            <div class="status-strip" role="alert">
                <Glyph icon=Signal::derive(move || if lost.get() { icondata::LuWifiOff } else { icondata::LuSendHorizontal }) />
                <span class="grow">{says}</span>
                {decisions}
                <Show when=move || lost.get()>
                    <span class="tiny nowrap" aria-hidden="true">
                        {move || wait().map_or_else(|| "trying now".to_owned(), |wait| format!("next try in {wait}"))}
                    </span>
                    <button class="b sm" on:click=move |_| live.retry_now()>"Try now"</button>
                </Show>
            </div>
        </Show>
    }
}
