//! Signals that live as long as the page, and are followed by short-lived parts of it.

use std::ops::Deref;

use leptos::prelude::*;
use leptos::reactive::graph::{Observer, Source, ToAnySource};

/// A signal that forgets its followers when they are gone. A signal of Leptos 0.8 keeps a place for every follower it
/// ever had, and visits all of them at each change, but rows and panes come and go by the thousand.
#[derive(Debug)]
pub struct GlobalSignal<T: 'static>(RwSignal<T>);

impl<T> Clone for GlobalSignal<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for GlobalSignal<T> {}

/// Untracked reads and changes work as with any signal.
impl<T> Deref for GlobalSignal<T> {
    type Target = RwSignal<T>;

    fn deref(&self) -> &RwSignal<T> {
        &self.0
    }
}

impl<T: Send + Sync + 'static> GlobalSignal<T> {
    pub fn new(value: T) -> Self {
        Self(RwSignal::new(value))
    }

    /// Reruns the current effect when the value changes, until that effect is cleaned up.
    pub fn track(self) {
        self.0.track();
        if let Some(follower) = Observer::get() {
            let source = self.0.to_any_source();
            // The observer has an owner, which is cleaned up before each run and at the end.
            on_cleanup(move || source.remove_subscriber(&follower));
        }
    }

    /// Reads the value by reference, and follows it.
    pub fn with<U>(self, look: impl FnOnce(&T) -> U) -> U {
        self.track();
        self.0.with_untracked(look)
    }

    /// Returns the value, and follows it.
    pub fn get(self) -> T
    where
        T: Clone,
    {
        self.with(T::clone)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use leptos::reactive::graph::{AnySource, AnySubscriber, ReactiveNode, Subscriber, WithObserver};

    use super::*;

    /// Counts the notifications of changes.
    #[derive(Default)]
    struct Follower(AtomicUsize);

    impl ReactiveNode for Follower {
        fn mark_dirty(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn mark_check(&self) {}

        fn mark_subscribers_check(&self) {}

        fn update_if_necessary(&self) -> bool {
            false
        }
    }

    impl Subscriber for Follower {
        fn add_source(&self, _: AnySource) {}

        fn clear_sources(&self, _: &AnySubscriber) {}
    }

    #[test]
    fn who_follows_is_forgotten_as_soon_as_they_are_gone() {
        let page = Owner::new();
        page.set();
        let signal = GlobalSignal::new(1);
        let follower = Arc::new(Follower::default());
        let weak = Arc::downgrade(&follower);
        let of_follower = AnySubscriber(Arc::as_ptr(&follower) as usize, weak);
        let owner = Owner::new();
        assert_eq!(owner.with(|| of_follower.with_observer(|| signal.get())), 1);
        signal.set(2);
        assert_eq!(follower.0.load(Ordering::Relaxed), 1, "it hears of the change");
        assert_eq!(owner.with(|| of_follower.with_observer(|| signal.get())), 2);
        owner.cleanup();
        signal.set(3);
        assert_eq!(follower.0.load(Ordering::Relaxed), 1, "and of none after its end");
    }
}
