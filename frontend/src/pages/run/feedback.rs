//! Feedback on the run's agents: a form, which keeps typed text until it is sent, and the earlier feedback that the
//! person may see.

use leptos::prelude::*;
use serde_json::{Value, json};
use shared::api::Page;
use shared::error::Problem;
use shared::feedback::{Feedback, FeedbackAspect, FeedbackQuery, FeedbackType, MAX_TEXT, NewFeedback};
use shared::id::FeedbackId;

use super::data::RunData;
use crate::client::{Workspace, use_api, use_post};
use crate::components::button::Button;
use crate::components::dialog::Dialog;
use crate::components::inert::{inert, inert_code, named};
use crate::components::menu::menu;
use crate::components::notice::Notifier;
use crate::components::states::Failed;
use crate::components::time::Ago;
use crate::state::drafts::Form;

const TYPES: [(FeedbackType, &str); 5] = [
    (FeedbackType::Correction, "Correction"),
    (FeedbackType::Guidance, "Guidance"),
    (FeedbackType::Preference, "Preference"),
    (FeedbackType::Praise, "Praise"),
    (FeedbackType::Complaint, "Complaint"),
];
const ASPECTS: [(FeedbackAspect, &str); 6] = [
    (FeedbackAspect::Accuracy, "Accuracy"),
    (FeedbackAspect::Style, "Style"),
    (FeedbackAspect::Speed, "Speed"),
    (FeedbackAspect::Judgment, "Judgment"),
    (FeedbackAspect::Communication, "Communication"),
    (FeedbackAspect::Other, "Something else"),
];
const IMPORTANCE: [(u8, &str); 5] =
    [(1, "1, a detail"), (2, "2"), (3, "3, as usual"), (4, "4"), (5, "5, it must not happen again")];

/// The feedback on the agents of a run. Cheap to copy into closures.
#[derive(Clone, Copy)]
pub struct RunFeedback(LocalResource<Result<Page<Feedback>, Problem>>);

impl RunFeedback {
    /// Loads the feedback on the agents of this run.
    pub fn of(data: RunData) -> Self {
        let api = use_api();
        Self(LocalResource::new(move || async move {
            let query = FeedbackQuery { run: Some(data.id), ..FeedbackQuery::default() };
            api.feedback(&query).await
        }))
    }
}

/// The feedback so far; nothing if there is none.
#[component]
pub fn Said(feedback: RunFeedback) -> impl IntoView {
    let api = use_api();
    let notices = expect_context::<Notifier>();
    let retry = Callback::new(move |()| feedback.0.refetch());
    let retract = Action::new_local(move |&id: &FeedbackId| async move {
        match api.retract_feedback(id).await {
            Ok(()) => notices.good("The feedback was retracted. No agent reads it any more."),
            Err(problem) => notices.bad(problem.to_string()),
        }
        feedback.0.refetch();
    });
    let list = move || match feedback.0.get()? {
        Ok(page) if page.items.is_empty() => None,
        Ok(page) => {
            let rows = page.items.iter().map(|said| row(said, retract)).collect_view();
            let more = page
                .next_cursor
                .is_some()
                .then(|| view! { <p class="small muted">"Older feedback is in the audit log."</p> });
            Some(view! { <ul class="feedback">{rows}</ul>{more} }.into_any())
        }
        Err(problem) => Some(view! { <Failed title="The feedback could not be loaded" problem retry /> }.into_any()),
    };
    move || list().map(|list| view! { <h2 class="sub">"Feedback"</h2>{list} })
}

/// Whoever sees feedback may retract it.
fn row(said: &Feedback, retract: Action<FeedbackId, ()>) -> impl IntoView + use<> {
    let (id, label) = (said.id, format!("Retract: {}", named(&said.content)));
    let about = format!("{}, {}, importance {}", said.feedback_type.as_str(), said.aspect.as_str(), said.importance);
    view! {
        <li>
            <span class="tiny muted"><code>{inert(&said.agent)}</code>" · "{about}</span>
            <p>{inert(&said.content)}</p>
            {said.context.as_deref().map(|context| view! { <p class="small soft">{inert(context)}</p> })}
            <span class="tiny muted">
                {said.by.to_string()}", "<Ago at=said.at/>" "
                <button
                    class="b sm"
                    aria-label=label
                    title="Agents do not read it any more. The audit log keeps it."
                    on:click=move |_| {
                        retract.dispatch_local(id);
                    }
                >
                    "Retract"
                </button>
            </span>
        </li>
    }
}

#[component]
pub fn FeedbackDialog(data: RunData, open: RwSignal<bool>, feedback: RunFeedback) -> impl IntoView {
    let api = use_api();
    let notices = expect_context::<Notifier>();
    let agents =
        Memo::new(move |_| data.run.with(|run| run.as_ref().map(|run| run.agents.clone()).unwrap_or_default()));
    let agent = RwSignal::new(0);
    let of_type = RwSignal::new(0);
    let aspect = RwSignal::new(ASPECTS.len() - 1);
    let importance = RwSignal::new(2);
    let content = RwSignal::new(String::new());
    let context = RwSignal::new(String::new());
    let workspace = expect_context::<Workspace>();
    let of = Form::Feedback(data.id);
    let choices = [agent, of_type, aspect, importance];
    if let Some(kept) = workspace.form(&of) {
        let text = |part: &str| kept.get(part).and_then(Value::as_str).unwrap_or_default().to_owned();
        content.set(text("content"));
        context.set(text("context"));
        let most = [usize::MAX, TYPES.len(), ASPECTS.len(), IMPORTANCE.len()];
        let chosen = kept.get("choices").and_then(Value::as_array).into_iter().flatten().map(Value::as_u64);
        for ((choice, at), most) in choices.into_iter().zip(chosen).zip(most) {
            if let Some(at) = at.and_then(|at| usize::try_from(at).ok()).filter(|at| *at < most) {
                choice.set(at);
            }
        }
    }
    Effect::new(move |_| {
        let (content, context) = (content.get(), context.get());
        let chosen = choices.map(|choice| choice.get());
        let is_typed = !content.trim().is_empty() || !context.trim().is_empty();
        let form = || json!({ "content": content, "context": context, "choices": chosen }).as_object().cloned();
        workspace.write_form(&of, is_typed.then(form).flatten(), false);
    });
    let of = Form::Feedback(data.id);
    let problem = RwSignal::new(None::<Problem>);
    let (give, busy) = use_post(format!("feedback on {}", data.id), move |new: NewFeedback, key| {
        let of = of.clone();
        problem.set(None);
        async move {
            let answer = api.give_feedback(data.id, &new, Some(&key)).await;
            problem.set(answer.as_ref().err().cloned());
            if answer.is_ok() {
                // This runs even if the page is gone.
                workspace.write_form(&of, None, false);
                open.set(false);
                content.set(String::new());
                context.set(String::new());
                notices.good("The feedback was recorded.");
                feedback.0.refetch();
            }
            answer
        }
    });
    let send = move || {
        give.run(NewFeedback {
            agent: agents.with_untracked(|agents| agents.get(agent.get_untracked()).cloned().unwrap_or_default()),
            feedback_type: TYPES[of_type.get_untracked()].0,
            aspect: ASPECTS[aspect.get_untracked()].0,
            content: content.get_untracked().trim().to_owned(),
            importance: IMPORTANCE[importance.get_untracked()].0,
            context: Some(context.get_untracked().trim().to_owned()).filter(|context| !context.is_empty()),
        });
    };
    view! {
        <Dialog open title="Give feedback">
            <form class="in" on:submit=move |event| { event.prevent_default(); send(); }>
                <p class="soft">"It is recorded. An agent whose flow has "<code>"feedback"</code>" reads the newest feedback in later runs."</p>
                <div class="feedback-fields">
                    {move || menu("Agent", agents.get(), agent.get_untracked(), move |at| agent.set(at))}
                    {menu("Type", TYPES.map(|(_, words)| words), of_type.get_untracked(), move |at| of_type.set(at))}
                    {menu("About", ASPECTS.map(|(_, words)| words), aspect.get_untracked(), move |at| aspect.set(at))}
                    {menu("Importance", IMPORTANCE.map(|(_, words)| words), importance.get_untracked(), move |at| importance.set(at))}
                </div>
                <label class="field">
                    <span class="label">"Your feedback"</span>
                    <textarea class="textarea" rows="4" required maxlength=MAX_TEXT.to_string() bind:value=content></textarea>
                </label>
                <label class="field">
                    <span class="label">"What it is based on (optional)"</span>
                    <textarea class="textarea" rows="2" maxlength=MAX_TEXT.to_string() bind:value=context></textarea>
                </label>
                {move || problem.get().map(|problem| view! { <p class="mistake" role="alert">{inert_code(&problem.to_string())}</p> })}
                <div class="actions">
                    <button type="button" class="b" on:click=move |_| open.set(false)>"Close"</button>
                    <Button class="b primary" off=busy>{move || if busy.get() { "Sending…" } else { "Give feedback" }}</Button>
                </div>
            </form>
        </Dialog>
    }
}
