//! Notifications that this browser shows: whether the person wants them, and whether the browser lets the console.

use leptos::prelude::*;

use super::CheckBox;
use crate::client::{BrowserNotifications, Permission};
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
    let flip = move |on: bool| {
        if on {
            switch_on.dispatch_local(());
        } else {
            choose(NotificationChoice { on: false, ..choice.get_untracked() });
        }
    };
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
                    <CheckBox
                        switch=true
                        label="Notify me when a review waits for me, of comments where I take part, and when a run of mine fails"
                        hint="While no tab of Countersign is in sight. A click opens the review or the run, and decides nothing."
                        on=Signal::derive(move || is_on() || asks.get())
                        set=flip
                    />
                    <Show when=is_on>
                        <CheckBox
                            switch=true
                            label="Show what is asked"
                            hint="The title, the flow, the deadline and who comments, also to others who see your screen. Otherwise only the severity."
                            on=Signal::derive(move || choice.with(|choice| choice.says_what))
                            set=move |says_what| choose(NotificationChoice { says_what, ..choice.get_untracked() })
                        />
                    </Show>
                </Show>
                <p class="soft small" role="status">{move || barred().unwrap_or_else(told)}</p>
            </div>
        </section>
    }
}
