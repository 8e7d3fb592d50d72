//! The frame around every page, with the navigation. It also decides what is shown until it is known who is logged in.

use icondata::Icon as IconData;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_location, use_navigate};
use shared::access::Act;
use shared::error::{Code, Problem};
use wasm_bindgen::JsCast;

use super::account_menu::AccountMenu;
use super::focus::{focus_on, keep_focus};
use super::glyph::Glyph;
use super::held::HeldElsewhere;
use super::help::Help;
use super::shortcuts::{ignore_held_enter, swallow_typing_on};
use super::states::{Failed, Loading};
use super::status_strip::StatusStrip;
use super::time;
use crate::client::{BrowserNotifications, Live, Notifier, Session};
use crate::state::inbox::Inbox;

/// The beginnings of the paths that belong to the inbox, beside its own.
const OF_INBOX: &[&str] = &["/reviews", "/decided"];
/// The page on which a second factor is set up.
const SECURITY: &str = "/people?tab=security";

#[component]
pub fn Shell(children: ChildrenFn) -> impl IntoView {
    swallow_typing_on(expect_context::<Notifier>());
    ignore_held_enter();
    keep_focus();
    let session = expect_context::<Session>();
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
    let navigate = use_navigate();
    expect_context::<BrowserNotifications>().start(move |path| navigate(path, NavigateOptions::default()), time::day);
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
    let session = expect_context::<Session>();
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
    let session = expect_context::<Session>();
    let live = expect_context::<Live>();
    // Handed-off reviews are not counted, since nothing waits for them.
    let numbers = Memo::new(move |_| live.inbox.with(Inbox::numbers));
    let pending = Memo::new(move |_| numbers.get().map_or(0, |numbers| numbers.blocking()));
    let audit = move || session.may(Act::ReadAudit);
    let admin = Memo::new(move |_| session.may(Act::ManagePeople));
    let people = Signal::derive(move || if admin.get() { "People" } else { "You" }.to_owned());
    view! {
        <nav class="rail" aria-label="Main">
            <RailLink href="/inbox" icon=icondata::LuInbox label="Inbox" also=OF_INBOX>
                <Show when=move || { pending.get() > 0 }>
                    <span class="n" aria-label=move || numbers.get().map(|numbers| numbers.says())>
                        {move || if pending.get() > 99 { "99+".to_owned() } else { pending.get().to_string() }}
                    </span>
                </Show>
            </RailLink>
            <RailLink href="/runs" icon=icondata::LuRoute label="Runs" />
            <RailLink href="/flows" icon=icondata::LuWorkflow label="Flows" />
            <RailLink href="/insights" icon=icondata::LuChartColumn label="Insights" />
            <Show when=audit>
                <RailLink href="/audit" icon=icondata::LuShieldCheck label="Audit" />
            </Show>
            <RailLink href="/people" icon=icondata::LuUsers label=people />
            <span class="space"></span>
            <AccountMenu help />
        </nav>
    }
}

#[component]
fn RailLink(
    href: &'static str,
    icon: IconData,
    #[prop(into)] label: Signal<String>,
    /// Other prefixes of paths that belong to this link.
    #[prop(optional)]
    also: &'static [&'static str],
    #[prop(optional)] children: Option<Children>,
) -> impl IntoView {
    let location = use_location();
    let on = Memo::new(move |_| {
        location.pathname.with(|path| path.starts_with(href) || also.iter().any(|also| path.starts_with(also)))
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
