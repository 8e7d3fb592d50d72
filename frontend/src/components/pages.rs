//! Lists that are read a page at a time: the newest first, and older ones when somebody asks for them.

use leptos::prelude::*;
use shared::api::Page;
use shared::error::Problem;
use shared::time::Timestamp;

use super::states::{Failed, LoadOlder, Loading};
use crate::client::Live;

/// What has been read of a list.
struct Read<Q, T> {
    /// Of which list; none: nothing is read yet.
    of: Option<Q>,
    /// Its beginning, without gaps.
    items: Vec<T>,
    /// Where older ones begin; none: all are read.
    next: Option<String>,
}

/// A list that is read a page at a time. Cheap to copy into closures.
pub struct Pages<Q: Send + Sync + 'static, T: Send + Sync + 'static> {
    asked: Memo<Q>,
    read: RwSignal<Read<Q, T>>,
    first: LocalResource<Result<(), Problem>>,
    older: Action<String, Result<(), Problem>>,
}

impl<Q: Send + Sync, T: Send + Sync> Clone for Pages<Q, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Q: Send + Sync, T: Send + Sync> Copy for Pages<Q, T> {}

/// Reads the list that is `asked` for with `fetch`, which gets a cursor. `at` says when something was: the newest is first.
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
    // What belongs to another list, which was asked for before, is not shown.
    let is_asked = move |of: &Q| asked.try_with_untracked(|now| now == of) == Some(true);
    let page = move |of: Q, cursor: Option<String>| async move {
        let mut page = fetch(of.clone(), cursor).await?;
        // A page that found nothing may say where to go on.
        while page.items.is_empty() && page.next_cursor.is_some() && is_asked(&of) {
            page = fetch(of.clone(), page.next_cursor).await?;
        }
        Ok::<_, Problem>(page)
    };
    let first = LocalResource::new(move || {
        let of = asked.get();
        // Of a list that is read anew, all that is shown: who has gone down stays there.
        let oldest = read.with_untracked(|read| read.items.last().filter(|_| read.of.as_ref() == Some(&of)).map(at));
        async move {
            let Page { mut items, mut next_cursor } = page(of.clone(), None).await?;
            let reaches =
                |items: &Vec<T>| oldest.is_none_or(|oldest| items.last().is_some_and(|item| at(item) <= oldest));
            while next_cursor.is_some() && !reaches(&items) && is_asked(&of) {
                let more = page(of.clone(), next_cursor).await?;
                items.extend(more.items);
                next_cursor = more.next_cursor;
            }
            if is_asked(&of) {
                read.set(Read { of: Some(of), items, next: next_cursor });
            }
            Ok(())
        }
    });
    let older = Action::new_local(move |cursor: &String| {
        let (of, cursor) = (asked.get_untracked(), cursor.clone());
        async move {
            let more = page(of.clone(), Some(cursor.clone())).await?;
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
    Pages { asked, read, first, older }
}

impl<Q, T> Pages<Q, T>
where
    Q: PartialEq + Send + Sync + 'static,
    T: Send + Sync + 'static,
{
    /// Looks at what has been read, and whether there is more. Follows it.
    pub fn with<U>(self, look: impl FnOnce(&[T], bool) -> U) -> U {
        self.read.with(|read| look(&read.items, read.next.is_some()))
    }

    /// Reads anew what is shown.
    pub fn again(self) {
        self.first.refetch();
    }

    /// Whether something has been read of the list that is asked for.
    fn is_read(self) -> bool {
        self.read.with(|read| self.asked.with(|asked| read.of.as_ref() == Some(asked)))
    }
}

/// Such a list: bars until it is read, then its rows, which stay while it is read anew; why it could not be read, and a
/// button for older ones.
#[component]
pub fn PagedList<Q, T>(
    pages: Pages<Q, T>,
    /// What could not be done, where it fails.
    failed: &'static str,
    /// What the button for older ones says.
    older: &'static str,
    /// The rows.
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
    Live::expect().on_return(move || {
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
