//! The filter of the inbox: that of the address, or, as the inbox opens, that of the person's default view.

use leptos::leptos_dom::helpers::request_animation_frame_with_handle;
use leptos::prelude::*;
use leptos::reactive::spawn_local_scoped_with_cancellation;
use leptos_router::hooks::{use_location, use_query_map};
use shared::api::ReviewQuery;

use super::INBOX;
use crate::client::SavedViews;
use crate::components::scroll::came_back;
use crate::state::inbox::address;
use crate::state::saved_views::default_filter;

/// Returns the filter of the page. If the inbox is opened without one, and the person does not come back to it, that is
/// the filter of their default view at once, and `replace` writes it to the address. `untouched`: whether the person
/// has not done anything on the page yet.
pub fn use_filter(untouched: impl Fn() -> bool + 'static, replace: Callback<ReviewQuery>) -> Memo<ReviewQuery> {
    let saved = expect_context::<SavedViews>();
    let path = use_location().pathname;
    let parts = use_query_map();
    let addressed = Memo::new(move |_| parts.with(|parts| address::read(parts)));
    let is_at = move |filter: &ReviewQuery| {
        path.with_untracked(|path| path == INBOX) && addressed.with_untracked(|now| now == filter)
    };
    // Only as the page opens: afterwards, the person may want to see all reviews.
    let opens = !came_back() && is_at(&ReviewQuery::default());
    let default = move || {
        let views = untrack(|| saved.get()).or_else(|| saved.stored())?;
        default_filter(&views.views).cloned()
    };
    let opened = opens.then(default).flatten();

    // The filter that the address does not have yet.
    let ahead = RwSignal::new(opened.clone());
    Effect::new(move |_| {
        if addressed.with(|now| *now != ReviewQuery::default()) {
            ahead.set(None);
        }
    });
    // The router adds the page to the history once it is created. Until then, the page before would be replaced.
    let frame = request_animation_frame_with_handle(move || {
        if let Some(filter) = ahead.get_untracked().filter(|_| is_at(&ReviewQuery::default())) {
            replace.run(filter);
        }
    })
    .ok();
    on_cleanup(move || {
        if let Some(frame) = frame {
            frame.cancel();
        }
    });
    // The views may have been changed in another browser.
    spawn_local_scoped_with_cancellation(async move {
        saved.load().await;
        let now = default();
        // The address may not have the filter yet: a tab in the background gets no frames.
        let waits = ahead.get_untracked().is_some() && is_at(&ReviewQuery::default());
        let is_shown = waits || is_at(&opened.clone().unwrap_or_default());
        if opens && now != opened && is_shown && untouched() {
            ahead.set(now.clone().filter(|_| waits));
            replace.try_run(now.unwrap_or_default());
        }
    });
    Memo::new(move |_| ahead.get().unwrap_or_else(|| addressed.get()))
}
