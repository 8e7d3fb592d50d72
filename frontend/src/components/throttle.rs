//! Throttling: what changes many times a second is followed at a pace that a server bears.

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use leptos::task::spawn_local;

/// Returns a signal that follows `source` for as long as the calling component exists: at once, but at most once in
/// `pause_ms` milliseconds.
pub fn throttled<T: Clone + Send + Sync + PartialEq + 'static>(source: Memo<T>, pause_ms: u32) -> ReadSignal<T> {
    let (now, set_now) = signal(source.get_untracked());
    let rests = StoredValue::new(false);
    Effect::new(move |_| {
        // The memo is read, not only tracked: one that nobody reads does not run.
        source.with(|_| ());
        if rests.get_value() {
            return;
        }
        rests.set_value(true);
        spawn_local(async move {
            // Ends when nothing has changed during a pause, or the component is gone.
            while let Some(newest) = source.try_get_untracked()
                && now.try_with_untracked(|now| *now != newest) == Some(true)
            {
                set_now.try_set(newest);
                TimeoutFuture::new(pause_ms).await;
            }
            rests.try_set_value(false);
        });
    });
    now
}
