//! The tools: their names, descriptions and schemas, and the callers who are offered them.

use std::sync::{Arc, LazyLock};

use rmcp::model::{Tool as Description, ToolAnnotations};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::JsonMap;
use shared::access::{Act, Principal, access};
use shared::api::Launch;
use shared::id::{ReviewId, RunId};
use shared::new_review::AskedKind;
use shared::time::Span;
use strum::{IntoStaticStr, VariantArray as _};

use super::permission::PermissionPrompt;
use crate::engine;

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum McpTool {
    /// Asks people a question, and waits for the answer.
    Ask(AskedKind),
    WaitForReview,
    CommentOnReview,
    WithdrawReview,
    /// Asks people whether Claude Code may call a tool.
    PermissionPrompt,
    ListFlows,
    StartRun,
    GetRun,
    CancelRun,
}

// Below are the arguments of the tools with the same names.

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitForReview {
    /// The `review_id` of the question.
    pub review_id: ReviewId,
    /// How long to wait for the answer, at most 50s; default: 45s.
    pub wait: Option<Span>,
    /// The `comment_count` that you know: more comments end the wait. Default: those that come during this call.
    pub comments_after: Option<u32>,
}

/// The arguments of `comment_on_review`, beside the idempotency key.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CommentOnReview {
    /// The `review_id` of the question.
    pub review_id: ReviewId,
    /// The comment, in plain text.
    pub text: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WithdrawReview {
    /// The `review_id` of the question.
    pub review_id: ReviewId,
    /// Why it is no longer needed.
    pub reason: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListFlows {
    /// The `next_cursor` of the page before.
    pub cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetRun {
    /// The `run_id` of the run.
    pub run_id: RunId,
    /// How long to wait until the run ends or needs people, at most 50s; default: 0s.
    pub wait: Option<Span>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CancelRun {
    /// The `run_id` of the run.
    pub run_id: RunId,
    /// Why it is cancelled.
    pub reason: Option<String>,
}

/// The member of questions and launches that is never an argument: an agent has no address to which an answer could be
/// posted.
pub(super) const CALLBACK_URL: &str = "callback_url";
/// The members of a [`NewReview`](shared::new_review::NewReview) that are not arguments: also the kind, which the tool
/// determines.
pub(super) const NOT_ARGUMENTS: [&str; 2] = ["kind", CALLBACK_URL];

/// All tools, in the order in which they are listed, with their descriptions.
static TOOLS: LazyLock<Vec<(McpTool, Description)>> = LazyLock::new(|| {
    // Programs that hold back calls ask about them over REST: no model has to read how.
    let asks = AskedKind::VARIANTS.iter().copied().filter(|kind| *kind != AskedKind::ToolCalls);
    let others = [
        McpTool::WaitForReview,
        McpTool::CommentOnReview,
        McpTool::WithdrawReview,
        McpTool::PermissionPrompt,
        McpTool::ListFlows,
        McpTool::StartRun,
        McpTool::GetRun,
        McpTool::CancelRun,
    ];
    asks.map(McpTool::Ask).chain(others).map(|tool| (tool, tool.description())).collect()
});

/// Returns the descriptions of the tools that the caller may use.
pub(super) fn offered(caller: &Principal) -> Vec<Description> {
    TOOLS.iter().filter(|(tool, _)| tool.is_allowed(caller)).map(|(_, description)| description.clone()).collect()
}

pub(super) fn named(name: &str) -> Option<&'static (McpTool, Description)> {
    TOOLS.iter().find(|(_, description)| description.name == name)
}

impl McpTool {
    fn is_allowed(self, caller: &Principal) -> bool {
        let act = match self {
            Self::Ask(_)
            | Self::WaitForReview
            | Self::CommentOnReview
            | Self::WithdrawReview
            | Self::PermissionPrompt => Act::Ask,
            Self::ListFlows => Act::SeeFlows,
            Self::StartRun | Self::GetRun | Self::CancelRun => Act::Launch,
        };
        access(caller, act).is_allowed()
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ask(kind) => kind.builtin().as_str(),
            own => own.into(),
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Ask(AskedKind::Approval | AskedKind::ToolCalls) => "Request approval",
            Self::Ask(AskedKind::Clarification) => "Ask a person",
            Self::Ask(AskedKind::Edit) => "Request an edit",
            Self::Ask(AskedKind::Escalation) => "Escalate a problem",
            Self::Ask(AskedKind::Checkpoint) => "Report progress",
            Self::Ask(AskedKind::Handoff) => "Hand work off",
            Self::WaitForReview => "Wait for an answer",
            Self::CommentOnReview => "Comment on a question",
            Self::WithdrawReview => "Withdraw a question",
            Self::PermissionPrompt => "Answer permission prompts",
            Self::ListFlows => "List flows",
            Self::StartRun => "Launch a run",
            Self::GetRun => "Get a run",
            Self::CancelRun => "Cancel a run",
        }
    }

    fn purpose(self) -> &'static str {
        match self {
            Self::Ask(AskedKind::Approval | AskedKind::ToolCalls) => {
                "Ask people for approval before you do something that matters or cannot be undone. Do it only if the \
                 answer says `approved: true`, and exactly as described. If the answer says `approved: false` with an \
                 `alternative`, do that one of your alternatives instead."
            }
            Self::Ask(AskedKind::Clarification) => {
                "Ask a person a question that you cannot answer yourself, with options to choose from if you can."
            }
            Self::Ask(AskedKind::Edit) => "Ask a person to check and edit a draft. The answer has the edited content.",
            Self::Ask(AskedKind::Escalation) => {
                "Hand a problem that you cannot solve to a person, who takes it over, advises you, or stops you."
            }
            Self::Ask(AskedKind::Checkpoint) => {
                "Report your progress in a long task, and ask whether to continue, to change something, or to stop."
            }
            Self::Ask(AskedKind::Handoff) => "Hand work off to a person or a role. You do not wait for it.",
            Self::WaitForReview => {
                "Wait for the answer to a question that is still pending. People may take hours: call it again while \
                 `status` is `pending`, or go on with other work and call it later. While `paused` is true, do no \
                 other work."
            }
            Self::CommentOnReview => {
                "Comment on a question that is still pending, to answer what a person asks back in `comments`. It \
                 changes nothing of the question: to ask something else, withdraw it and ask again."
            }
            Self::WithdrawReview => {
                "Withdraw a question that you no longer need answered. An approval counts as rejected."
            }
            Self::PermissionPrompt => {
                "Asks people whether a tool may be called: for `--permission-prompt-tool` of Claude Code, which calls \
                 it itself. Do not call it."
            }
            Self::ListFlows => "List the flows that can be launched, each with the JSON Schema of its input.",
            Self::StartRun => {
                "Launch a run of a flow. It stops where a person is asked, and goes on after the decision: `get_run` \
                 returns its status and output."
            }
            Self::GetRun => {
                "Get the status of a run, its output or error, and the reviews that it waits for. With `wait`, it first \
                 waits while `status` is `running`."
            }
            Self::CancelRun => "Cancel a run. Its pending reviews are withdrawn.",
        }
    }

    fn annotations(self) -> ToolAnnotations {
        let reads = matches!(self, Self::WaitForReview | Self::ListFlows | Self::GetRun);
        let ends = matches!(self, Self::WithdrawReview | Self::CancelRun);
        ToolAnnotations::with_title(self.title()).read_only(reads).destructive(ends).idempotent(reads || ends)
    }

    fn description(self) -> Description {
        let Value::Object(schema) = self.schema() else { unreachable!("schemas of arguments are objects") };
        Description::new(self.name(), self.purpose(), Arc::new(schema)).with_annotations(self.annotations())
    }

    /// Returns the JSON Schema of the arguments.
    fn schema(self) -> Value {
        match self {
            Self::Ask(kind) => question_schema(kind),
            Self::WaitForReview => schema_of::<WaitForReview>(),
            Self::CommentOnReview => with_key(schema_of::<CommentOnReview>(), "comment"),
            Self::WithdrawReview => schema_of::<WithdrawReview>(),
            Self::PermissionPrompt => schema_of::<PermissionPrompt>(),
            Self::ListFlows => schema_of::<ListFlows>(),
            Self::StartRun => {
                let mut schema = schema_of::<Launch>();
                schema["properties"]["context"] = behalf();
                if let Some(properties) = schema["properties"].as_object_mut() {
                    properties.remove(CALLBACK_URL);
                }
                with_key(schema, "run")
            }
            Self::GetRun => schema_of::<GetRun>(),
            Self::CancelRun => schema_of::<CancelRun>(),
        }
    }
}

/// Returns the schema of a question: the parameters of the builtin, and what every question accepts.
///
/// A client puts the schemas of all tools before a model, whatever it does with them. So what every question accepts is
/// described in a few words here, and not in the detail of `GET /api/openapi.json`; REST checks it.
fn question_schema(kind: AskedKind) -> Value {
    let mut schema = engine::ask_parameters(kind.builtin()).unwrap_or_else(|| json!({}));
    let Some(own) = schema["properties"].as_object_mut() else { return schema };
    own.remove("timeout");
    for (name, described) in every_question(kind) {
        own.entry(name).or_insert(described);
    }
    with_key(schema, "review")
}

/// Returns the arguments of questions of this kind beside the parameters of the builtin.
fn every_question(kind: AskedKind) -> JsonMap {
    let names = json!({ "type": "array", "items": { "type": "string" } });
    let text = |description: &str| json!({ "type": "string", "description": description });
    let mut every = JsonMap::from_iter([
        ("title".to_owned(), text("A headline; default: the first sentence of the question")),
        (
            "reviewers".to_owned(),
            json!({
                "type": "object",
                "properties": {
                    "users": &names, "roles": &names, "tags": &names, "not_requester": { "type": "boolean" },
                },
                "description": "Who may decide; default: everyone with the role reviewer",
            }),
        ),
        ("context".to_owned(), behalf()),
        (
            "wait".to_owned(),
            text("How long this call waits for the answer, at most 50s; default: 45s. 0s: do not wait"),
        ),
    ]);
    if matches!(kind, AskedKind::Approval | AskedKind::Clarification | AskedKind::Edit) {
        let policies = "\"first\" (default), \"majority\", \"unanimous\" or {\"quorum\": 2}";
        every.insert("policy".to_owned(), json!({ "description": policies }));
    }
    if kind != AskedKind::Handoff {
        every.insert("timeout".to_owned(), text("How long people have, such as 30m or 2h; default: no limit"));
    }
    let without_answer = match kind {
        AskedKind::Approval | AskedKind::ToolCalls => {
            json!({ "enum": ["reject", "error"], "description": "Default: reject" })
        }
        AskedKind::Edit => json!({ "enum": ["approve", "error"], "description": "Default: approve, unchanged" }),
        AskedKind::Escalation => json!({ "enum": ["reject", "error"], "description": "Default: error" }),
        AskedKind::Checkpoint => json!({ "enum": ["reject", "approve", "error"], "description": "Default: error" }),
        AskedKind::Clarification | AskedKind::Handoff => return every,
    };
    every.insert("on_timeout".to_owned(), without_answer);
    every
}

/// Returns the schema of `context`: on whose behalf a question is asked or a run is started.
fn behalf() -> Value {
    json!({
        "type": "object",
        "properties": {
            "user": { "type": "string" }, "tenant": { "type": "string" }, "session": { "type": "string" },
            "metadata": { "type": "object" },
        },
        "description": "On whose behalf",
    })
}

fn with_key(mut schema: Value, made: &str) -> Value {
    schema["properties"]["idempotency_key"] = json!({
        "type": "string", "maxLength": 255, "pattern": "^[!-~]+$",
        "description": format!("The same key and arguments, sent again within a day, return the same {made}"),
    });
    schema
}

fn schema_of<T: JsonSchema>() -> Value {
    // Many clients do not follow references within a schema.
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<T>().to_value();
    if let Some(schema) = schema.as_object_mut() {
        schema.retain(|key, _| key != "title" && key != "description");
        schema.entry("properties").or_insert_with(|| Value::Object(JsonMap::new()));
    }
    schema
}

#[cfg(test)]
mod tests {
    use shared::new_review::NewReview;

    use super::*;

    #[test]
    fn descriptions_are_short_and_name_only_what_questions_accept() {
        let all: Vec<&Description> = TOOLS.iter().map(|(_, description)| description).collect();
        let bytes = serde_json::to_vec(&all).unwrap().len();
        // A program puts them before its model in every conversation.
        assert!(bytes < 18 * 1024, "{bytes} bytes");
        let every = schema_of::<NewReview>()["properties"].take();
        for (tool, description) in TOOLS.iter() {
            let McpTool::Ask(kind) = tool else { continue };
            let own = engine::ask_parameters(kind.builtin()).unwrap()["properties"].take();
            for name in description.input_schema["properties"].as_object().unwrap().keys() {
                let of_this_endpoint = matches!(name.as_str(), "wait" | "idempotency_key");
                assert!(of_this_endpoint || own.get(name).is_some() || every.get(name).is_some(), "{tool:?}: {name}");
                assert!(!NOT_ARGUMENTS.contains(&name.as_str()), "{tool:?}: {name}");
            }
        }
    }
}
