//! The work of a task, which is read from the state at the time of the claim, so that tasks stay small and exactly what
//! was approved is executed.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::JsonMap;
use shared::definition::{Budget, DemoScript, Effort, Handler, McpTool, Tool, ToolKind};
use shared::error::FlowCode;
use shared::id::{NodeId, ReviewId, RunId, TaskId};
use shared::request::Request;
use shared::review::Review;
use shared::run::Step;
use shared::time::Timestamp;

use super::ask::content::judge_of;
use super::ask::handlers::judge;
use super::ask::handlers::program::{composed, program_of};
use super::conversation::{Conversation, Message, Purpose, ToolCall};
use super::digest;
use super::input::TaskFailure;
use super::invoke::offered;
use super::phase::{Branch, Phase, is_due};
use super::question::{Asked, Question};
use super::request;
use super::state::RunState;
use super::transition::{Task, TaskKind};
use crate::flow::Compiled;
use crate::flow::guardrail::Inquiry;

/// What a worker has to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// Call a model.
    Model(Box<ModelRequest>),
    /// Call a tool.
    Tool(Box<ToolRequest>),
    /// Ask a handler that is a program.
    Ask {
        /// The webhook or the function.
        handler: Box<Handler>,
        /// The id of the review.
        review: ReviewId,
        /// The review as people would see it; `None` if it is pending: then the program is shown what people see.
        composed: Option<Box<Review>>,
        /// The deadline of the program.
        until: Timestamp,
    },
    /// Ask the programs of guardrails.
    Inquire(Vec<Inquiry>),
    /// Execute nothing: the request is not the one that was approved, or the flow no longer has what it needs. The
    /// worker returns this as [`super::Input::TaskFailed`].
    Refuse(TaskFailure),
}

/// One model call.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// The run, for the stream to its page.
    pub run: RunId,
    /// The node, for the stream to the run's page.
    pub node: NodeId,
    /// The visit, for the stream to the run's page and for a demo model's script.
    pub visit: u32,
    /// The turn, from 1.
    pub turn: u32,
    /// The name of the agent whose turn it is; `judge` for a judge.
    pub agent: String,
    /// The model, as `provider/model`; this server itself answers for `demo/…`.
    pub model: String,
    /// The system prompt.
    pub instructions: Option<String>,
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// The tools that the model may call.
    pub tools: Vec<ToolSpec>,
    /// The reasoning effort; `None` is not sent.
    pub reasoning: Option<Effort>,
    /// The sampling temperature; `None` is not sent, so the provider's default holds.
    pub temperature: Option<f64>,
    /// The maximum length of the answer, in tokens.
    pub max_tokens: Option<u32>,
    /// The budget of the agent in its step. A call whose usage could not be counted is not made.
    pub budget: Option<Budget>,
    /// JSON Schema of the answer; `None` for text.
    pub output_schema: Option<Value>,
    /// The script of a demo model.
    pub demo: Option<DemoScript>,
}

/// A tool as a model is told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name by which the model calls the tool.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// JSON Schema of its arguments.
    pub parameters: Option<Value>,
    /// The tool of an MCP server, if it is one: the server describes what the flow does not.
    pub mcp: Option<McpTool>,
}

/// One tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRequest {
    /// The run, for logs.
    pub run: RunId,
    /// The node, for logs.
    pub node: NodeId,
    /// The tool's name.
    pub name: String,
    /// The definition of the tool.
    pub tool: Tool,
    /// The arguments, as approved.
    pub arguments: JsonMap,
    /// The request, as approved; the worker fills in the secrets.
    pub request: Request,
    /// The idempotency key: made of run, node, visit and the call's id, so it is the same for every attempt.
    pub idempotency_key: String,
}

/// A request to a handler that is a program.
#[derive(Debug, Clone, PartialEq)]
pub struct HandlerRequest {
    /// The task, which identifies this request at every attempt.
    pub task: TaskId,
    /// The webhook or the function.
    pub handler: Handler,
    /// The review as people see it, or would see it.
    pub review: Review,
    /// The deadline of the program.
    pub until: Timestamp,
}

/// Returns what a worker has to do for a task; `None` if nothing waits for the task any more.
pub fn of(flow: &Compiled, state: &RunState, task: &Task) -> Option<Work> {
    if let Some(work) = handler_work(flow, state, task) {
        return Some(work);
    }
    let is_its = |branch: &&Branch| branch.phase.tasks().iter().any(|(own, _)| *own == task.id);
    let branch: &Branch = state.branches.values().find(is_its)?;
    match (&task.kind, &branch.phase) {
        (TaskKind::Model { turn }, Phase::Agent { step, conversation }) => {
            let due = conversation.model_task == Some(task.id) && conversation.turn == *turn;
            due.then(|| model(flow, state, step, conversation))
        }
        (TaskKind::Tool { call: id }, Phase::Agent { step, conversation }) => {
            let call = conversation.calls.iter().find(|call| call.id == *id && is_due(call, task.id))?;
            Some(tool(flow, state, step, call, None))
        }
        (TaskKind::Tool { call: id }, Phase::Tool { step, call, correction, .. }) => {
            let due = call.id == *id && is_due(call, task.id);
            due.then(|| tool(flow, state, step, call, correction.as_deref()))
        }
        _ => None,
    }
}

/// Returns the work of a task that asks a handler, or programs for guardrails.
fn handler_work(flow: &Compiled, state: &RunState, task: &Task) -> Option<Work> {
    let is_due = |question: &&Question| question.task().is_some_and(|(due, _)| due == task.id);
    let question = state.questions.iter().find(is_due)?;
    match &question.asked {
        Asked::People | Asked::Channel { .. } => None,
        Asked::Guardrails { inquiries, .. } => Some(Work::Inquire(inquiries.clone())),
        Asked::Judge { conversation, .. } => judged(flow, state, question, conversation),
        Asked::Program { since, until, .. } => Some(match program_of(flow, state, question) {
            Some(handler) => {
                let composed = (!question.pending).then(|| composed(flow, state, question, *since)).transpose();
                match composed {
                    Ok(composed) => Work::Ask {
                        handler: Box::new(handler),
                        review: question.review,
                        composed: composed.map(Box::new),
                        until: *until,
                    },
                    Err(error) => refuse(FlowCode::HandlerFailed, error.message),
                }
            }
            None => refuse(FlowCode::HandlerFailed, "the flow has no such handler".to_owned()),
        }),
    }
}

/// Returns the model call of the judge that a question asks.
fn judged(flow: &Compiled, state: &RunState, question: &Question, conversation: &Conversation) -> Option<Work> {
    let step = state.step_of(&question.subject)?;
    let Some(judge) = judge_of(flow, state, question) else {
        return Some(refuse(FlowCode::ModelFailed, "the flow has no such judge".to_owned()));
    };
    let request = ModelRequest {
        output_schema: Some(judge::ANSWER.clone()),
        ..turn(state, step, conversation, judge.model.clone())
    };
    Some(Work::Model(Box::new(request)))
}

fn model(flow: &Compiled, state: &RunState, step: &Step, conversation: &Conversation) -> Work {
    let Some(agent) = conversation.agent_in(flow, &step.node) else {
        return refuse(FlowCode::ModelFailed, format!("the flow has no agent `{}`", conversation.agent));
    };
    let mut request = ModelRequest {
        reasoning: agent.reasoning,
        temperature: agent.temperature,
        max_tokens: agent.max_tokens,
        budget: agent.budget.clone(),
        demo: agent.demo.clone(),
        ..turn(state, step, conversation, agent.model.clone())
    };
    // A router's agent answers with a name, and calls nothing.
    if !matches!(conversation.purpose, Purpose::Choice(_)) {
        request.output_schema.clone_from(&agent.output_schema);
        request.tools = tools(flow.of(&step.node), conversation.tools_in(flow, &step.node));
    }
    Work::Model(Box::new(request))
}

/// Returns the request for the current turn of a conversation, without any of the agent's settings.
fn turn(state: &RunState, step: &Step, conversation: &Conversation, model: String) -> ModelRequest {
    ModelRequest {
        run: state.id,
        node: step.node.clone(),
        visit: step.visit,
        turn: conversation.turn,
        agent: conversation.agent.clone(),
        model,
        instructions: conversation.instructions.clone(),
        messages: conversation.messages.clone(),
        tools: Vec::new(),
        reasoning: None,
        temperature: None,
        max_tokens: None,
        budget: None,
        output_schema: None,
        demo: None,
    }
}

fn tools(flow: &Compiled, names: Vec<String>) -> Vec<ToolSpec> {
    let tools = names.into_iter().filter_map(|name| {
        let tool = flow.tool(&name)?;
        let parameters = offered(&tool);
        let mcp = match &tool.kind {
            ToolKind::Mcp(mcp) => Some(mcp.clone()),
            _ => None,
        };
        Some(ToolSpec { name, description: tool.description.clone(), parameters, mcp })
    });
    tools.collect()
}

fn tool(flow: &Compiled, state: &RunState, step: &Step, call: &ToolCall, correction: Option<&str>) -> Work {
    let Some(tool) = flow.of(&step.node).tool(&call.tool) else {
        return refuse(FlowCode::ToolFailed, format!("the flow has no tool `{}`", call.tool));
    };
    let recorded = match request::recorded(flow, state, &step.node, step.visit, correction, call) {
        Some(Ok(recorded)) => Cow::Owned(recorded),
        Some(Err(why)) => return refuse(FlowCode::ToolFailed, why),
        None => Cow::Borrowed(call),
    };
    // What runs is what was approved, whatever happened to the record in between.
    let digest = digest::of_call(&call.tool, &call.arguments, recorded.request.as_ref());
    let Some(request) = recorded.request.clone().filter(|_| digest == recorded.digest) else {
        return refuse(
            FlowCode::ToolFailed,
            format!("the request of `{}` is not the one that was approved", call.tool),
        );
    };
    Work::Tool(Box::new(ToolRequest {
        run: state.id,
        node: step.node.clone(),
        name: call.tool.clone(),
        tool: tool.into_owned(),
        arguments: call.arguments.clone(),
        request,
        idempotency_key: format!("{}.{}.{}.{}", state.id, step.node, step.visit, call.id),
    }))
}

fn refuse(code: FlowCode, message: String) -> Work {
    Work::Refuse(TaskFailure::new(code, message))
}
