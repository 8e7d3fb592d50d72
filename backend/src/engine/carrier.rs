//! Questions without a flow. Each is carried by a hidden run of a generated flow: one tool node, whose tool is the
//! builtin that asks the same question for an agent. So such a question has digests, timers, votes and entries like any
//! other, and there is only one way to ask and answer questions.
//!
//! The flow follows from the run's input alone, and is not stored. The content of the question is not part of it, but
//! becomes state keys like any input: nothing in a question is ever read as a template, and questions to the same
//! people in the same way share one flow.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use shared::JsonMap;
use shared::definition::{Flow, Node, NodeKind, OnTimeout, Tool, ToolKind};
use shared::error::Mistake;
use shared::id::{FlowId, NodeId};
use shared::new_review::{AskedContext, NewReview};
use shared::review::ReviewKind;
use shared::run::Context;
use shared::time::Span;

use super::ask_builtin;
use crate::flow::{self, Compiled};

/// The prefix of the id of every carrier's flow, followed by a digest of the flow.
const PREFIX: &str = "question-";
/// The length of that digest, in bytes.
const DIGEST: usize = 16;
/// The version of every carrier's flow. Saved flows have versions from 1 on, so the two cannot be confused.
const VERSION: u32 = 0;
/// The name of the tool in a carrier's flow, and of its node.
const ASK: &str = "ask";

/// The flow and the launch data of the hidden run that carries a question.
#[derive(Debug, Clone)]
pub struct Carrier {
    /// The compiled flow.
    pub flow: Arc<Compiled>,
    /// The input of the run: the question as it was sent.
    pub input: JsonMap,
    /// The context of the run: for whom the question is asked.
    pub context: Context,
    /// The kind of the review.
    pub kind: ReviewKind,
}

impl Carrier {
    /// Builds the carrier of a question. `Err` has every mistake, with its place in what was sent.
    pub fn of(asked: &NewReview) -> Result<Self, Vec<Mistake>> {
        let flow = flow_of(asked).map_err(|mistake| vec![mistake])?;
        let mut mistakes = of_parameters(asked);
        mistakes.extend(flow::mistakes_of(&flow).into_iter().filter_map(in_what_was_sent));
        if asked.reviewers.not_same_as.is_some() {
            mistakes.push(invalid("/reviewers/not_same_as", "nobody has decided anything before this; leave it out"));
        }
        mistakes.extend(asked.timeout.and_then(Span::why_no_wait).map(|why| invalid("/timeout", &why)));
        if asked.on_timeout.is_some() && asked.timeout.is_none() {
            mistakes.push(invalid("/on_timeout", "`on_timeout` has no effect without `timeout`; add a timeout"));
        }
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let input = match serde_json::to_value(asked) {
            Ok(Value::Object(input)) => input,
            Ok(_) => return Err(vec![invalid("", "expected an object")]),
            Err(error) => return Err(vec![invalid("", &error.to_string())]),
        };
        let flow = Arc::new(Compiled::new(flow, VERSION)?);
        Ok(Self { flow, input, context: asked.whom(), kind: asked.kind.of_review() })
    }

    /// Rebuilds the flow of a carrier from the input of its run. `Err` says why the input cannot be read.
    pub fn resume(input: &JsonMap) -> Result<Compiled, String> {
        let asked = question_of(input).map_err(|error| format!("what was asked cannot be read: {error}"))?;
        let flow = flow_of(&asked).map_err(|mistake| mistake.to_string())?;
        Compiled::new(flow, VERSION).map_err(|mistakes| mistakes.first().map(ToString::to_string).unwrap_or_default())
    }
}

/// Whether a run of this flow only carries a question.
pub fn is_carrier(flow: &FlowId, version: u32) -> bool {
    version == VERSION && flow.strip_prefix(PREFIX).is_some_and(|digest| digest.len() == 2 * DIGEST)
}

/// Returns the id of the node that asks, in every carrier's flow.
pub(super) fn node() -> Option<NodeId> {
    NodeId::try_from(ASK.to_owned()).ok()
}

/// Reads the question from the input of the run that carries it.
pub fn question_of(input: &JsonMap) -> Result<NewReview, serde_json::Error> {
    serde_json::from_value(Value::Object(input.clone()))
}

/// Returns the title that was sent with a question.
pub(super) fn title(input: &JsonMap) -> Option<&str> {
    input.get("title")?.as_str()
}

/// Checks the question as arguments of its builtin tool.
fn of_parameters(asked: &NewReview) -> Vec<Mistake> {
    let builtin = asked.kind.builtin();
    let Some(schema) = ask_builtin::parameters(builtin) else { return Vec::new() };
    let arguments = asked.arguments();
    let mut mistakes = flow::check_value(&schema, &Value::Object(arguments.clone()), "");
    if mistakes.is_empty() {
        let fits = ask_builtin::read(builtin, &arguments).and_then(|ask| {
            ask_builtin::can_be_named(&ask)?;
            ask_builtin::can_be_told_apart(&ask)?;
            ask_builtin::votable(&ask, &asked.policy)
        });
        mistakes.extend(fits.err().map(|why| invalid("", &why)));
    }
    mistakes
}

/// Maps a mistake in the generated tool to its place in what was sent. `None` for the rest of the flow, which was not
/// sent.
fn in_what_was_sent(mistake: Mistake) -> Option<Mistake> {
    let path = match mistake.path.strip_prefix("/tools/ask")? {
        "/builtin" => "/kind".to_owned(),
        rest => rest.to_owned(),
    };
    Some(Mistake { path, ..mistake })
}

fn flow_of(asked: &NewReview) -> Result<Flow, Mistake> {
    let builtin = asked.kind.builtin();
    let tool = Tool {
        reviewers: asked.who(),
        policy: asked.policy.clone(),
        on_timeout: asked.on_timeout.map(OnTimeout::from),
        ..Tool::new(ToolKind::Builtin(builtin))
    };
    let node = Node::new(NodeKind::Tool { tool: ASK.to_owned(), arguments: None });
    let id = |name: String| FlowId::try_from(name).map_err(|error| invalid("", &error.to_string()));
    let node_id = NodeId::try_from(ASK.to_owned()).map_err(|error| invalid("", &error.to_string()))?;
    let unnamed = Flow {
        // The state keys are the tool's parameters, with which the node calls it.
        input: Some(json!({ "type": "object", "properties": parameters(asked) })),
        output: Some(Vec::new()),
        tools: IndexMap::from([(ASK.to_owned(), tool)]),
        nodes: IndexMap::from([(node_id, node)]),
        ..Flow::new(id(ASK.to_owned())?)
    };
    let text = serde_json::to_vec(&unnamed).map_err(|error| invalid("", &error.to_string()))?;
    let digest = hex::encode(&Sha256::digest(text)[..DIGEST]);
    Ok(Flow { id: id(format!("{PREFIX}{digest}"))?, ..unnamed })
}

/// Returns the parameters of the tool as properties of the flow's input; `context` only if it is a text.
fn parameters(asked: &NewReview) -> JsonMap {
    let schema = ask_builtin::parameters(asked.kind.builtin()).unwrap_or_default();
    let names = schema["properties"].as_object().into_iter().flat_map(JsonMap::keys);
    let background = matches!(asked.context, Some(AskedContext::Background(_)));
    let names = names.filter(|name| *name != "context" || background);
    names.map(|name| (name.clone(), json!({}))).collect()
}

fn invalid(path: &str, message: &str) -> Mistake {
    Mistake::new(path, "invalid", message)
}
