//! One action that a gate holds back: all its arguments, and what shall happen to it.

use leptos::prelude::*;
use serde_json::Value;
use shared::definition::{ActionKind, ContentType, Severity};
use shared::error::pointer;
use shared::grant::GrantScope;
use shared::review::{Action, ActionType};

use super::item::count_unsound;
use super::pane::Pane;
use super::request::request;
use super::value::json;
use crate::components::diff::Diff;
use crate::components::inert::inert;
use crate::components::schema_form::SchemaForm;
use crate::components::states::focus_on;
use crate::state::verdict;

/// One action.
#[component]
pub fn ActionCard(pane: Pane, action: Action) -> impl IntoView {
    let id = StoredValue::new(action.id.clone());
    let held = StoredValue::new(action.clone());
    let chosen = Memo::new(move |_| {
        pane.desk.drafts.with(|drafts| {
            let draft = drafts.get(pane.id)?;
            held.with_value(|action| verdict::choice(action, draft))
        })
    });
    let message = Memo::new(move |_| {
        let text =
            |draft: &crate::state::drafts::Draft| id.with_value(|id| draft.actions.get(id).map(|a| a.message.clone()));
        pane.desk.drafts.with(|drafts| drafts.get(pane.id).and_then(text)).unwrap_or_default()
    });
    let edited = Memo::new(move |_| {
        let arguments = pane.desk.drafts.with(|drafts| {
            let draft = drafts.get(pane.id)?;
            id.with_value(|id| draft.actions.get(id)?.arguments.clone())
        });
        arguments.filter(|arguments| held.with_value(|action| action.arguments != *arguments))
    });
    let before = Memo::new(move |_| {
        let before = pane.before.get()?;
        let old =
            id.with_value(|id| before.actions.iter().find(|old| old.id == *id).map(|old| old.arguments.clone()))?;
        held.with_value(|action| old != action.arguments).then_some((before.revision, old))
    });
    let choose = move |kind: ActionKind| {
        pane.desk.write(&pane.review.get_untracked(), |draft| {
            let own = draft.actions.entry(id.get_value()).or_default();
            own.choice = if own.choice == Some(kind) { None } else { Some(kind) };
            own.remember = None;
        });
    };
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
            focus_on(".edit :is(input, select, textarea)");
        }
    });
    let what = match (&action.action_type, &action.agent) {
        (ActionType::Tool, Some(agent)) => format!("tool call of {agent}, runs if you approve"),
        (ActionType::Tool, None) => "tool call, runs if you approve".to_owned(),
        (ActionType::Agent, _) => "agent about to run".to_owned(),
        (ActionType::Emergent, _) => "new specialist".to_owned(),
        (ActionType::Output, _) => "final output".to_owned(),
        (ActionType::StrategyOverride, _) => "change of strategy".to_owned(),
    };
    let allowed = action.allowed_decisions.clone();
    let button = move |kind: ActionKind| {
        let (label, class) = match kind {
            ActionKind::Approve => ("Approve", "b sm yes"),
            ActionKind::Edit => ("Edit arguments", "b sm change"),
            ActionKind::Reject => ("Reject", "b sm no"),
            ActionKind::Respond => ("Answer instead", "b sm"),
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
    let grantable = action.allowed_decisions.contains(&ActionKind::Approve)
        && pane
            .review
            .with_untracked(|review| review.stakes.severity != Severity::Critical && review.policy.is_first());
    let remembered = Memo::new(move |_| {
        pane.desk.drafts.with(|drafts| held.with_value(|action| verdict::remembers(action, drafts.get(pane.id)?)))
    });
    let allow = move |(scope, label): (GrantScope, &'static str)| {
        let press = move |_| {
            pane.desk.write(&pane.review.get_untracked(), |draft| {
                let own = draft.actions.entry(id.get_value()).or_default();
                own.remember = if remembered.get_untracked() == Some(scope) { None } else { Some(scope) };
                own.choice = Some(ActionKind::Approve);
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
    let scopes = [(GrantScope::Run, "Allow for this run"), (GrantScope::Flow, "Allow for this flow for 8 h")];
    let later = grantable.then(|| scopes.map(allow).collect_view());
    let open = Memo::new(move |_| pane.is_open());
    let schema = StoredValue::new(action.schema.clone().unwrap_or_else(|| Value::Object(shared::JsonMap::new())));
    let form_base = StoredValue::new(format!("{base}/arguments"));
    let arguments = Value::Object(action.arguments.clone());
    let none = action.arguments.is_empty();
    view! {
        <section class="card action" aria-label=action.name.clone()>
            <header>
                <code>{inert(&action.name)}</code>
                <span class="muted cut">{what}</span>
                <span class="grow"></span>
                {move || {
                    chosen
                        .get()
                        .map(|kind| match kind {
                            ActionKind::Approve => view! { <span class="tag go">"runs as asked"</span> },
                            ActionKind::Edit => view! { <span class="tag accent">"runs with your arguments"</span> },
                            ActionKind::Reject => view! { <span class="tag stop">"does not run"</span> },
                            ActionKind::Respond => view! { <span class="tag">"does not run, your answer is its result"</span> },
                        })
                }}
            </header>
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
            <div class="json" hidden=move || open.get() && chosen.get() == Some(ActionKind::Edit)>
                {if none { view! { <p class="none">"Called without arguments"</p> }.into_any() } else { json(&arguments) }}
            </div>
            {action.request.as_ref().map(|sent| request(sent, &arguments))}
            <Show when=move || open.get() && chosen.get() == Some(ActionKind::Edit)>
                <div class="edit">
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
                            <p class="describes"><b>"Your changes"</b></p>
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
                            if chosen.get() == Some(ActionKind::Respond) { "The result that the agent gets instead" } else { "Why not? The agent is told." }
                        }
                        aria-label="Message"
                        aria-invalid=move || (!mistakes.with(Vec::is_empty)).to_string()
                        prop:value=message
                        on:input=move |event| {
                            let text = event_target_value(&event);
                            pane.desk
                                .write(
                                    &pane.review.get_untracked(),
                                    |draft| draft.actions.entry(id.get_value()).or_default().message = text,
                                );
                        }
                    ></textarea>
                </div>
            </Show>
            {move || mistakes.get().into_iter().map(|text| view! { <p class="mistake pad">{text}</p> }).collect_view()}
            <footer hidden=move || !open.get()>{buttons.collect_view()}{later}</footer>
        </section>
    }
}

#[component]
fn EditArguments(pane: Pane, id: String, schema: Value, base: String, shown: shared::JsonMap) -> impl IntoView {
    let current = pane.desk.draft_now(pane.id).actions.get(&id).and_then(|own| own.arguments.clone());
    let value = RwSignal::new(Value::Object(current.unwrap_or_else(|| shown.clone())));
    let sound = RwSignal::new(true);
    count_unsound(pane, sound);
    Effect::new(move |previous: Option<()>| {
        let value = value.get();
        let (true, Value::Object(arguments)) = (previous.is_some() && sound.get(), value) else { return };
        pane.desk.write(&pane.review.get_untracked(), |draft| {
            let own = draft.actions.entry(id.clone()).or_default();
            own.arguments = (arguments != shown).then_some(arguments);
        });
    });
    let mistakes = Signal::derive(move || pane.mistakes.get());
    view! { <SchemaForm schema=schema value=value errors=mistakes base=base sound=sound /> }
}
