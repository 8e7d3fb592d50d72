//! The person's menu: who they are, the state of the connection, settings of this browser, and logging out.

use icondata::Icon as IconData;
use leptos::html;
use leptos::prelude::*;

use super::commands::{Command, Commands};
use super::focus::focus_on;
use super::glyph::Glyph;
use super::log_out::LogOut;
use super::shortcuts::{self, is_mac};
use super::theme::{self, Theme};
use crate::client::{Connection, Live, Session};
use crate::state::palette::Section;
use crate::state::shortcuts::COMMANDS;
use crate::state::words;

const THEMES: [(Theme, &str, IconData); 3] = [
    (Theme::System, "System", icondata::LuMonitor),
    (Theme::Light, "Light", icondata::LuSun),
    (Theme::Dark, "Dark", icondata::LuMoon),
];

/// The state of the connection, as a word and as a sentence.
fn connection_words(connection: Connection) -> (&'static str, &'static str) {
    match connection {
        Connection::Open => ("Live", "Connected"),
        Connection::Opening => ("Connecting", "Connecting…"),
        Connection::Lost { .. } => ("Offline", "The connection is lost. What you see may be out of date."),
        Connection::Closed => ("Closed", "Not connected."),
    }
}

/// What a person chooses for this browser. Cheap to copy into closures.
#[derive(Clone, Copy)]
struct Preferences {
    theme: RwSignal<Theme>,
    shortcuts: RwSignal<bool>,
}

impl Preferences {
    fn stored() -> Self {
        Self { theme: RwSignal::new(theme::stored()), shortcuts: RwSignal::new(shortcuts::are_on()) }
    }

    fn wear(self, choice: Theme) {
        self.theme.set(choice);
        theme::apply(choice);
    }

    fn flip_shortcuts(self) {
        self.shortcuts.update(|on| *on = !*on);
        shortcuts::switch(self.shortcuts.get_untracked());
    }

    /// The other themes, and the other way of single-key shortcuts.
    fn commands(self) -> Vec<Command> {
        let themes = THEMES.into_iter().filter(|(choice, ..)| *choice != self.theme.get_untracked());
        let themes =
            themes.map(|(choice, label, _)| Command::new(format!("Theme: {label}"), move || self.wear(choice)));
        let single = if self.shortcuts.get_untracked() { "off" } else { "on" };
        let single = Command::new(format!("Turn single-key shortcuts {single}"), move || self.flip_shortcuts());
        themes.chain([single]).collect()
    }
}

/// The name of the person who is logged in.
fn name_in(session: Session) -> Option<String> {
    session.me.with(|me| me.as_ref().map(|me| me.display_name.clone().unwrap_or_else(|| me.username.to_string())))
}

/// The button with the person's initials, and the menu that it opens.
#[component]
pub fn AccountMenu(
    /// Opens the list of keyboard shortcuts.
    help: RwSignal<bool>,
) -> impl IntoView {
    let session = expect_context::<Session>();
    let live = expect_context::<Live>();
    let commands = expect_context::<Commands>();
    let open = RwSignal::new(false);
    let who = NodeRef::<html::Button>::new();
    let preferences = Preferences::stored();
    let log_out = LogOut::new();
    let name = move || name_in(session).unwrap_or_default();
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
    // The palette opens above the menu, which would take its Escape.
    Effect::new(move |_| {
        if commands.open.get() {
            open.set(false);
        }
    });
    let begin = move || {
        open.set(true);
        log_out.begin();
    };
    commands.offer(Section::Everywhere, move || {
        let leave = Command::new("Log out", move || {
            // The menu says what would be lost, and whether it failed.
            if !open.get_untracked() {
                begin();
            }
            focus_on("#account > button:last-of-type");
            log_out.press();
        });
        preferences.commands().into_iter().chain([leave]).collect()
    });
    view! {
        <div class="account">
            <button
                node_ref=who
                class=class
                title=move || format!("{}. {}", name(), state().1)
                aria-label=move || format!("{}: account and settings", words::initials(&name()))
                aria-controls="account"
                aria-expanded=move || open.get().to_string()
                on:click=move |_| {
                    if open.get_untracked() {
                        open.set(false);
                    } else {
                        begin();
                        focus_on("#account button");
                    }
                }
            >
                {move || words::initials(&name())}
            </button>
            <span class="state" role="status">{move || state().0}</span>
            // On a phone, where it stands among the names of pages, unless the connection needs the place.
            <span class="state name" aria-hidden="true">"Account"</span>
            <Show when=move || open.get()>
                <Menu open who help preferences log_out />
            </Show>
        </div>
    }
}

#[component]
fn Menu(
    open: RwSignal<bool>,
    /// The button that opened the menu.
    who: NodeRef<html::Button>,
    help: RwSignal<bool>,
    preferences: Preferences,
    log_out: LogOut,
) -> impl IntoView {
    let session = expect_context::<Session>();
    let live = expect_context::<Live>();
    let commands = expect_context::<Commands>();
    let roles = move || session.me.with(|me| me.as_ref().map(|me| me.roles.join(", ")));
    // The button gets the focus back once the dialog is closed.
    let give_way = move |to: RwSignal<bool>| {
        open.set(false);
        drop(who.get_untracked().map(|who| who.focus()));
        to.set(true);
    };
    let Preferences { theme, shortcuts } = preferences;
    let themes = THEMES.map(|(choice, label, icon)| {
        view! {
            <button aria-pressed=move || (theme.get() == choice).to_string() on:click=move |_| preferences.wear(choice)>
                <Glyph icon=icon />
                " "
                {label}
            </button>
        }
    });
    view! {
        <div class="veil" on:click=move |_| open.set(false)></div>
        <div class="menu" id="account" role="group" aria-label="Account and settings">
            <div class="about">
                <b>{move || name_in(session)}</b>
                <span class="tiny muted">{roles}</span>
                <span class="tiny muted">{move || connection_words(live.connection.get()).1}</span>
            </div>
            <div class="tabs" role="group" aria-label="Theme">{themes.collect_view()}</div>
            <a href="/people?tab=notifications" on:click=move |_| open.set(false)>
                <Glyph icon=icondata::LuBell />
                "Notifications"
            </a>
            <button on:click=move |_| give_way(commands.open)>
                <Glyph icon=icondata::LuCommand />
                <span class="grow">"All commands"</span>
                <kbd aria-hidden="true">{if is_mac() { "⌘ K" } else { COMMANDS.keys }}</kbd>
            </button>
            <button on:click=move |_| give_way(help)>
                <Glyph icon=icondata::LuKeyboard />
                "Keyboard shortcuts"
            </button>
            <button
                aria-pressed=move || shortcuts.get().to_string()
                on:click=move |_| preferences.flip_shortcuts()
            >
                <Glyph icon=icondata::LuCaseLower />
                "Single-key shortcuts"
                <span class="muted">{move || if shortcuts.get() { "on" } else { "off" }}</span>
            </button>
            {move || log_out.stays.get().map(|says| view! { <p class="mistake" role="alert">{says}</p> })}
            <button aria-disabled=move || log_out.leaving.get().to_string() on:click=move |_| log_out.press()>
                <Glyph icon=icondata::LuLogOut />
                {move || log_out.says()}
            </button>
        </div>
    }
}
