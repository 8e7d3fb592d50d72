//! Waiting for the browser to paint, to postpone work for parts that are not visible yet.

use futures::channel::oneshot;
use futures::future::select;
use gloo_timers::future::TimeoutFuture;
use leptos::prelude::request_animation_frame;

/// The longest wait for a paint, in milliseconds: a tab in the background paints nothing.
const PAINT_TIMEOUT: u32 = 250;

pub async fn after_paint() {
    let (sender, painted) = oneshot::channel();
    // A frame begins with its callbacks and ends with the paint, so the second callback runs after the first paint.
    request_animation_frame(move || {
        request_animation_frame(move || {
            // It fails only if nobody waits any more.
            let _ = sender.send(());
        });
    });
    select(painted, TimeoutFuture::new(PAINT_TIMEOUT)).await;
    // Continue outside that frame, so that it is painted soon too.
    TimeoutFuture::new(0).await;
}
