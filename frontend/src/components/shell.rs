//! The frame around every page: the navigation, the state of the connection, and the person's menu. It also decides
//! what is shown until it is known who is logged in.

use icondata::Icon as IconData;
use leptos::html;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_location, use_navigate};
use shared::access::Act;
use shared::error::{Code, Problem};
use wasm_bindgen::JsCast;

use super::focus::{focus_on, keep_focus};
use super::glyph::Glyph;
use super::held::HeldElsewhere;
use super::help::Help;
use super::shortcuts::{self, swallow_typing_on};
use super::states::{Failed, Loading};
use super::status_strip::StatusStrip;
use super::theme::{self, Theme};
use crate::client::{Connection, Live, Notifier, Session, Workspace, use_api};
use crate::state::drafts::Drafts;
use crate::state::inbox::Inbox;
use crate::state::outbox::{Outbox, not_sent};
use crate::state::words;

/// The page on which a second factor is set up.
const SECURITY: &str = "/people?tab=security";

/// The frame around every page.
#[component]
pub fn Shell(children: ChildrenFn) -> impl IntoView {
    swallow_typing_on(Notifier::expect());
    keep_focus();
    let session = Session::expect();
    let location = use_location();
    let navigate = use_navigate();
    Effect::new(move |_| {
        if session.signed_out.get() {
            // A person who has logged out is not known any more, so their session has not just ended.
            let ended = if session.me.with_untracked(Option::is_some) { "ended=1&" } else { "" };
            session.me.set(None);
            let search = location.search.get_untracked();
            let mark = if search.is_empty() { "" } else { "?" };
            let here = format!("{}{mark}{search}", location.pathname.get_untracked());
            let next = String::from(js_sys::encode_uri_component(&here));
            navigate(
                &format!("/login?{ended}next={next}"),
                NavigateOptions { replace: true, ..NavigateOptions::default() },
            );
        }
    });
    let navigate = use_navigate();
    Effect::new(move |_| {
        if session.factor_missing.get() {
            session.factor_missing.set(false);
            let here = (location.pathname.get_untracked(), location.query.with_untracked(|query| query.get("tab")));
            if here != ("/people".to_owned(), Some("security".to_owned())) {
                navigate(SECURITY, NavigateOptions { replace: true, ..NavigateOptions::default() });
            }
        }
    });
    let known = Memo::new(move |_| session.me.with(Option::is_some));
    let help = RwSignal::new(false);
    let reading = Memo::new(move |_| location.pathname.with(|path| path.starts_with("/reviews/")));
    view! {
        <div class="shell">
            // Without this, the router would handle clicks on these links and leave the page.
            <a
                class="skip"
                href="#content"
                on:click=move |event| {
                    event.prevent_default();
                    focus_on("#content");
                }
            >
                "Skip to content"
            </a>
            <Show when=move || reading.get()>
                <a class="skip" href="#content" on:click=skip_to_decision>"Skip to the decision"</a>
            </Show>
            <Show when=move || known.get() fallback=move || view! { <Waiting /> }>
                <Rail help />
                <main class="content" id="content" tabindex="-1">
                    <StatusStrip />
                    <div class="outlet">{children()}</div>
                    <HeldElsewhere />
                </main>
                <Help open=help />
            </Show>
        </div>
    }
}

/// Moves the focus to the decision of the open review; if it cannot be decided, to the review.
fn skip_to_decision(event: web_sys::MouseEvent) {
    event.prevent_default();
    let way = document().query_selector(".to-decision").ok().flatten();
    match way.and_then(|way| way.dyn_into::<web_sys::HtmlElement>().ok()) {
        Some(way) => way.click(),
        None => focus_on(".read"),
    }
}

/// The page until it is known who is logged in.
#[component]
fn Waiting() -> impl IntoView {
    let session = Session::expect();
    view! {
        <div class="waiting">
            {move || match session.error.get() {
                Some(why) if !session.signed_out.get() => {
                    let retry = Callback::new(move |()| drop(window().location().reload()));
                    let problem = Problem::new(Code::Unavailable).detail(why);
                    view! { <Failed title="Countersign cannot be reached" problem=problem retry=retry /> }.into_any()
                }
                _ => view! { <Loading rows=4 /> }.into_any(),
            }}
        </div>
    }
}

#[component]
fn Rail(help: RwSignal<bool>) -> impl IntoView {
    let session = Session::expect();
    let live = Live::expect();
    // Handed-off reviews are not counted, since nothing waits for them.
    let numbers = Memo::new(move |_| live.inbox.with(Inbox::numbers));
    let pending = Memo::new(move |_| numbers.get().map_or(0, |numbers| numbers.blocking()));
    let audit = move || session.may(Act::ReadAudit);
    let admin = Memo::new(move |_| session.may(Act::ManagePeople));
    view! {
        <nav class="rail" aria-label="Main">
            <RailLink href="/inbox" icon=icondata::LuInbox label=Signal::stored("Inbox".to_owned()) also="/reviews">
                <Show when=move || { pending.get() > 0 }>
                    <span class="n" aria-label=move || numbers.get().map(|numbers| numbers.says())>
                        {move || if pending.get() > 99 { "99+".to_owned() } else { pending.get().to_string() }}
                    </span>
                </Show>
            </RailLink>
            <RailLink href="/runs" icon=icondata::LuRoute label=Signal::stored("Runs".to_owned()) />
            <RailLink href="/flows" icon=icondata::LuWorkflow label=Signal::stored("Flows".to_owned()) />
            <RailLink
                href="/insights"
                icon=icondata::LuChartColumn
                label=Signal::stored("Insights".to_owned())
            />
            <Show when=audit>
                <RailLink href="/audit" icon=icondata::LuShieldCheck label=Signal::stored("Audit".to_owned()) />
            </Show>
            <RailLink
                href="/people"
                icon=icondata::LuUsers
                label=Signal::derive(move || if admin.get() { "People".to_owned() } else { "You".to_owned() })
            />
            <span class="space"></span>
            <Menu help />
        </nav>
    }
}

#[component]
fn RailLink(
    href: &'static str,
    icon: IconData,
    #[prop(into)] label: Signal<String>,
    /// Another prefix of paths that belong to this link.
    #[prop(optional)]
    also: Option<&'static str>,
    #[prop(optional)] children: Option<Children>,
) -> impl IntoView {
    let location = use_location();
    let on = Memo::new(move |_| {
        location.pathname.with(|path| path.starts_with(href) || also.is_some_and(|also| path.starts_with(also)))
    });
    view! {
        <a
            href=href
            class=move || if on.get() { "on" } else { "" }
            title=label
            aria-current=move || on.get().then_some("page")
        >
            <Glyph icon=icon />
            <span class="label">{label}</span>
            {children.map(|children| children())}
        </a>
    }
}

/// The state of the connection, as a word and as a sentence.
fn connection_words(connection: Connection) -> (&'static str, &'static str) {
    match connection {
        Connection::Open => ("Live", "Connected"),
        Connection::Opening => ("Connecting", "Connecting…"),
        Connection::Lost { .. } => ("Offline", "The connection is lost. What you see may be out of date."),
        Connection::Closed => ("Closed", "Not connected."),
    }
}

#[component]
fn Menu(
    /// Opens the list of keyboard shortcuts.
    help: RwSignal<bool>,
) -> impl IntoView {
    let session = Session::expect();
    let live = Live::expect();
    let api = use_api();
    let workspace = Workspace::expect();
    let open = RwSignal::new(false);
    let who = NodeRef::<html::Button>::new();
    let theme = RwSignal::new(theme::stored());
    let shortcuts = RwSignal::new(shortcuts::are_on());
    let name = move || {
        session.me.with(|me| me.as_ref().map(|me| me.display_name.clone().unwrap_or_else(|| me.username.to_string())))
    };
    let roles = move || session.me.with(|me| me.as_ref().map(|me| me.roles.join(", ")));
    let state = move || connection_words(live.connection.get());
    let class = move || match live.connection.get() {
        Connection::Open => "who open",
        Connection::Lost { .. } => "who lost",
        _ => "who",
    };
    let close = window_event_listener(leptos::ev::keydown, move |event| {
        if event.key() == "Escape" && open.get_untracked() {
            // The page below would leave the open review.
            event.prevent_default();
            open.set(false);
            focus_on(".who");
        }
    });
    on_cleanup(move || close.remove());
    // Why the person is still logged in. It is shown here, since a notice would cover the button for another attempt.
    let stays = RwSignal::new(None::<String>);
    let leave = Action::new_local(move |(): &()| async move {
        // Unsent decisions can be sent again or taken back before the person leaves.
        match workspace.finish().await {
            Ok(true) => {}
            Ok(false) => return,
            Err(reason) => return stays.set(Some(format!("You are still logged in. {reason}"))),
        }
        match session.leave(api).await {
            Ok(()) => workspace.clear(),
            Err(problem) => stays.set(Some(format!("You are still logged in. {problem} Log out again in a moment."))),
        }
    });
    let leaving = leave.pending();
    let sending = Memo::new(move |_| workspace.outbox.with(|outbox| outbox.unanswered().next().is_some()));
    // The warning that was shown since the menu was opened.
    let warned = StoredValue::new(None::<String>);
    let log_out = move |_| {
        // Drafts are those of all tabs.
        let drafts = workspace.drafts.with_untracked(Drafts::count);
        let unsent = workspace.outbox.with_untracked(Outbox::unsent);
        let counts = [
            (!unsent.is_empty()).then(|| not_sent(unsent.len())),
            (drafts > 0).then(|| words::count(drafts, "draft", "drafts")),
        ];
        let lost = counts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let warning = Some(lost)
            .filter(|lost| !lost.is_empty())
            .map(|lost| format!("{lost}. Log out again to discard what was not sent."));
        if warning.is_some() && warned.with_value(|warned| *warned != warning) {
            warned.set_value(warning.clone());
            stays.set(warning);
        } else if !leaving.get_untracked() {
            stays.set(None);
            leave.dispatch_local(());
        }
    };
    view! {
        <div class="account">
            <button
                node_ref=who
                class=class
                title=move || format!("{}. {}", name().unwrap_or_default(), state().1)
                aria-label=move || format!("{}: account and settings", initials(&name().unwrap_or_default()))
                aria-controls="account"
                aria-expanded=move || open.get().to_string()
                on:click=move |_| {
                    open.update(|open| *open = !*open);
                    stays.set(None);
                    warned.set_value(None);
                    if open.get_untracked() {
                        focus_on("#account button");
                    }
                }
            >
                {move || initials(&name().unwrap_or_default())}
            </button>
            <span class="state" role="status">{move || state().0}</span>
            <Show when=move || open.get()>
                <div class="veil" on:click=move |_| open.set(false)></div>
                <div class="menu" id="account" role="group" aria-label="Account and settings">
                    <div class="about">
                        <b>{name}</b>
                        <span class="tiny muted">{roles}</span>
                        <span class="tiny muted">{move || state().1}</span>
                    </div>
                    <div class="tabs" role="group" aria-label="Theme">
                        {[
                            (Theme::System, "System", icondata::LuMonitor),
                            (Theme::Light, "Light", icondata::LuSun),
                            (Theme::Dark, "Dark", icondata::LuMoon),
                        ]
                            .map(|(choice, label, icon)| {
                                view! {
                                    <button
                                        aria-pressed=move || (theme.get() == choice).to_string()
                                        on:click=move |_| {
                                            theme.set(choice);
                                            theme::apply(choice);
                                        }
                                    >
                                        <Glyph icon=icon />
                                        " "
                                        {label}
                                    </button>
                                }
                            })
                            .collect_view()}
                    </div>
                    <a href="/people?tab=notifications" on:click=move |_| open.set(false)>
                        <Glyph icon=icondata::LuBell />
                        "Notifications"
                    </a>
                    <button on:click=move |_| {
                        open.set(false);
                        // It gets the focus back once the list is closed.
                        drop(who.get_untracked().map(|who| who.focus()));
                        help.set(true);
                    }>
                        <Glyph icon=icondata::LuKeyboard />
                        "Keyboard shortcuts"
                    </button>
                    <button
                        aria-pressed=move || shortcuts.get().to_string()
                        on:click=move |_| {
                            shortcuts.update(|on| *on = !*on);
                            shortcuts::switch(shortcuts.get_untracked());
                        }
                    >
                        <Glyph icon=icondata::LuCaseLower />
                        "Single-key shortcuts"
                        <span class="muted">{move || if shortcuts.get() { "on" } else { "off" }}</span>
                    </button>
                    {move || stays.get().map(|says| view! { <p class="mistake" role="alert">{says}</p> })}
                    <button aria-disabled=move || leaving.get().to_string() on:click=log_out>
                        <Glyph icon=icondata::LuLogOut />
                        {move || match (leaving.get(), sending.get()) {
                            (false, _) => "Log out",
                            (true, true) => "Sending your decisions…",
                            (true, false) => "Logging out…",
                        }}
                    </button>
                </div>
            </Show>
        </div>
    }
}

/// Up to two capital letters that stand for a person.
pub fn initials(name: &str) -> String {
    let mut words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let letters: String = match (words.next(), words.next()) {
        (Some(first), Some(second)) => first.chars().take(1).chain(second.chars().take(1)).collect(),
        (Some(only), None) => only.chars().take(2).collect(),
        _ => "?".to_owned(),
    };
    letters.to_uppercase()
}
