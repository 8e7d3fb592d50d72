//! How people see a question of an agent: the title, the content, and the possible answers.

use serde_json::{Value, json};
use shared::definition::{ChoiceKind, ContentType, OnTimeout, Reviewers, Severity, Stakes};
use shared::review::{Item, ReviewKind, ReviewOption};

use super::calls;
use super::words::{ABORT, CONTENT, CONTINUE, DELEGATE, DONE, GO_ON, MODIFY, PAUSE, RESUME, TAKE_OVER, TAKEN};
use crate::engine::ask::content::node::alternative;
use crate::engine::ask::content::{Content, schema_of};
use crate::engine::ask_builtin::{
    APPROVE, Ask, Checkpoint, Clarification, DraftToEdit, Escalation, Handoff, OfferedChoice, Proposal, REJECT,
};
use crate::flow::embed;

/// Below this confidence, a draft is presented with high severity.
const UNSURE: f64 = 0.5;

/// How an agent can be relieved of its step; empty if no agent asks.
#[derive(Debug, Default)]
pub(super) struct Relief {
    /// JSON Schema of an answer in place of the agent's.
    pub answer: Option<Value>,
    /// Whether an answer is required: somebody waits for it, and there are no state keys to write instead.
    pub needs_answer: bool,
    /// The other agents, which can take over.
    pub agents: Vec<String>,
}

/// Presents a question, with a text from which the title of its review is made. `who` names whoever asks; `agent` is
/// `None` if that is no agent.
pub(super) fn content(agent: Option<&str>, who: &str, ask: Ask, relief: &Relief) -> Content {
    match ask {
        Ask::Clarification(question) => clarification(agent, question),
        Ask::Edit(draft) => edit(who, draft),
        Ask::Approval(proposal) => approval(who, *proposal),
        Ask::Calls(calls) => calls::content(agent, who, *calls),
        Ask::Escalation(escalation) => self::escalation(who, *escalation, relief),
        Ask::Checkpoint(checkpoint) => self::checkpoint(who, *checkpoint, relief),
        Ask::Handoff(handoff) => self::handoff(who, handoff),
    }
}

/// Changes the options after a pause: resume replaces continue and pause.
pub(super) fn offer_to_resume(options: &mut Vec<ReviewOption>) {
    options.retain(|option| !matches!(&*option.id, CONTINUE | PAUSE));
    let does = "It continues as planned.".to_owned();
    options.insert(0, option(RESUME.to_owned(), "Resume".to_owned(), Some(does)));
}

fn clarification(agent: Option<&str>, asked: Clarification) -> Content {
    let Clarification { question, context, category, options, allow_free_text, multiple, timeout } = asked;
    let context = context.filter(|context| !context.trim().is_empty());
    let options = if multiple {
        vec![several(&options)]
    } else {
        options.into_iter().map(|one| option(one.id, one.label, one.description)).collect()
    };
    Content {
        kind: ReviewKind::Clarification,
        title: question.clone(),
        prompt: match agent {
            Some(agent) => format!("Agent `{agent}` asks:\n\n{question}"),
            None => question,
        },
        stakes: Stakes { category: Some(category), ..Stakes::default() },
        items: context.map(|text| item("context", "Context", ContentType::Markdown, text.into())).into_iter().collect(),
        options,
        free_text: allow_free_text,
        timeout,
        on_timeout: Some(OnTimeout::Error),
        ..Content::default()
    }
}

/// Returns the only option of a question that takes several answers.
fn several(choices: &[OfferedChoice]) -> ReviewOption {
    let choice = |one: &OfferedChoice| {
        let mut choice = json!({ "const": one.id, "title": one.label });
        if let Some(description) = &one.description {
            choice["description"] = description.clone().into();
        }
        choice
    };
    let choices: Vec<_> = choices.iter().map(choice).collect();
    let property = json!({
        "type": "array", "title": "Options", "minItems": 1, "uniqueItems": true, "items": { "oneOf": choices },
    });
    let fields = fields(&["options"], &json!({ "options": property }));
    ReviewOption { fields: Some(fields), ..option("answer".to_owned(), "Answer".to_owned(), None) }
}

fn edit(who: &str, draft: DraftToEdit) -> Content {
    let DraftToEdit { content, content_type, purpose, focus, confidence, timeout } = draft;
    let sure = confidence.map(|sure| format!(" It is {:.0} % sure of it.", sure * 100.0)).unwrap_or_default();
    let focus: Vec<_> = focus.iter().map(|point| format!("- {point}")).collect();
    let focus = if focus.is_empty() { String::new() } else { format!("\n\nPlease look at:\n\n{}", focus.join("\n")) };
    let schema = json!({ "type": "string", "minLength": 1 });
    let draft = item(CONTENT, "Draft", content_type.into(), content.into());
    Content {
        kind: ReviewKind::Edit,
        title: purpose.clone(),
        prompt: format!("{who} asks you to edit a draft: {}.{sure}{focus}", purpose.trim_end_matches('.')),
        stakes: Stakes {
            severity: if confidence.is_some_and(|sure| sure < UNSURE) { Severity::High } else { Severity::default() },
            ..Stakes::default()
        },
        items: vec![Item { editable: true, schema: Some(schema), ..draft }],
        options: vec![described(done(), format!("{} gets the text as it stands here.", plain(who)))],
        timeout,
        on_timeout: Some(OnTimeout::Follow),
        ..Content::default()
    }
}

fn approval(who: &str, proposal: Proposal) -> Content {
    let Proposal { description, action, stakes, timeout } = proposal;
    let whom = plain(who);
    // The stated consequences are those of approval, and of no other option.
    let effect = stakes.consequences.first().cloned().unwrap_or_else(|| format!("{whom} is told to go ahead."));
    let approve = option(APPROVE.to_owned(), "Approve".to_owned(), Some(effect));
    let refused = format!("{whom} is told not to do this.");
    let reject = option(REJECT.to_owned(), "Reject".to_owned(), Some(refused));
    let reject = ReviewOption { kind: ChoiceKind::Stop, ..reject };
    let instead = stakes.choices().map(|one| {
        let instruction = format!("{whom} is told to do this instead.");
        let instruction = one
            .tradeoffs
            .as_ref()
            .map_or_else(|| instruction.clone(), |tradeoffs| format!("{instruction} {tradeoffs}"));
        described(alternative(one), instruction)
    });
    let options = std::iter::once(approve).chain(instead).chain([reject]).collect();
    let arguments = Value::Object(action.arguments);
    Content {
        kind: ReviewKind::Approval,
        prompt: format!("{who} requests approval for `{}`: {description}", action.name),
        title: description,
        stakes,
        items: vec![item("arguments", &action.name, ContentType::Json, arguments)],
        options,
        timeout,
        on_timeout: Some(OnTimeout::Reject),
        ..Content::default()
    }
}

fn item(key: &str, label: &str, content_type: ContentType, value: Value) -> Item {
    let (key, label) = (key.to_owned(), Some(label.to_owned()));
    Item { key, label, content_type, value, editable: false, schema: None }
}

fn option(id: String, label: String, description: Option<String>) -> ReviewOption {
    ReviewOption { id, kind: ChoiceKind::Accept, label, message: None, description, fields: None, alternative: false }
}

/// Presents an escalation: somebody takes over, gives guidance, aborts, or has another agent take over.
fn escalation(who: &str, escalation: Escalation, relief: &Relief) -> Content {
    let Escalation { reason, explanation, assessment, attempted, recommendations, state, urgency, timeout } =
        escalation;
    let items = [
        assessment.map(|text| item("assessment", "Assessment", ContentType::Markdown, text.into())),
        list("attempted", "What it has tried", &attempted),
        list("recommendations", "What it recommends", &recommendations),
        (!state.is_empty()).then(|| item("state", "Where it stands", ContentType::Json, Value::Object(state))),
    ];
    let text = json!({ "type": "string", "format": "markdown", "minLength": 1 });
    let needed: &[&str] = if relief.needs_answer { &["answer"] } else { &[] };
    let mut instead = fields(needed, &json!({ "instructions": titled(&text, "What you do about it") }));
    if let Some(answer) = &relief.answer {
        embed(&mut instead, "properties", "answer", &titled(answer, "Answer in place of the agent"));
    }
    let whom = plain(who);
    let takes_over = with_fields(TAKE_OVER, "Take over", ChoiceKind::Accept, instead);
    let does = match (&relief.answer, relief.needs_answer) {
        (None, _) => format!("{whom} is told that you take over."),
        (Some(_), true) => format!("{whom} ends here, and your answer replaces its own."),
        (Some(_), false) => format!(
            "{whom} ends here. Your answer replaces its own; without one, you write the output of its step next."
        ),
    };
    let takes_over = described(takes_over, does);
    let parameters = json!({ "type": "object", "title": "Adjusted parameters" });
    let guidance = titled(&text, "Guidance");
    let guides = json!({ "guidance": guidance, "adjusted_parameters": parameters });
    let goes_on = with_fields(GO_ON, "Let it continue", ChoiceKind::Accept, fields(&["guidance"], &guides));
    let goes_on = described(goes_on, format!("{whom} gets your guidance, and continues."));
    let delegates = (!relief.agents.is_empty()).then(|| {
        let agents = json!({ "type": "string", "enum": relief.agents, "title": "Agent" });
        let hands_over = json!({ "agent": agents, "instructions": titled(&text, "Instructions") });
        let fields = fields(&["agent", "instructions"], &hands_over);
        let does = "Another agent continues with this; it knows what was said so far, and what you write.".to_owned();
        described(with_fields(DELEGATE, "Give it to another agent", ChoiceKind::Accept, fields), does)
    });
    let reason_words = reason.as_str().replace('_', " ");
    Content {
        kind: ReviewKind::Escalation,
        prompt: format!("{who} cannot continue ({reason_words}): {explanation}"),
        title: explanation,
        stakes: Stakes { severity: urgency, category: Some(reason.as_str().to_owned()), ..Stakes::default() },
        items: items.into_iter().flatten().collect(),
        options: [takes_over, goes_on].into_iter().chain(delegates).chain([abort(who, relief)]).collect(),
        timeout,
        on_timeout: Some(OnTimeout::Error),
        ..Content::default()
    }
}

/// Presents a checkpoint: whoever asks continues, pauses, changes its plan or aborts.
fn checkpoint(who: &str, checkpoint: Checkpoint, relief: &Relief) -> Content {
    let Checkpoint { phase, progress, done, next, issues, notes, timeout } = checkpoint;
    let items = [
        list("done", "Done", &done),
        list("next", "Next", &next),
        list("issues", "Issues", &issues),
        notes.map(|text| item("notes", "Notes", ContentType::Markdown, text.into())),
    ];
    let text = json!({ "type": "string", "minLength": 1 });
    let text_list = |title: &str| json!({ "type": "array", "items": text, "title": title });
    let modifies = json!({
        "goal": titled(&text, "Another goal"),
        "skip": text_list("Leave out"),
        "add": text_list("Do as well"),
        "parameters": { "type": "object", "title": "Parameters" },
    });
    let whom = plain(who);
    let modifies = with_fields(MODIFY, "Change the plan", ChoiceKind::Accept, fields(&[], &modifies));
    let modifies = described(modifies, format!("{whom} is told the changes, and continues."));
    let percent = format!("{:.0} %", progress * 100.0);
    let accept = |id: &str, label: &str, does: &str| option(id.to_owned(), label.to_owned(), Some(does.to_owned()));
    let continues = accept(CONTINUE, "Continue", &format!("{whom} continues as planned."));
    let pauses = accept(PAUSE, "Pause", "It waits, without a time limit, until someone resumes or aborts it.");
    Content {
        kind: ReviewKind::Checkpoint,
        title: format!("Checkpoint: {phase} ({percent})"),
        prompt: format!("{who} has reached {percent} of “{phase}”, and asks whether to continue."),
        stakes: Stakes {
            severity: if issues.is_empty() { Severity::Low } else { Severity::High },
            ..Stakes::default()
        },
        items: items.into_iter().flatten().collect(),
        options: vec![continues, pauses, modifies, abort(who, relief)],
        timeout,
        on_timeout: Some(OnTimeout::Error),
        ..Content::default()
    }
}

/// Presents a handoff, after which whoever asks continues.
fn handoff(who: &str, handoff: Handoff) -> Content {
    let Handoff { to, reason, summary } = handoff;
    let users = to.parse().into_iter().collect();
    Content {
        kind: ReviewKind::Handoff,
        prompt: format!("{who} hands this off to {to}: {reason}"),
        title: reason,
        items: summary.map(|text| item("summary", "Summary", ContentType::Markdown, text.into())).into_iter().collect(),
        options: vec![option(
            TAKEN.to_owned(),
            "Take it".to_owned(),
            Some("Records that you are taking care of it.".to_owned()),
        )],
        reviewers: Reviewers { roles: vec![to], users, ..Reviewers::default() },
        on_timeout: Some(OnTimeout::Follow),
        ..Content::default()
    }
}

/// Returns the option that aborts whoever asks, or the step of an agent.
fn abort(who: &str, relief: &Relief) -> ReviewOption {
    let reason = json!({ "type": "string", "minLength": 1, "title": "Reason" });
    let aborts = with_fields(ABORT, "Abort", ChoiceKind::Stop, fields(&["reason"], &json!({ "reason": reason })));
    let whom = plain(who);
    let does = match (&relief.answer, relief.needs_answer) {
        (Some(_), true) => format!("{whom} ends here, and its caller is told why."),
        (Some(_), false) => format!("{whom} ends here, and its step fails; the flow may say what follows."),
        (None, _) => format!("{whom} ends here, with your reason."),
    };
    described(aborts, does)
}

/// Returns the only option of a review in which a text is written.
pub(super) fn done() -> ReviewOption {
    option(DONE.to_owned(), "Use this text".to_owned(), None)
}

/// Returns a name without backticks: descriptions of options are no Markdown.
fn plain(who: &str) -> String {
    who.replace('`', "")
}

/// Adds to an option a description of its effect.
fn described(option: ReviewOption, does: String) -> ReviewOption {
    ReviewOption { description: Some(does), ..option }
}

/// Returns the item of a state key that somebody writes. Without a schema, it stays what it is, and is a text at first.
pub(super) fn written(key: String, value: Option<Value>, schema: Option<Value>) -> Item {
    let is_text = match (&schema, &value) {
        (Some(schema), _) => schema.get("type").is_some_and(|of| of == "string"),
        (None, value) => value.as_ref().is_none_or(Value::is_string),
    };
    let value = value.unwrap_or_else(|| if is_text { Value::String(String::new()) } else { Value::Null });
    let of_value = || if is_text { json!({ "type": "string", "minLength": 1 }) } else { schema_of(&value) };
    let schema = schema.unwrap_or_else(of_value);
    let content_type = if value.is_string() { ContentType::Markdown } else { ContentType::Json };
    Item { key, label: None, content_type, value, editable: true, schema: Some(schema) }
}

/// Returns an item with sentences as a list; `None` if there are none.
fn list(key: &str, label: &str, sentences: &[String]) -> Option<Item> {
    let lines: Vec<_> = sentences.iter().map(|sentence| format!("- {sentence}")).collect();
    (!lines.is_empty()).then(|| item(key, label, ContentType::Markdown, lines.join("\n").into()))
}

/// Returns the JSON Schema of an option's fields.
fn fields(required: &[&str], properties: &Value) -> Value {
    json!({ "type": "object", "required": required, "properties": properties, "additionalProperties": false })
}

/// Returns a schema with a title. `true` and `false` are schemas, too.
fn titled(schema: &Value, title: &str) -> Value {
    let mut titled = match schema {
        Value::Bool(true) => json!({}),
        Value::Bool(false) => json!({ "not": {} }),
        other => other.clone(),
    };
    titled["title"] = title.into();
    titled
}

fn with_fields(id: &str, label: &str, kind: ChoiceKind, fields: Value) -> ReviewOption {
    ReviewOption { kind, fields: Some(fields), ..option(id.to_owned(), label.to_owned(), None) }
}
