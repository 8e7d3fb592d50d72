//! One action that a gate holds back: all its arguments, and what shall happen to it.

use leptos::html;
use leptos::prelude::*;
use serde_json::Value;
use shared::definition::{ActionKind, AlternativeChoice, ContentType};
use shared::error::pointer;
use shared::grant::GrantScope;
use shared::review::{Action, ActionType, Review};

use super::guardrails::GuardrailNotes;
use super::head::at_stake;
use super::item::count_unsound;
use super::pane::Pane;
use super::request::request;
use super::value::{json, texts};
use crate::client::Session;
use crate::components::diff::Diff;
use crate::components::focus::{FIELD, focus_within};
use crate::components::inert::{inert, named};
use crate::components::schema_form::SchemaForm;
use crate::state::action_words;
use crate::state::drafts::{Chosen, Draft};
use crate::state::extent;
use crate::state::guardrail_notes::{self, NotePlace};
use crate::state::record::{self, CallOutcome};
use crate::state::verdict;

/// The card of an action that a gate holds back: what it does, and the answers to choose from.
#[component]
pub fn ActionCard(pane: Pane, action: Action) -> impl IntoView {
    let id = StoredValue::new(action.id.clone());
    let held = StoredValue::new(action.clone());
    let open = Memo::new(move |_| pane.is_open());
    // Once the review is over, only the record says what became of the call.
    let outcome =
        Memo::new(move |_| pane.review.with(|review| held.with_value(|action| record::outcome_of(review, action))));
    let vetoed =
        Memo::new(move |_| pane.review.with(|review| held.with_value(|action| record::is_vetoed(review, action))));
    let over = Memo::new(move |_| pane.review.with(|review| !review.is_pending()));
    let drafted = move |draft: &Draft| id.with_value(|id| draft.actions.get(id).cloned());
    let typed = Memo::new(move |_| {
        let typed = || pane.workspace.drafts.with(|drafts| drafts.get(pane.id).and_then(drafted));
        (!over.get()).then(typed).flatten().unwrap_or_default()
    });
    let chosen = Memo::new(move |_| {
        let allowed = |kind: &ActionKind| held.with_value(|action| action.allowed_decisions.contains(kind));
        typed.with(|typed| typed.answer().filter(allowed))
    });
    let message = Memo::new(move |_| typed.with(|typed| typed.message.clone()));
    // The other arguments that the person would have, or that were approved.
    let edited = Memo::new(move |_| {
        let arguments = match outcome.get() {
            Some(CallOutcome::Edited(arguments)) => Some(arguments),
            Some(_) => None,
            None => typed.with(|typed| typed.arguments.clone()),
        };
        arguments.filter(|arguments| held.with_value(|action| action.arguments != *arguments))
    });
    let before = Memo::new(move |_| {
        let before = pane.before.get()?;
        let old =
            id.with_value(|id| before.actions.iter().find(|old| old.id == *id).map(|old| old.arguments.clone()))?;
        held.with_value(|action| old != action.arguments).then_some((before.revision, old))
    });
    let leave = Memo::new(move |_| {
        let draft = pane.draft();
        let checked = pane.checked.get();
        pane.review.with(|review| held.with_value(|action| guardrail_notes::leave(review, &draft, &checked, action)))
    });
    let card = NodeRef::<html::Section>::new();
    let choose = move |kind: ActionKind| {
        pane.workspace.write(&pane.review.get_untracked(), |draft| {
            draft.actions.entry(id.get_value()).or_default().press(Chosen::Answer(kind));
        });
        // It opens a form, unless it was taken back. To say why something is rejected is up to the person.
        let opens = matches!(kind, ActionKind::Edit | ActionKind::Respond) && chosen.get_untracked() == Some(kind);
        if let (Some(card), true) = (card.get_untracked(), opens) {
            focus_within(&card, format!(".edit {FIELD}"));
        }
    };
    let instead = Memo::new(move |_| typed.with(|typed| typed.alternative().map(str::to_owned)));
    let choose_instead = move |alternative: String| {
        pane.workspace.write(&pane.review.get_untracked(), |draft| {
            draft.actions.entry(id.get_value()).or_default().press(Chosen::Alternative { alternative });
        });
    };
    let offered: Vec<_> = pane.review.with_untracked(|review| review.choices_for(&action).cloned().collect::<Vec<_>>());
    let offer = move |choice: AlternativeChoice| {
        let says = choice.to_string();
        let label = format!("Choose this instead: {}", choice.description);
        let id = StoredValue::new(choice.id);
        let chosen = move || instead.with(|instead| id.with_value(|id| instead.as_ref() == Some(id)));
        view! {
            <div class="facts">
                <span>{inert(&says)}</span>
                <button
                    type="button"
                    class="b sm"
                    aria-label=named(&label)
                    aria-pressed=move || chosen().to_string()
                    on:click=move |_| choose_instead(id.get_value())
                >
                    "Choose this instead"
                </button>
            </div>
        }
    };
    let alternatives = offered.into_iter().map(offer).collect_view();
    let base = pointer(["verdict", "decisions", action.id.as_str()]);
    let own = base.clone();
    let mistakes = Memo::new(move |_| {
        let inside = |path: &str| {
            path == own || path.strip_prefix(&own).is_some_and(|rest| rest == "/message" || rest == "/remember")
        };
        pane.mistakes
            .with(|all| all.iter().filter(|one| inside(&one.path)).map(|one| one.message.clone()).collect::<Vec<_>>())
    });
    let first = pane.review.with_untracked(|review| {
        let editable = |action: &&Action| action.allowed_decisions.contains(&ActionKind::Edit);
        let items = review.items.iter().any(|item| item.editable);
        !items && review.actions.iter().find(editable).map(|first| &first.id) == Some(&action.id)
    });
    Effect::new(move |previous: Option<()>| {
        pane.edit.track();
        if previous.is_some() && first && untrack(move || pane.is_open()) {
            choose(ActionKind::Edit);
        }
    });
    let what = match (&action.action_type, &action.agent) {
        (ActionType::Tool, Some(agent)) => format!("tool call of {agent}"),
        (ActionType::Tool, None) => "tool call".to_owned(),
        (ActionType::Agent, _) => "agent about to run".to_owned(),
        (ActionType::Emergent, Some(agent)) => format!("new specialist of {agent}"),
        (ActionType::Emergent, None) => "new specialist".to_owned(),
        (ActionType::Output, _) => "final output".to_owned(),
        (ActionType::StrategyOverride, _) => "change of strategy".to_owned(),
    };
    let words = action_words::words(action.action_type);
    let allowed = action.allowed_decisions.clone();
    let button = move |kind: ActionKind| {
        let (label, class) = match kind {
            ActionKind::Approve => ("Approve", "b sm yes"),
            ActionKind::Edit => (words.edit, "b sm change"),
            ActionKind::Reject => ("Reject", "b sm no"),
            ActionKind::Respond => (words.respond, "b sm"),
        };
        allowed.contains(&kind).then(|| {
            view! {
                <button
                    type="button"
                    class=class
                    aria-pressed=move || (chosen.get() == Some(kind)).to_string()
                    on:click=move |_| choose(kind)
                >
                    {label}
                </button>
            }
        })
    };
    let buttons = [ActionKind::Approve, ActionKind::Edit, ActionKind::Reject, ActionKind::Respond].map(button);
    // Who decides for somebody else allows this call only.
    let session = Session::expect();
    let grantable = Memo::new(move |_| {
        let offered = |review: &Review| held.with_value(|action| review.grantable.contains(&action.id));
        pane.review.with(|review| offered(review) && session.decides_for(review).is_none())
    });
    let remembered = Memo::new(move |_| {
        pane.workspace.drafts.with(|drafts| held.with_value(|action| verdict::remembers(action, drafts.get(pane.id)?)))
    });
    let allow = move |(scope, label): (GrantScope, &'static str)| {
        let press = move |_| {
            pane.workspace.write(&pane.review.get_untracked(), |draft| {
                let own = draft.actions.entry(id.get_value()).or_default();
                own.remember = if remembered.get_untracked() == Some(scope) { None } else { Some(scope) };
                own.chosen = Some(Chosen::Answer(ActionKind::Approve));
            });
        };
        view! {
            <button
                type="button"
                class="b sm"
                title="Later calls of this tool are approved too, whatever their arguments"
                aria-pressed=move || (remembered.get() == Some(scope)).to_string()
                on:click=press
            >
                {label}
            </button>
        }
    };
    let scopes = [(GrantScope::Run, "Remember for this run"), (GrantScope::Flow, "Remember for this flow for 8 h")];
    let later = move || grantable.get().then(|| scopes.map(allow).collect_view());
    let schema = StoredValue::new(action.schema.clone().unwrap_or_else(|| Value::Object(shared::JsonMap::new())));
    let form_base = StoredValue::new(format!("{base}/arguments"));
    // A critical call among several is opened before it can be decided.
    let opened = RwSignal::new(!pane.review.with_untracked(|review| review.is_one_by_one()));
    let folded = Memo::new(move |_| open.get() && !opened.get());
    let arguments = Value::Object(action.arguments.clone());
    let none = action.arguments.is_empty();
    let is_read = action_words::is_read(action.action_type);
    // What is made or changed in the run itself sends nothing to anybody.
    let sent = action.request.clone().filter(|_| action.action_type == ActionType::Tool);
    view! {
        <section node_ref=card class="card action" class:folded=folded aria-label=action.name.clone()>
            <header>
                <code>{inert(&action.name)}</code>
                <span class="muted cut">{what}</span>
                <span class="grow"></span>
                {move || match (outcome.get(), chosen.get()) {
                    (Some(_), _) if vetoed.get() => Some(view! { <span class="tag stop">{words.blocked.to_owned()}</span> }),
                    (Some(outcome), _) => {
                        let (class, says) = outcome.says(words);
                        Some(view! { <span class=class>{says}</span> })
                    }
                    (None, None) if instead.with(Option::is_some) => {
                        Some(view! { <span class="tag">{format!("{}, an alternative is chosen", words.not)}</span> })
                    }
                    (None, kind) => {
                        let (class, says) = words.would(kind, leave.get());
                        (kind.is_some() || open.get()).then(|| view! { <span class=class>{says}</span> })
                    }
                }}
            </header>
            <Show when=move || folded.get()>
                <button type="button" class="b sm unfold" aria-expanded="false" on:click=move |_| opened.set(true)>
                    "Open this call to decide it"
                </button>
            </Show>
            {move || {
                let outcome = outcome.get()?;
                let message = outcome.message()?;
                Some(view! { <p class="describes">{inert(message)}</p> })
            }}
            {action.stakes.as_deref().map(|stakes| {
                let tags = at_stake(stakes, stakes.category.clone()).into_iter().map(|(class, text)| view! { <span class=class>{inert(&text)}</span> });
                let follows = stakes.consequences.iter().map(|text| view! { <span class="muted">{inert(text)}</span> });
                view! { <div class="facts">{tags.collect_view()}{follows.collect_view()}</div> }
            })}
            {action.description.as_ref().map(|text| view! { <p class="describes">{inert(text)}</p> })}
            {move || {
                before
                    .get()
                    .map(|(revision, old)| {
                        view! {
                            <p class="describes"><b>{format!("Changed since revision {revision}")}</b></p>
                            <Diff content_type=ContentType::Json old=Value::Object(old) new=Value::Object(held.with_value(|a| a.arguments.clone())) />
                        }
                    })
            }}
            <div class:json=!is_read hidden=move || open.get() && chosen.get() == Some(ActionKind::Edit)>
                {match none {
                    true => view! { <p class="none">{words.nothing}</p> }.into_any(),
                    false if is_read => texts(&action.arguments),
                    false => json(&arguments),
                }}
            </div>
            {sent.as_ref().map(|sent| request(sent, &arguments, over))}
            <GuardrailNotes pane=pane place=NotePlace::Action(id.get_value()) />
            <Show when=move || open.get() && chosen.get() == Some(ActionKind::Edit)>
                <div class="edit" on:focusout=move |_| pane.check()>
                    <EditArguments
                        pane=pane
                        id=id.get_value()
                        schema=schema.get_value()
                        base=form_base.get_value()
                        shown=held.with_value(|action| action.arguments.clone())
                    />
                </div>
            </Show>
            {move || {
                edited
                    .get()
                    .map(|new| {
                        view! {
                            <p class="describes">
                                <b>{if over.get() { "What was changed before it was approved" } else { "Your changes" }}</b>
                            </p>
                            <Diff
                                content_type=ContentType::Json
                                old=Value::Object(held.with_value(|action| action.arguments.clone()))
                                new=Value::Object(new)
                            />
                        }
                    })
            }}
            <Show when=move || open.get() && matches!(chosen.get(), Some(ActionKind::Reject | ActionKind::Respond))>
                <div class="edit">
                    <textarea
                        class="textarea"
                        rows="2"
                        placeholder=move || {
                            let kind = chosen.get().unwrap_or(ActionKind::Reject);
                            held.with_value(|action| action_words::asks_for(action, kind))
                        }
                        aria-label="Message"
                        aria-invalid=move || (!mistakes.with(Vec::is_empty)).to_string()
                        prop:value=message
                        on:focusout=move |_| pane.check()
                        on:input=move |event| {
                            let text = event_target_value(&event);
                            pane.workspace
                                .write(
                                    &pane.review.get_untracked(),
                                    |draft| draft.actions.entry(id.get_value()).or_default().message = text,
                                );
                        }
                    ></textarea>
                </div>
            </Show>
            {move || mistakes.get().into_iter().map(|text| view! { <p class="mistake pad">{text}</p> }).collect_view()}
            <div class="instead" hidden=move || !open.get() || folded.get()>{alternatives}</div>
            <footer hidden=move || !open.get() || folded.get()>{buttons.collect_view()}{later}</footer>
        </section>
    }
}

#[component]
fn EditArguments(pane: Pane, id: String, schema: Value, base: String, shown: shared::JsonMap) -> impl IntoView {
    let current = pane.workspace.draft_now(pane.id).actions.get(&id).and_then(|own| own.arguments.clone());
    let current = Value::Object(current.unwrap_or_else(|| shown.clone()));
    if let Some(reason) = extent::too_large_to_send(&current) {
        return view! { <p class="banner warn">{reason}</p> }.into_any();
    }
    let value = RwSignal::new(current);
    let sound = RwSignal::new(true);
    count_unsound(pane, sound);
    Effect::new(move |previous: Option<()>| {
        let value = value.get();
        let (true, Value::Object(arguments)) = (previous.is_some() && sound.get(), value) else { return };
        pane.workspace.write(&pane.review.get_untracked(), |draft| {
            let own = draft.actions.entry(id.clone()).or_default();
            own.arguments = (arguments != shown).then_some(arguments);
        });
    });
    let mistakes = Signal::derive(move || pane.mistakes.get());
    view! { <SchemaForm schema=schema value=value errors=mistakes base=base sound=sound /> }.into_any()
}
