//! Lists that are loaded page by page: the newest items first, older ones on request.

use leptos::prelude::*;
use shared::api::Page;
use shared::error::Problem;
use shared::time::Timestamp;

use super::states::{Failed, LoadOlder, Loading};
use crate::client::Live;

/// The maximum number of pages that are reloaded at once; beyond them, older items are loaded again on request.
const ANEW: usize = 10;

/// The loaded part of a list.
struct Read<Q, T> {
    /// The query of the list; `None` until something is loaded.
    of: Option<Q>,
    /// The newest items, without gaps.
    items: Vec<T>,
    /// The cursor of older items; `None` if all are loaded.
    next: Option<String>,
}

/// A list that is loaded page by page. Cheap to copy into closures.
pub struct Pages<Q: Send + Sync + 'static, T: Send + Sync + 'static> {
    asked: Memo<Q>,
    read: RwSignal<Read<Q, T>>,
    first: LocalResource<Result<(), Problem>>,
    /// Whether the last load from the beginning is over and succeeded.
    settled: RwSignal<bool>,
    /// The number of items that the next load from the beginning need not exceed.
    most: StoredValue<usize>,
    older: Action<String, Result<(), Problem>>,
}

impl<Q: Send + Sync, T: Send + Sync> Clone for Pages<Q, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Q: Send + Sync, T: Send + Sync> Copy for Pages<Q, T> {}

/// Loads the list for the query `asked` with `fetch`, which gets a cursor. `at` returns the time of an item; the newest
/// come first.
pub fn use_pages<Q, T, F>(
    asked: Memo<Q>,
    fetch: impl Fn(Q, Option<String>) -> F + Copy + Send + Sync + 'static,
    at: fn(&T) -> Timestamp,
) -> Pages<Q, T>
where
    Q: Clone + PartialEq + Send + Sync + 'static,
    T: Send + Sync + 'static,
    F: Future<Output = Result<Page<T>, Problem>> + 'static,
{
    let read = RwSignal::new(Read { of: None, items: Vec::new(), next: None });
    // Answers to an earlier query are not shown.
    let is_asked = move |of: &Q| asked.try_with_untracked(|now| now == of) == Some(true);
    // The number of the last load from the beginning; answers to older ones are dropped.
    let turn = StoredValue::new(0_u64);
    let settled = RwSignal::new(false);
    let most = StoredValue::new(usize::MAX);
    let first = LocalResource::new(move || {
        let of = asked.get();
        let own = turn.with_value(|turn| turn + 1);
        turn.set_value(own);
        settled.set(false);
        let enough = most.try_update_value(|most| std::mem::replace(most, usize::MAX)).unwrap_or(usize::MAX);
        async move {
            let is_wanted = || turn.try_get_value() == Some(own) && is_asked(&of);
            // A reload covers all that is shown and what was added since, so that a person who has scrolled down stays
            // there.
            let reaches = |items: &[T]| {
                let oldest =
                    read.try_with_untracked(|read| read.items.last().filter(|_| read.of.as_ref() == Some(&of)).map(at));
                covers(items, oldest.flatten(), enough, at)
            };
            let loaded = beginning(|cursor| fetch(of.clone(), cursor), is_wanted, reaches).await;
            if !is_wanted() {
                return Ok(());
            }
            let Page { items, next_cursor } = loaded?;
            read.set(Read { of: Some(of.clone()), items, next: next_cursor });
            settled.set(true);
            Ok(())
        }
    });
    let older = Action::new_local(move |cursor: &String| {
        let (of, cursor) = (asked.get_untracked(), cursor.clone());
        async move {
            let more = page(|cursor| fetch(of.clone(), cursor), Some(cursor.clone()), || is_asked(&of)).await?;
            let is_next = |read: &Read<Q, T>| read.of.as_ref() == Some(&of) && read.next.as_ref() == Some(&cursor);
            if is_asked(&of) && read.with_untracked(is_next) {
                read.update(|read| {
                    read.items.extend(more.items);
                    read.next = more.next_cursor;
                });
            }
            Ok(())
        }
    });
    Pages { asked, read, first, settled, most, older }
}

/// Whether a reload has all that is shown, the oldest item of which is of the time `oldest`, or enough of it.
fn covers<T>(items: &[T], oldest: Option<Timestamp>, enough: usize, at: impl Fn(&T) -> Timestamp) -> bool {
    items.len() >= enough || oldest.is_none_or(|oldest| items.last().is_some_and(|item| at(item) <= oldest))
}

/// Loads one page. A page without matches may have a cursor at which to continue.
async fn page<T, F>(
    fetch: impl Fn(Option<String>) -> F,
    cursor: Option<String>,
    is_wanted: impl Fn() -> bool,
) -> Result<Page<T>, Problem>
where
    F: Future<Output = Result<Page<T>, Problem>>,
{
    let mut page = fetch(cursor).await?;
    while page.items.is_empty() && page.next_cursor.is_some() && is_wanted() {
        page = fetch(page.next_cursor).await?;
    }
    Ok(page)
}

/// Loads a list from its beginning until `reaches` accepts the items, up to a limit of pages.
async fn beginning<T, F>(
    fetch: impl Fn(Option<String>) -> F,
    is_wanted: impl Fn() -> bool,
    reaches: impl Fn(&[T]) -> bool,
) -> Result<Page<T>, Problem>
where
    F: Future<Output = Result<Page<T>, Problem>>,
{
    let mut read = page(&fetch, None, &is_wanted).await?;
    for _ in 1..ANEW {
        if read.next_cursor.is_none() || reaches(&read.items) || !is_wanted() {
            break;
        }
        let more = page(&fetch, read.next_cursor, &is_wanted).await?;
        read.items.extend(more.items);
        read.next_cursor = more.next_cursor;
    }
    Ok(read)
}

impl<Q, T> Pages<Q, T>
where
    Q: PartialEq + Send + Sync + 'static,
    T: Send + Sync + 'static,
{
    /// Reads the loaded items, and whether there are more. Follows the list.
    pub fn with<U>(self, look: impl FnOnce(&[T], bool) -> U) -> U {
        self.read.with(|read| look(&read.items, read.next.is_some()))
    }

    /// Reloads what is shown.
    pub fn again(self) {
        self.first.refetch();
    }

    /// Like [`Self::again`], but once `most` items are loaded, older ones are left to be requested again.
    pub fn again_at_most(self, most: usize) {
        self.most.set_value(most);
        self.again();
    }

    /// Whether the last load from the beginning is over and succeeded. Follows the list.
    pub fn is_settled(self) -> bool {
        self.settled.get()
    }

    /// Whether anything is loaded for the current query.
    fn is_read(self) -> bool {
        self.read.with(|read| self.asked.with(|asked| read.of.as_ref() == Some(asked)))
    }
}

/// A list with its states: bars until it is loaded, then its rows, which stay during a reload; an error with a button
/// to try again, and a button for older items.
#[component]
pub fn PagedList<Q, T>(
    pages: Pages<Q, T>,
    /// The title of the error if loading fails.
    failed: &'static str,
    /// The label of the button for older items.
    older: &'static str,
    children: ChildrenFn,
) -> impl IntoView
where
    Q: PartialEq + Send + Sync + 'static,
    T: Send + Sync + 'static,
{
    let problem = Memo::new(move |_| pages.first.get().and_then(Result::err));
    let is_read = Memo::new(move |_| pages.is_read());
    let next = Memo::new(move |_| pages.read.with(|read| read.next.clone()).filter(|_| is_read.get()));
    let retry = Callback::new(move |()| pages.again());
    expect_context::<Live>().on_return(move || {
        if problem.with_untracked(Option::is_some) {
            pages.again();
        }
    });
    view! {
        {move || problem.get().map(|problem| view! { <Failed title=failed problem retry /> })}
        <Show when=move || !is_read.get() && problem.with(Option::is_none)>
            <Loading rows=9 />
        </Show>
        <Show when=move || is_read.get()>{children()}</Show>
        <LoadOlder next older=pages.older label=older />
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures::executor::block_on;

    use super::*;

    /// An endless list of ascending numbers, two on each page.
    async fn fetch(cursor: Option<String>) -> Result<Page<u32>, Problem> {
        let from: u32 = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        Ok(Page { items: vec![from, from + 1], next_cursor: Some((from + 2).to_string()) })
    }

    fn read(is_wanted: impl Fn() -> bool, oldest: impl Fn() -> u32) -> (usize, Option<String>) {
        let reaches = |items: &[u32]| items.last().is_some_and(|last| *last >= oldest());
        let page = block_on(beginning(fetch, is_wanted, reaches)).expect("it is read");
        (page.items.len(), page.next_cursor)
    }

    #[test]
    fn a_list_is_read_anew_as_far_as_it_is_shown_by_then_but_not_without_end() {
        assert_eq!(read(|| true, || 3), (4, Some("4".to_owned())));
        let looks = Cell::new(0);
        let older_come_meanwhile = || if looks.replace(looks.get() + 1) == 0 { 3 } else { 7 };
        assert_eq!(read(|| true, older_come_meanwhile), (8, Some("8".to_owned())));
        assert_eq!(read(|| true, || u32::MAX), (2 * ANEW, Some((2 * ANEW).to_string())), "the rest is asked for");
    }

    #[test]
    fn a_list_that_grows_is_read_anew_only_as_far_as_is_enough() {
        let at = |time: &i64| Timestamp(*time);
        let newest_first = [9, 8, 7];
        assert!(covers(&newest_first, Some(Timestamp(7)), usize::MAX, at) && covers(&newest_first, None, 9, at));
        assert!(!covers(&newest_first, Some(Timestamp(1)), 4, at));
        assert!(covers(&newest_first, Some(Timestamp(1)), 3, at), "what is older is dropped from the end");
    }

    #[test]
    fn a_reading_ends_once_a_newer_one_has_begun() {
        let asks = Cell::new(0);
        let is_wanted = || asks.replace(asks.get() + 1) < 2;
        assert_eq!(read(is_wanted, || u32::MAX).0, 6);
    }
}
