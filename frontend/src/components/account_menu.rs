//! The person's menu: who they are, the state of the connection, settings of this browser, and logging out.

use icondata::Icon as IconData;
use leptos::html;
use leptos::prelude::*;

use super::commands::{Command, Commands};
use super::focus::focus_on;
use super::glyph::Glyph;
use super::shortcuts::{self, is_mac};
use super::theme::{self, Theme};
use crate::client::{Connection, Live, Session, Workspace, use_api};
use crate::state::drafts::Drafts;
use crate::state::outbox::{Outbox, not_sent};
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

/// The button with the person's initials, and the menu that it opens.
#[component]
pub fn AccountMenu(
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
    let begin = move || {
        open.set(true);
        stays.set(None);
        warned.set_value(None);
    };
    let log_out = move || {
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
    let wear = move |choice: Theme| {
        theme.set(choice);
        theme::apply(choice);
    };
    let flip_shortcuts = move || {
        shortcuts.update(|on| *on = !*on);
        shortcuts::switch(shortcuts.get_untracked());
    };
    // The button gets the focus back once the dialog is closed.
    let give_way = move |to: RwSignal<bool>| {
        open.set(false);
        drop(who.get_untracked().map(|who| who.focus()));
        to.set(true);
    };
    let commands = Commands::expect();
    // The palette opens above the menu, which would take its Escape.
    Effect::new(move |_| {
        if commands.open.get() {
            open.set(false);
        }
    });
    commands.offer(Section::Everywhere, move || {
        let themes = THEMES.into_iter().filter(|(choice, ..)| *choice != theme.get_untracked());
        let themes = themes.map(|(choice, label, _)| Command::new(format!("Theme: {label}"), move || wear(choice)));
        let single = if shortcuts.get_untracked() { "off" } else { "on" };
        let single = Command::new(format!("Turn single-key shortcuts {single}"), flip_shortcuts);
        let leave = Command::new("Log out", move || {
            // The menu says what would be lost, and whether it failed.
            if !open.get_untracked() {
                begin();
            }
            focus_on("#account > button:last-of-type");
            log_out();
        });
        themes.chain([single, leave]).collect()
    });
    view! {
        <div class="account">
            <button
                node_ref=who
                class=class
                title=move || format!("{}. {}", name().unwrap_or_default(), state().1)
                aria-label=move || format!("{}: account and settings", words::initials(&name().unwrap_or_default()))
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
                {move || words::initials(&name().unwrap_or_default())}
            </button>
            <span class="state" role="status">{move || state().0}</span>
            // On a phone, where it stands among the names of pages, unless the connection needs the place.
            <span class="state name" aria-hidden="true">"Account"</span>
            <Show when=move || open.get()>
                <div class="veil" on:click=move |_| open.set(false)></div>
                <div class="menu" id="account" role="group" aria-label="Account and settings">
                    <div class="about">
                        <b>{name}</b>
                        <span class="tiny muted">{roles}</span>
                        <span class="tiny muted">{move || state().1}</span>
                    </div>
                    <div class="tabs" role="group" aria-label="Theme">
                        {THEMES
                            .map(|(choice, label, icon)| {
                                view! {
                                    <button
                                        aria-pressed=move || (theme.get() == choice).to_string()
                                        on:click=move |_| wear(choice)
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
                        on:click=move |_| flip_shortcuts()
                    >
                        <Glyph icon=icondata::LuCaseLower />
                        "Single-key shortcuts"
                        <span class="muted">{move || if shortcuts.get() { "on" } else { "off" }}</span>
                    </button>
                    {move || stays.get().map(|says| view! { <p class="mistake" role="alert">{says}</p> })}
                    <button aria-disabled=move || leaving.get().to_string() on:click=move |_| log_out()>
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
