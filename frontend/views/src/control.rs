//! `<Show>`, `<For>`, and closures as views, each compiled once.

use std::hash::{DefaultHasher, Hash, Hasher};

use leptos::either::Either;
use leptos::prelude::*;
use leptos::tachys::reactive_graph::OwnedView;
use leptos::tachys::view::keyed::keyed;

use super::call::{Call, CallMut, ChildrenFn, ViewFn};

/// A view that is made again whenever a signal in it changes. Inside another one it takes the place of what was there
/// before, however much they are alike: what was scrolled or opened in the one is not in the other.
pub fn dynamic<V: IntoView + 'static>(mut view: impl FnMut() -> V + Send + 'static) -> AnyView {
    boxed(Box::new(move |()| view().into_any()))
}

pub(crate) fn boxed(mut view: Box<dyn CallMut<(), AnyView> + Send>) -> AnyView {
    (move || view.call_mut(())).into_any()
}

/// Shows its children while a condition holds, and something else while it does not.
#[component]
pub fn Show<W>(
    /// What is shown.
    children: ChildrenFn,
    /// The condition.
    when: W,
    /// What is shown instead.
    #[prop(optional, into)]
    fallback: ViewFn,
) -> impl IntoView
where
    W: Fn() -> bool + Send + Sync + 'static,
{
    show(Box::new(move |()| when()), children, fallback)
}

fn show(when: Box<dyn Call<(), bool> + Send + Sync>, children: ChildrenFn, fallback: ViewFn) -> AnyView {
    let when = ArcMemo::new(move |_| when.call(()));
    let view = move || if when.get() { Either::Left(children.view()) } else { Either::Right(fallback.run()) };
    dynamic(view)
}

/// A row that may not have to be made: it is there already, or it is not.
struct Row {
    key: u64,
    make: Box<dyn FnOnce() -> AnyView + Send>,
}

/// A list whose rows stay what they are while their keys do.
#[component]
pub fn For<IF, I, T, EF, N, KF, K>(
    /// The rows.
    each: IF,
    /// What tells them apart.
    key: KF,
    /// How one is shown.
    children: EF,
) -> impl IntoView
where
    IF: Fn() -> I + Send + 'static,
    I: IntoIterator<Item = T> + Send + 'static,
    EF: Fn(T) -> N + Send + Clone + 'static,
    N: IntoView + 'static,
    KF: Fn(&T) -> K + Send + Clone + 'static,
    K: Hash + 'static,
    T: Send + 'static,
{
    list(Box::new(move |()| {
        let row = |item| {
            let mut hasher = DefaultHasher::new();
            key(&item).hash(&mut hasher);
            let children = children.clone();
            Row { key: hasher.finish(), make: Box::new(move || children(item).into_any()) }
        };
        each().into_iter().map(row).collect()
    }))
}

fn list(rows: Box<dyn Call<(), Vec<Row>> + Send>) -> AnyView {
    // Each row has an owner of its own, below the list's: rows outlive the changes of the list.
    let parent = Owner::current().unwrap_or_default();
    let view = move || {
        let parent = parent.clone();
        let make = move |_: usize, row: Row| {
            let owner = parent.with(Owner::new);
            let view = owner.with(row.make);
            (drop::<usize>, OwnedView::new_with_owner(view, owner))
        };
        keyed(rows.call(()), |row: &Row| row.key, make)
    };
    dynamic(view)
}
