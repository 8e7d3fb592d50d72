//! Validators: the conditions for a response to a human node, in addition to its form.

use serde_json::{Value, json};
use shared::JsonMap;
use shared::decision::{ActionDecision, DecisionRequest, Verdict};
use shared::definition::Validator;
use shared::error::{Mistake, pointer};
use shared::review::Review;

use crate::engine::builder::Builder;
use crate::engine::scope::{self, Visit};
use crate::flow::is_of_object;
use crate::limits;

/// The message of a validator that has none of its own.
const REFUSED: &str = "the response does not meet the flow's conditions";

impl Builder<'_> {
    /// Checks a response against the validator of its node. `Err` has each mistake with its place in the body.
    pub(in crate::engine::ask) fn validate(
        &self,
        review: &Review,
        request: &DecisionRequest,
    ) -> Result<(), Vec<Mistake>> {
        let at = |id| Some((id, self.flow.node(id)?.kind.human()?.validator.as_ref()?));
        let Some((id, validator)) = review.node.as_ref().and_then(at) else { return Ok(()) };
        let response = response(request);
        let flow = self.flow.of(id);
        let mistakes = match validator {
            Validator::Schema { schema } if is_of_object(schema) => {
                let mistakes = flow.check(schema, &response, "");
                mistakes.into_iter().map(|mistake| Mistake { path: place(&mistake.path), ..mistake }).collect()
            }
            // A schema of a text is for free text; an option has no text.
            Validator::Schema { schema } => match &request.verdict {
                Verdict::Text { text } => flow.check(schema, &Value::from(text.as_str()), "/verdict/text"),
                _ => Vec::new(),
            },
            Validator::When { when, message } => {
                let place = spoken_of(when, request);
                let visit = Visit { number: review.visit.unwrap_or(1), response: Some(&response), ..Visit::default() };
                let scope = scope::of(self.flow, &self.state, id, visit);
                let message = message.as_deref().unwrap_or(REFUSED);
                match flow.holds(when, &scope) {
                    Ok(true) => Vec::new(),
                    Ok(false) => vec![Mistake::new(place, "invalid", message)],
                    Err(error) => vec![Mistake::new(place, "invalid", format!("{message} ({error})"))],
                }
            }
        };
        if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
    }
}

/// The maximum length of a decision's metadata as JSON, in bytes: every version of the review stores all of it.
const MAX_METADATA: usize = 16 * 1024;

/// Checks the values of a response against their limits, whoever gives it: not every response comes over HTTP.
pub(in crate::engine::ask) fn size(request: &DecisionRequest) -> Result<(), Mistake> {
    let check = |place: String, members: &JsonMap| {
        limits::check_map(members).map_err(|exceeded| Mistake::new(place, "invalid", exceeded.to_string()))
    };
    check("/edits".to_owned(), &request.edits)?;
    check("/metadata".to_owned(), &request.metadata)?;
    let metadata = serde_json::to_vec(&request.metadata).map_or(usize::MAX, |json| json.len());
    if metadata > MAX_METADATA {
        return Err(Mistake::new("/metadata", "too_long", format!("longer than {MAX_METADATA} bytes as JSON")));
    }
    match &request.verdict {
        Verdict::Choose { fields, .. } => check("/verdict/fields".to_owned(), fields),
        Verdict::Text { .. } => Ok(()),
        Verdict::Actions { decisions, .. } => decisions.iter().try_for_each(|(id, decision)| match decision {
            ActionDecision::Edit { arguments } => check(pointer(["verdict", "decisions", id, "arguments"]), arguments),
            _ => Ok(()),
        }),
    }
}

/// Returns the response as validators see it.
fn response(request: &DecisionRequest) -> Value {
    let (option, text) = match &request.verdict {
        Verdict::Choose { option, .. } => (Some(option), None),
        Verdict::Text { text } => (None, Some(text)),
        Verdict::Actions { .. } => (None, None),
    };
    json!({ "option": option, "text": text, "edits": request.edits, "metadata": request.metadata })
}

/// Returns the place in the body of a part of the response.
fn place(path: &str) -> String {
    if path == "/text" {
        "/verdict/text".to_owned()
    } else if path.starts_with("/edits/") || path.starts_with("/metadata/") {
        path.to_owned()
    } else {
        "/verdict".to_owned()
    }
}

/// Returns the place of what a condition is about: the text if there is one, or the edited value that it names.
fn spoken_of(when: &str, request: &DecisionRequest) -> String {
    if matches!(request.verdict, Verdict::Text { .. }) && when.contains("response.text") {
        return "/verdict/text".to_owned();
    }
    let named = |key: &&String| {
        let forms = [format!("edits.{key}"), format!("edits['{key}']"), format!("edits[\"{key}\"]")];
        forms.iter().any(|form| when.contains(form))
    };
    request.edits.keys().find(named).map_or_else(|| "/verdict".to_owned(), |key| pointer(["edits", key]))
}
