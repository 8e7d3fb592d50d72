//! The bar at the bottom, with the note and the decision; or the reason why this person cannot decide.

use leptos::prelude::*;
use shared::definition::ChoiceKind;
use shared::review::{ActionType, Review, ReviewOption};

use super::note_field::NoteField;
use super::option_form::OptionForm;
use super::pane::Pane;
use super::progress::Progress;
use super::standing::{ClaimedByOther, PausedSince, Votes, Why};
use crate::client::{Live, Session};
use crate::components::glyph::Glyph;
use crate::components::inert::{inert, inert_code, named};
use crate::components::listeners::while_shown;
use crate::state::drafts::Draft;
use crate::state::drafts::chosen::choice;
use crate::state::option_fields::PLACE;
use crate::state::outbox::held_until;
use crate::state::sentences::listed;
use crate::state::verdict::{self, Intent, keys};
use crate::state::{action_words, calls, effects, guardrail_notes, votes};

/// The bar at the bottom.
#[component]
pub fn Bar(pane: Pane) -> impl IntoView {
    let open = Memo::new(move |_| pane.is_open());
    view! {
        <div class="decide">
            <Votes pane=pane />
            <Progress pane=pane />
            <PausedSince pane=pane />
            <Show when=move || open.get() fallback=move || view! { <Why pane=pane /> }>
                <ClaimedByOther pane=pane />
                <OptionForm pane=pane />
                <NoteField pane=pane />
                <General pane=pane />
                <Acts pane=pane />
            </Show>
        </div>
    }
}

/// The mistakes that belong to no field, and a hint if there are others.
#[component]
fn General(pane: Pane) -> impl IntoView {
    let general = Memo::new(move |_| {
        let fields = ["/edits", "/verdict/decisions", PLACE];
        pane.mistakes.with(|all| {
            let general = all.iter().filter(|one| !fields.iter().any(|field| one.path.starts_with(field)));
            general.map(|one| one.message.clone()).collect::<Vec<_>>()
        })
    });
    let fields = move || pane.mistakes.with(Vec::len) - general.with(Vec::len);
    view! {
        <Show when=move || !pane.mistakes.with(Vec::is_empty)>
            <p class="banner stop" role="alert">
                <Glyph icon=icondata::LuTriangleAlert />
                <span>
                    {move || general.get().join(" ")}
                    {move || (fields() > 0).then_some(" Check the fields marked above. Nothing was sent.")}
                </span>
            </p>
        </Show>
    }
}

/// A decision that the bar has a button for.
#[derive(Debug, Clone, PartialEq)]
pub struct Act {
    pub intent: Intent,
    pub says: String,
    /// The effect of the decision.
    pub does: String,
    pub key: Option<String>,
    class: &'static str,
    /// Why it cannot be made yet, if so.
    pub barred: Option<String>,
    /// Whether the button opens a form instead of deciding.
    opens: bool,
}

/// Beside an option that accepts, while there is a text that could also ask for a change.
const ONLY_A_NOTE: &str = "What you wrote goes along only as a note.";

/// The decisions, in the order of their buttons. Follows the review and the draft.
pub fn acts(pane: Pane) -> Vec<Act> {
    pane.with_draft(|draft| pane.review.with(|review| acts_of(pane, review, draft)))
}

fn acts_of(pane: Pane, review: &Review, draft: &Draft) -> Vec<Act> {
    let mut acts = Vec::new();
    let written = !draft.text.trim().is_empty();
    let no_correction = effects::no_correction(review);
    let filled = pane.filled().map(|option| option.id);
    let shown = |option: &ReviewOption| filled.as_ref().is_none_or(|filled| *filled == option.id);
    // The form right above says it already.
    let is_said = filled.is_some() && review.voting.is_none();
    // Whoever typed a change must not take the first button for the one that asks for it.
    let may_be_change = written && review.free_text && no_correction.is_none() && !review.answers_in_words();
    for (index, option) in review.options.iter().enumerate().filter(|(_, option)| shown(option)) {
        let opens = option.fields.is_some() && filled.is_none();
        let says = verdict::option_says(review, draft, option);
        let first = keys::prefers_one(review) && review.first_accept().is_some_and(|first| first.id == option.id);
        let accepts = option.kind == ChoiceKind::Accept;
        let unwritten = accepts && verdict::unwritten(review, draft).next().is_some();
        acts.push(Act {
            intent: Intent::Choose(option.id.clone()),
            says: if opens { format!("{says}…") } else { says },
            does: {
                let does = match option.description {
                    Some(_) if is_said => String::new(),
                    _ => votes::does(review, accepts, effects::of_option(review, option)),
                };
                if accepts && may_be_change { format!("{} {ONLY_A_NOTE}", sentence_end(&does)) } else { does }
            },
            key: if filled.is_some() { Some("Ctrl ⏎".into()) } else { keys::of_option(review, index) },
            class: match option.kind {
                ChoiceKind::Accept if first || filled.is_some() => "b go",
                ChoiceKind::Stop => "b stop",
                _ => "b",
            },
            barred: if unwritten {
                Some(verdict::UNWRITTEN.to_owned())
            } else {
                no_correction.clone().filter(|_| option.kind == ChoiceKind::Correct)
            },
            opens,
        });
    }
    if filled.is_some() {
        return acts;
    }
    let text = |class, key: Option<String>, does: &str| Act {
        intent: Intent::Text,
        says: verdict::says(review, draft, &Intent::Text),
        does: does.to_owned(),
        key,
        class,
        barred: None,
        opens: false,
    };
    if review.answers_in_words() {
        if review.options.is_empty() || (written && review.free_text) {
            acts.push(text(
                if review.options.is_empty() { "b go" } else { "b" },
                Some("Ctrl ⏎".into()),
                &effects::of_text(review),
            ));
        }
    } else if !review.options.is_empty() && written && review.free_text && no_correction.is_none() {
        let does = votes::does(review, false, effects::of_text(review));
        acts.push(text("b", Some("Ctrl ⏎".into()), &does));
    }
    if let Some(first) = review.actions.first() {
        let words = action_words::words(first.action_type);
        let one_by_one = review.is_one_by_one();
        let (intent, says) = verdict::actions_say(review, draft);
        let waits = intent == Intent::Actions && review.actions.iter().any(|action| choice(action, draft).is_none());
        let rejected = review.actions.iter().filter(
            |action| matches!(choice(action, draft), Some(kind) if kind == shared::definition::ActionKind::Reject),
        );
        let rejected = rejected.count();
        let refuses = rejected == review.actions.len();
        let answered = review.actions.iter().filter(
            |action| matches!(choice(action, draft), Some(kind) if kind == shared::definition::ActionKind::Respond),
        );
        let runs_nothing = rejected + answered.count() == review.actions.len();
        let blocked = guardrail_notes::blocked(review, draft, &pane.checked.get());
        let in_vain = !refuses && blocked.len() + rejected == review.actions.len();
        let does = match verdict::follows(review, draft) {
            _ if refuses => words.rejected.to_owned(),
            _ if runs_nothing && first.action_type == ActionType::Tool => {
                "Nothing runs; your answer is used as the result.".to_owned()
            }
            _ if in_vain => "Nothing would run: a guardrail would block it.".to_owned(),
            _ if !blocked.is_empty() => {
                let names: Vec<String> = blocked.iter().map(|action| calls::named(review, action)).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                format!("Approved calls run, but a guardrail would block {}.", listed(&names))
            }
            Some(consequence) => consequence,
            _ if first.action_type == ActionType::Tool => "Approved calls run exactly as shown.".to_owned(),
            _ => format!("It {} exactly as shown.", words.happens),
        };
        acts.push(Act {
            intent,
            says,
            does,
            key: Some("a".into()),
            class: match (refuses, in_vain) {
                (true, _) => "b stop",
                (_, true) => "b",
                _ => "b go",
            },
            barred: waits.then(|| {
                if one_by_one { verdict::one_by_one(review) } else { "Each call needs an answer.".to_owned() }
            }),
            opens: false,
        });
        if !refuses && !one_by_one {
            acts.push(Act {
                says: verdict::says(review, draft, &Intent::RejectAll),
                intent: Intent::RejectAll,
                does: match first.action_type {
                    ActionType::Tool if written && first.agent.is_some() => {
                        "Nothing runs; the agent is told what you wrote."
                    }
                    _ => words.rejected,
                }
                .to_owned(),
                key: Some("r".into()),
                class: "b stop",
                barred: None,
                opens: false,
            });
        }
    }
    acts
}

/// A text with a full stop at its end, unless it ends with punctuation.
fn sentence_end(text: &str) -> String {
    if text.is_empty() || text.ends_with(['.', '?', '!', '…', '”']) { text.to_owned() } else { format!("{text}.") }
}

/// The buttons, and the effect of the one under the pointer.
#[component]
fn Acts(pane: Pane) -> impl IntoView {
    let session = Session::expect();
    let all = Memo::new(move |_| acts(pane));
    let about = RwSignal::new(None::<Intent>);
    let changed = Memo::new(move |_| pane.has_changed());
    let loses_edit = move || {
        let kind = |id: &str| {
            pane.review.with(|review| review.options.iter().find(|option| option.id == id).map(|option| option.kind))
        };
        let edits = pane.with_draft(|draft| !draft.edits.is_empty());
        match about.get() {
            Some(Intent::Choose(id)) => edits && kind(&id) != Some(ChoiceKind::Accept),
            Some(Intent::Text) => edits && pane.review.with(|review| !review.answers_in_words()),
            _ => false,
        }
    };
    let live = Live::expect();
    // The time to undo may be short, as it ends before the deadline.
    let undo = move || {
        let now = live.now.get();
        let seconds = pane.review.with(|review| held_until(review, now).0 - now.0) / 1_000_000;
        if seconds > 0 { format!(" {seconds}\u{a0}s to undo before it is sent.") } else { " Sent at once.".to_owned() }
    };
    let what = move || {
        all.with(|all| {
            let act = about.get().and_then(|about| all.iter().find(|act| act.intent == about)).or_else(|| all.first());
            let does = act.map(|act| act.barred.clone().unwrap_or_else(|| act.does.clone())).unwrap_or_default();
            let lost = if loses_edit() { " Your edit will be discarded." } else { "" };
            let whose = pane.review.with(|review| session.decides_for(review));
            let whose = whose.map(|owner| format!("On behalf of {owner}. ")).unwrap_or_default();
            let then = match act {
                Some(act) if act.barred.is_some() => String::new(),
                Some(act) if act.opens => " Opens its form; nothing is sent yet.".to_owned(),
                _ => undo(),
            };
            format!("{whose}{}{lost}{then}", sentence_end(&does)).trim_start().to_owned()
        })
    };
    view! {
        <div class="acts" class:blocked=changed>
            {move || {
                all.get()
                    .into_iter()
                    .map(|act| {
                        let intent = act.intent.clone();
                        let (hover, focus) = (act.intent.clone(), act.intent.clone());
                        let barred = act.barred.is_some();
                        let data_key = act.key.clone();
                        let title = named(&act.barred.clone().unwrap_or_else(|| act.does.clone()));
                        view! {
                            <button
                                type="button"
                                class=act.class
                                title=title
                                data-key=data_key
                                aria-disabled=move || (barred || changed.get()).to_string()
                                on:mouseenter=move |_| about.set(Some(hover.clone()))
                                on:mouseleave=move |_| about.set(None)
                                on:focus=move |_| about.set(Some(focus.clone()))
                                on:blur=while_shown(move |_| about.set(None))
                                on:click=move |_| {
                                    if !barred {
                                        if act.opens { pane.press(&intent) } else { pane.decide(&intent) }
                                    }
                                }
                            >
                                <span>{inert(&act.says)}</span>
                                {act.key.map(|key| view! { <kbd aria-hidden="true">{key}</kbd> })}
                            </button>
                        }
                    })
                    .collect_view()
            }}
            <Show when=move || pane.filled().is_some()>
                <button type="button" class="b ghost" on:click=move |_| pane.close_form()>"Back to the options"</button>
            </Show>
            <span class="what" aria-live="off">{move || inert_code(&what())}</span>
        </div>
    }
}
