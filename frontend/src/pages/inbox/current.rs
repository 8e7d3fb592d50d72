//! Keeps the list of the inbox up to date with the server: reloads it when the filter, the rights or the clock change
//! its content, or when it may be out of date.

use leptos::prelude::*;
use shared::access::Principal;
use shared::api::ReviewQuery;

use crate::client::{Connection, Live, ReviewList, Session};
use crate::state::inbox::Inbox;

/// Shows the reviews that match `query`, and keeps them and their counts up to date while the page is open.
pub fn keep_current(query: Memo<ReviewQuery>) {
    let (live, session, list) = (expect_context::<Live>(), expect_context::<Session>(), expect_context::<ReviewList>());
    let shown = move || {
        // Runs also when earlier messages are no longer valid, and when the person's rights change.
        live.renewed.track();
        let (query, viewer) = (query.get(), session.principal());
        viewer.map(|viewer| (query, viewer))
    };
    let show = move |shown: &Option<(ReviewQuery, Principal)>| {
        if let Some((query, viewer)) = shown.clone() {
            list.show(query, viewer);
        }
    };
    // If the page has the list already, it is shown without a loading state.
    show(&untrack(shown));
    Effect::watch(shown, move |shown, _, _| show(shown), false);
    let doubts = Memo::new(move |_| live.inbox.with(Inbox::doubts));
    Effect::new(move |_| {
        doubts.with(|_| ());
        if live.inbox.with_untracked(Inbox::is_doubtful) {
            list.again_soon();
        }
    });
    live.on_return(move || {
        if list.error.with_untracked(Option::is_some) {
            list.again();
        }
    });
    let changes = Memo::new(move |_| live.inbox.with(Inbox::changes));
    Effect::watch(move || changes.get(), move |_, _, _| list.count(), false);
    // Deadlines come nearer and claims run out without a message.
    let minute = Memo::new(move |_| live.now.get().0 / 60_000_000);
    let is_open = Memo::new(move |_| live.connection.get() == Connection::Open);
    Effect::new(move |before: Option<(i64, bool)>| {
        let now = (minute.get(), is_open.get());
        let by_clock =
            query.with_untracked(|query| query.due.is_some() || query.age.is_some() || query.assigned.is_some());
        if let Some(before) = before.filter(|before| *before != now)
            && now.1
        {
            // What failed without a connection is requested again above.
            let next_minute = before.0 != now.0;
            if by_clock || (next_minute && list.error.with_untracked(Option::is_some)) {
                list.again();
            }
            list.count();
        }
        now
    });
}
