//! Waiting for the browser to paint, to postpone work for parts that are not visible yet.

use futures::channel::oneshot;
use futures::future::select;
use gloo_timers::future::TimeoutFuture;
use leptos::prelude::request_animation_frame;

/// The longest wait for a paint, in milliseconds: a tab in the background paints nothing.
const PATIENCE: u32 = 250;

/// Waits until the current page is painted.
pub async fn after_paint() {
    let (sender, painted) = oneshot::channel();
    // A frame begins with its callbacks, and ends with the paint: the next one begins after it.
    request_animation_frame(move || {
        request_animation_frame(move || {
            // It fails only where nobody waits any more.
            let _ = sender.send(());
        });
    });
    select(painted, TimeoutFuture::new(PATIENCE)).await;
    // Not in that frame, which is to be painted soon too.
    TimeoutFuture::new(0).await;
}
