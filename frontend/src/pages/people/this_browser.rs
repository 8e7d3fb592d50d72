//! Notifications that this browser shows: whether the person wants them, and whether the browser lets the console.

use leptos::prelude::*;

use crate::client::{BrowserNotifications, Permission};
use crate::components::listeners::while_shown;
use crate::state::browser_notifications::NotificationChoice;

#[component]
pub fn ThisBrowser() -> impl IntoView {
    let notifications = expect_context::<BrowserNotifications>();
    let choice = notifications.choice;
    notifications.look();
    // The person may change it in the browser's settings, and come back.
    let came_back = window_event_listener_untyped("focus", move |_| notifications.look());
    on_cleanup(move || came_back.remove());
    let unkept = RwSignal::new(false);
    let choose = move |choice| unkept.set(!notifications.choose(choice));
    let unanswered = RwSignal::new(false);
    let switch_on = Action::new_local(move |(): &()| async move {
        unanswered.set(false);
        match notifications.ask().await {
            Permission::Granted => choose(NotificationChoice { on: true, ..choice.get_untracked() }),
            Permission::Unasked => unanswered.set(true),
            Permission::Insecure | Permission::Missing | Permission::Denied => {}
        }
    });
    let asks = switch_on.pending();
    // The permission may have been taken back in the browser's settings.
    let is_on = move || choice.with(|choice| choice.on) && notifications.permission.get() == Permission::Granted;
    let flip = move |event| {
        if event_target_checked(&event) {
            switch_on.dispatch_local(());
        } else {
            choose(NotificationChoice { on: false, ..choice.get_untracked() });
        }
    };
    let says_what =
        move |event| choose(NotificationChoice { says_what: event_target_checked(&event), ..choice.get_untracked() });
    let can = Memo::new(move |_| matches!(notifications.permission.get(), Permission::Unasked | Permission::Granted));
    let barred = move || match notifications.permission.get() {
        Permission::Insecure => {
            Some("A browser shows notifications only for pages that were loaded over https, or from the same computer.")
        }
        Permission::Missing => Some("This browser cannot show notifications of a web page."),
        Permission::Denied => Some(
            "This browser blocks notifications of Countersign. To allow them, open the settings of this page, beside its address in the browser.",
        ),
        Permission::Unasked | Permission::Granted => None,
    };
    let told = move || {
        if asks.get() {
            "Your browser asks whether to allow this."
        } else if unanswered.get() {
            "The browser did not get an answer, so nothing has changed."
        } else if unkept.get() {
            "This browser could not store the setting: it lasts until you reload the page."
        } else {
            ""
        }
    };
    view! {
        <section class="this-browser" aria-labelledby="this-browser">
            <h2 id="this-browser">"This browser"</h2>
            <div class="card">
                <Show when=move || can.get()>
                    <label class="role">
                        <input
                            type="checkbox"
                            role="switch"
                            prop:checked=move || is_on() || asks.get()
                            on:change=while_shown(flip)
                        />
                        <span>
                            <b>"Notify me when a review waits for me, of comments where I take part, and when a run of mine fails"</b>
                            <span class="hint">"While no tab of Countersign is in sight. A click opens the review or the run, and decides nothing."</span>
                        </span>
                    </label>
                    <Show when=is_on>
                        <label class="role">
                            <input
                                type="checkbox"
                                role="switch"
                                prop:checked=move || choice.with(|choice| choice.says_what)
                                on:change=while_shown(says_what)
                            />
                            <span>
                                <b>"Show what is asked"</b>
                                <span class="hint">"The title, the flow, the deadline and who comments, also to others who see your screen. Otherwise only the severity."</span>
                            </span>
                        </label>
                    </Show>
                </Show>
                <p class="soft small" role="status">{move || barred().unwrap_or_else(told)}</p>
            </div>
        </section>
    }
}
