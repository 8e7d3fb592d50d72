//! Notifications outside the page: those of this browser, the person's rules and addresses for e-mail and Slack, and for
//! admins, messages that could not be delivered.

use leptos::prelude::*;
use shared::access::Act;
use shared::definition::Severity;
use shared::error::Problem;
use shared::id::DeliveryId;
use shared::notification::{Channel, Delivery, MAX_RULES, Notifications, Occasion, Rule};

use super::rows::{row, table};
use super::this_browser::ThisBrowser;
use super::{elsewhere, mistake_at, mistakes};
use crate::client::{Session, to_show, use_api};
use crate::components::button::Button;
use crate::components::glyph::Glyph;
use crate::components::inert::inert_code;
use crate::components::menu::menu;
use crate::components::states::{Empty, Loaded};
use crate::state::notification_rules::{after, flip, is_on, next_rule, waits};
use crate::state::words;

/// The rules, the addresses, and for admins the undelivered messages.
#[component]
pub fn NotificationsTab() -> impl IntoView {
    let api = use_api();
    let session = expect_context::<Session>();
    let known = LocalResource::new(move || async move { api.notifications(None).await });
    let choice = |known: Notifications| {
        if known.available.is_empty() && known.applied().is_empty() {
            return view! { <Empty icon=icondata::LuBell title="E-mail and Slack are not set up" text=NOTHING/> }
                .into_any();
        }
        view! { <Choice known/> }.into_any()
    };
    view! {
        <p class="soft lead">"Reviews appear in the inbox at once. Choose how else you are notified."</p>
        <ThisBrowser/>
        <h2>"E-mail and Slack"</h2>
        <Loaded from=known failed="Your notification settings could not be loaded" rows=4 children=choice/>
        <Show when=move || session.may(Act::ManageDeliveries)><GivenUp/></Show>
    }
}

/// The hint for a server without a channel for notifications.
const NOTHING: &str = "An admin sets up Slack or a mail server in countersign.toml, under [notifications].";

fn name(channel: Channel) -> &'static str {
    match channel {
        Channel::Slack => "Slack",
        Channel::Email => "E-mail",
    }
}

fn event_words(event: Occasion) -> &'static str {
    match event {
        Occasion::Requested => "I am asked to decide",
        Occasion::Expiring => "its deadline is near",
        Occasion::Resolved => "it is resolved",
        Occasion::Commented => "others comment on it",
        Occasion::RunWaiting => "my run waits for people",
        Occasion::RunCompleted => "my run completes",
        Occasion::RunFailed => "my run fails",
        Occasion::RunCancelled => "my run is cancelled",
    }
}

#[component]
fn Choice(known: Notifications) -> impl IntoView {
    let api = use_api();
    let session = expect_context::<Session>();
    let (slack, mail) = (known.available.contains(&Channel::Slack), known.available.contains(&Channel::Email));
    let none = known.available.is_empty();
    let chosen = RwSignal::new(known.clone());
    let saved = RwSignal::new(known);
    let problem = RwSignal::new(None::<Problem>);
    let dirty = Memo::new(move |_| saved.with(|saved| chosen.with(|chosen| saved != chosen)));
    let count = Memo::new(move |_| chosen.with(|chosen| chosen.applied().len()));
    let has_own = Memo::new(move |_| chosen.with(|chosen| chosen.rules.is_some()));
    let has_default = Memo::new(move |_| chosen.with(|chosen| !chosen.default_rules.is_empty()));
    // The editor of a rule shows the rule with which it was made.
    let returned = RwSignal::new(());
    let save = Action::new_local(move |chosen_now: &Notifications| {
        let chosen_now = chosen_now.clone();
        problem.set(None);
        async move {
            let answer = api.choose_notifications(None, &chosen_now).await;
            match &answer {
                Ok(now) => {
                    saved.set(now.clone());
                    // What was changed meanwhile is not saved yet.
                    if chosen.with_untracked(|chosen| *chosen == chosen_now) {
                        chosen.set(now.clone());
                    }
                }
                Err(refused) => problem.set(to_show(refused.clone())),
            }
            answer.is_ok()
        }
    });
    let (busy, done) = (save.pending(), save.value());
    let add = move |()| {
        chosen.update(|chosen| {
            let next = next_rule(chosen);
            chosen.own_rules().extend(next);
        });
    };
    let use_default = move |()| {
        chosen.update(|chosen| chosen.rules = None);
        returned.set(());
    };
    let told = move || match (has_own.get(), has_default.get()) {
        (false, true) => "This is the default of this server. If you change it, your own rules apply instead.",
        (true, true) if count.get() == 0 => "You are not notified outside the console. These are your own rules.",
        (true, true) => "These are your own rules. The default of this server does not apply.",
        _ if count.get() == 0 => "You are not notified outside the console.",
        _ => "",
    };
    let admins = session.me.with_untracked(|me| me.as_ref().and_then(|me| me.email.clone()));
    let unknown = admins.is_none();
    let lacks = move |channel: Channel| {
        chosen.with(|chosen| {
            let missing = match channel {
                Channel::Slack => chosen.slack_user_id.is_none(),
                Channel::Email => chosen.email.is_none() && unknown,
            };
            missing && chosen.applied().iter().any(|rule| rule.channel == channel)
        })
    };
    let mail_wrong = mistake_at(problem, "/email");
    let mail_address = move |hint: String| {
        let set = move |event| {
            let text = Some(event_target_value(&event)).filter(|text| !text.is_empty());
            chosen.update(|chosen| chosen.email = text);
        };
        view! {
            <div class="notification-address">
                <label class="field">
                    <span class="label">"Your e-mail address"</span>
                    <span class="hint">{hint}</span>
                    <input class="input" autocomplete="off" autocapitalize="off" spellcheck="false"
                        prop:value=move || chosen.with(|chosen| chosen.email.clone()).unwrap_or_default()
                        on:input=set aria-invalid=move || mail_wrong().is_some().to_string()/>
                </label>
                <span class="mistake" aria-live="polite">
                    {move || mail_wrong().or_else(|| lacks(Channel::Email).then(|| "Until this is filled in, these rules have no effect.".to_owned()))}
                </span>
                <Try channel=Channel::Email dirty/>
            </div>
        }
    };
    // Only an admin can set a member ID: nothing here proves whose it is. And only its owner can confirm it.
    let member = move || {
        let id = Memo::new(move |_| chosen.with(|chosen| chosen.slack_user_id.clone()));
        let open = Memo::new(move |_| chosen.with(|chosen| chosen.slack_user_id.is_some() && !chosen.slack_confirmed));
        let confirm = move |_| chosen.update(|chosen| chosen.slack_confirmed = true);
        let remove = move |_| chosen.update(|chosen| (chosen.slack_user_id, chosen.slack_confirmed) = (None, false));
        view! {
            <div class="notification-address">
                <div class="field">
                    <span class="label">"Your member ID in Slack"</span>
                    <span class="hint">"An admin sets it, and you confirm that it is yours. From then on, what this member presses in messages counts as your decision."</span>
                    <span>{move || id.get().unwrap_or_else(|| "Not set.".to_owned())}</span>
                </div>
                <Show when=move || open.get()>
                    <button type="button" class="b" on:click=confirm>"It is mine"</button>
                </Show>
                <Show when=move || id.get().is_some()>
                    <button type="button" class="b" on:click=remove>"Remove"</button>
                </Show>
                <span class="mistake" aria-live="polite">
                    {move || lacks(Channel::Slack).then_some("Until an admin sets it, these rules have no effect.")}
                </span>
                <Try channel=Channel::Slack dirty/>
            </div>
        }
    };
    let mail_hint = admins.map_or_else(
        || "No admin has set one for you.".to_owned(),
        |address| format!("If empty, e-mails go to {address}."),
    );
    let other = elsewhere(problem, &["/rules", "/email"]);
    view! {
        <form class="notifications" on:submit=move |event| { event.prevent_default(); save.dispatch_local(chosen.get_untracked()); } novalidate>
            {none.then(|| view! { <p class="banner warn">"None of these notifications can be sent at the moment. "{NOTHING}</p> })}
            <div class="card">
                {move || { returned.track(); (0..count.get()).map(|at| rule_view(chosen, problem, at)).collect_view() }}
                <footer>
                    <Button class="b" off=Signal::derive(move || none || count.get() >= MAX_RULES) press=add><Glyph icon=icondata::LuPlus/>"Add a rule"</Button>
                    <Show when=move || has_default.get()><Button class="b" off=Signal::derive(move || !has_own.get()) press=use_default>"Use the default"</Button></Show>
                    <span class="muted small">{told}</span>
                </footer>
            </div>
            {slack.then(member)}
            {mail.then(|| mail_address(mail_hint))}
            {move || other().map(|why| view! { <p class="banner stop" role="alert">{inert_code(&why)}</p> })}
            <div class="notification-save">
                <Button class="b primary" off=Signal::derive(move || busy.get() || !dirty.get())>"Save"</Button>
                <span class="muted small" role="status">{move || if busy.get() { "Saving…" } else if dirty.get() { "Not saved yet." } else if done.get() == Some(true) { "Saved." } else { "" }}</span>
            </div>
        </form>
    }
}

/// The editor of one rule, which exists as long as the rule does and follows `chosen`.
fn rule_view(chosen: RwSignal<Notifications>, problem: RwSignal<Option<Problem>>, at: usize) -> impl IntoView {
    let change = move |change: &mut dyn FnMut(&mut Rule)| {
        chosen.update(|chosen| chosen.own_rules().get_mut(at).into_iter().for_each(change));
    };
    let Some(rule) = chosen.with_untracked(|chosen| chosen.applied().get(at).cloned()) else { return ().into_any() };
    let mut channels = chosen.with_untracked(|chosen| chosen.available.clone());
    if !channels.contains(&rule.channel) {
        channels.push(rule.channel);
    }
    let channel = channels.iter().position(|channel| *channel == rule.channel).unwrap_or_default();
    let channel_words: Vec<_> = channels.iter().map(|channel| name(*channel)).collect();
    let (all, wait) = waits(&rule);
    let wait_words = all.iter().map(|seconds| match seconds {
        0 => "at once".to_owned(),
        more => format!("after {}", words::length(i64::try_from(*more).unwrap_or(0) * 1_000_000)),
    });
    let wait_words: Vec<_> = wait_words.collect();
    let events = Occasion::ALL.iter().copied().map(|event| {
        let on = move || chosen.with(|chosen| chosen.applied().get(at).is_some_and(|rule| is_on(&rule.events, &event)));
        chip(event_words(event), on, move |_| change(&mut |rule| flip(Occasion::ALL, &mut rule.events, event)))
    });
    let severities = Severity::ALL.iter().copied().map(|one| {
        let on =
            move || chosen.with(|chosen| chosen.applied().get(at).is_some_and(|rule| is_on(&rule.severities, &one)));
        chip(one.as_str(), on, move |_| {
            change(&mut |rule| {
                flip(Severity::ALL, &mut rule.severities, one);
                if rule.severities.len() == Severity::ALL.len() {
                    rule.severities.clear();
                }
            });
        })
    });
    let wrong = move || problem.with(|problem| mistakes(problem.as_ref()?, &format!("/rules/{at}")));
    let remove = move |_| drop(chosen.try_update(|chosen| chosen.own_rules().remove(at)));
    view! {
        <fieldset class="rule">
            <legend class="sr">{format!("Rule {}", at + 1)}</legend>
            {menu("Where", channel_words, channel, move |new| change(&mut |rule| rule.channel = channels[new]))}
            {menu("How soon", wait_words, wait, move |new| change(&mut |rule| rule.after = after(all[new])))}
            <div class="field" role="group" aria-label="Notify me when"><span class="label">"Notify me when"</span><div class="chips">{events.collect_view()}</div></div>
            <div class="field" role="group" aria-label="Severity"><span class="label">"Severity"</span><div class="chips">{severities.collect_view()}</div></div>
            <button type="button" class="b ghost icon" aria-label="Remove this rule" title="Remove this rule" on:click=remove><Glyph icon=icondata::LuTrash2/></button>
            <span class="mistake" aria-live="polite">{wrong}</span>
        </fieldset>
    }
    .into_any()
}

fn chip(
    words: &'static str,
    on: impl Fn() -> bool + Send + Sync + 'static,
    flip: impl FnMut(web_sys::MouseEvent) + 'static,
) -> impl IntoView {
    view! { <button type="button" class="chip" aria-pressed=move || on().to_string() on:click=flip>{words}</button> }
}

/// A button that sends a test message to the person, using the saved settings, and shows the result.
#[component]
fn Try(channel: Channel, dirty: Memo<bool>) -> impl IntoView {
    let api = use_api();
    let send = Action::new_local(move |(): &()| async move {
        let answer = api.test_notification(channel).await;
        answer.map_err(|why| mistakes(&why, "/channel").unwrap_or_else(|| why.to_string()))
    });
    let (busy, said) = (send.pending(), send.value());
    let hint = Signal::derive(move || dirty.get().then(|| "Save first".to_owned()));
    view! {
        <Button class="b" off=Signal::derive(move || busy.get() || dirty.get()) title=hint press=move |()| { send.dispatch_local(()); }>"Send a test"</Button>
        <span class="small" role="status">{move || if busy.get() { view! { "Sending…" }.into_any() } else { match said.get() {
            None => ().into_any(),
            Some(Ok(())) => view! { <span class="go">"Test sent."</span> }.into_any(),
            Some(Err(why)) => view! { <span class="stop">"Not sent: "{inert_code(&why)}</span> }.into_any(),
        }}}</span>
    }
}

/// The messages that were given up, for another attempt; nothing if there are none.
#[component]
fn GivenUp() -> impl IntoView {
    let api = use_api();
    let all = LocalResource::new(move || async move { api.given_up().await.map(|page| page.items) });
    let again = Action::new_local(move |&id: &DeliveryId| async move {
        let sent = api.retry_delivery(id).await;
        all.refetch();
        sent
    });
    let sent = again.value();
    move || {
        let (loaded, refused) = match all.get() {
            None => (Vec::new(), None),
            Some(Ok(all)) => (all, None),
            Some(Err(problem)) => (Vec::new(), Some(problem)),
        };
        let why = sent.get().and_then(Result::err).or(refused);
        let why =
            why.map(|problem| view! { <p class="banner stop" role="alert">{inert_code(&problem.to_string())}</p> });
        (why.is_some() || !loaded.is_empty()).then(|| {
            let rows = loaded.into_iter().map(|message: Delivery| {
                let what = format!("{} to {}: {}", message.channel, message.target, message.event);
                let reason = message.error.unwrap_or_default();
                let more = format!("{reason} · {}", words::count(message.attempts as usize, "attempt", "attempts"));
                row(what, more, "b sm", "Try again", move |_| {
                    again.dispatch_local(message.id);
                })
            });
            view! {
                <h2>"Undeliverable"</h2>
                <p class="soft lead">"Messages to people and programs that could not be delivered. Only admins see this."</p>
                {why}
                {table(rows.collect(), "")}
            }
        })
    }
}
