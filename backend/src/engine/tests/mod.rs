//! Tests of the engine: flows as they are written, with people and workers as inputs.

mod actions;
mod agents;
mod article;
mod ask_builtin;
mod ask_builtin_time;
mod auto;
mod call_limits;
mod chain;
mod context;
mod decisions;
mod delegate;
mod escalations;
mod feedback;
mod formats;
mod four_eyes;
mod four_gates;
mod gates;
mod grants;
mod graph;
mod guardrail_programs;
mod guardrails;
mod invariants;
mod judges;
mod late;
mod maps;
mod nested;
mod options;
mod peers;
mod programs;
mod random;
mod reassign;
mod redaction;
mod skipped;
mod stakes;
mod takeovers;
mod team_changes;
mod teams;
mod timers;
mod titles;
mod two_gates;
mod validators;
mod votes;
mod votes_random;
mod withdraw;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use shared::JsonMap;
use shared::access::Principal;
use shared::decision::{ActionDecision, DecisionRequest, ProgramAnswer, Verdict, Via};
use shared::error::FlowCode;
use shared::id::{ReviewId, StepId, TaskId};
use shared::log::EntryKind;
use shared::review::{Review, ReviewStatus};
use shared::run::{Context, Part, RunStatus, Step, StepStatus};
use shared::time::Timestamp;

use super::*;
use crate::flow;
use article::ARTICLE;
use guardrail_programs::program;

/// A run under test, with everything that the store would keep. Each transition is checked against the invariants of
/// the engine, and made twice to see that the result is the same.
#[derive(Debug)]
struct Play {
    flow: Arc<Compiled>,
    snapshot: Snapshot,
    tasks: BTreeMap<TaskId, Task>,
    /// The abandoned calls that may still be under way.
    abandoned: BTreeMap<TaskId, Task>,
    steps: Vec<Step>,
    /// The events of the last transition.
    events: Vec<shared::log::Event>,
    resolved: BTreeSet<ReviewId>,
    /// The request of each call, with the arguments that it was rendered from.
    requests: BTreeMap<(StepId, String), (JsonMap, shared::request::Request)>,
    /// The users who exist, if the flow asks for them.
    people: Option<Arc<[Principal]>>,
    now: Timestamp,
    moves: u8,
}

fn compile(source: &str) -> Compiled {
    let checked = flow::check(source);
    assert!(checked.errors.is_empty(), "{:#?}", checked.errors);
    Compiled::new(checked.flow.unwrap(), 1).unwrap()
}

#[expect(clippy::needless_pass_by_value, reason = "reads better at every call: `object(json!({ … }))`")]
fn object(value: Value) -> JsonMap {
    value.as_object().cloned().unwrap_or_default()
}

fn person(name: &str, roles: &[&str]) -> Principal {
    Principal::new(name.parse().unwrap(), roles.iter().map(|role| (*role).to_owned()).collect())
}

fn ana() -> Principal {
    person("ana", &["reviewer"])
}

fn choose(option: &str) -> Verdict {
    Verdict::Choose { option: option.to_owned(), fields: JsonMap::new() }
}

fn say(text: &str) -> Verdict {
    Verdict::Text { text: text.to_owned() }
}

fn answer_actions<const N: usize>(decisions: [(&str, ActionDecision); N]) -> Verdict {
    let decisions = decisions.into_iter().map(|(id, decision)| (id.to_owned(), decision)).collect();
    Verdict::Actions { decisions, instructions: None }
}

fn request(review: &Review, verdict: Verdict) -> DecisionRequest {
    DecisionRequest {
        revision: review.revision,
        digest: review.digest.clone(),
        verdict,
        edits: JsonMap::new(),
        comment: None,
        metadata: JsonMap::new(),
    }
}

fn text(text: &str) -> ModelAnswer {
    ModelAnswer { text: text.to_owned(), tokens: 10, cost_usd: 0.001, duration_ms: 5, ..ModelAnswer::default() }
}

fn calls<const N: usize>(calls: [(&str, Value); N]) -> ModelAnswer {
    let call = |(index, (tool, arguments)): (usize, (&str, Value))| ModelToolCall {
        provider_id: format!("p{index}"),
        tool: tool.to_owned(),
        arguments,
    };
    ModelAnswer { calls: calls.into_iter().enumerate().map(call).collect(), ..text("") }
}

impl Play {
    fn moment(now: Timestamp, moves: u8) -> Moment {
        Moment { now, seed: [moves; 16] }
    }

    /// Returns a copy, to continue in another way from here.
    fn again(&self) -> Self {
        Self {
            flow: Arc::clone(&self.flow),
            snapshot: self.snapshot.clone(),
            tasks: self.tasks.clone(),
            abandoned: self.abandoned.clone(),
            steps: self.steps.clone(),
            events: self.events.clone(),
            resolved: self.resolved.clone(),
            requests: self.requests.clone(),
            people: self.people.clone(),
            ..*self
        }
    }

    fn start(source: &str, input: Value) -> Self {
        Self::try_start(compile(source), input).unwrap()
    }

    fn try_start(flow: Compiled, input: Value) -> Result<Self, Refusal> {
        Self::try_start_among(flow, input, &[ana()])
    }

    /// Starts a run in which these users exist.
    fn try_start_among(flow: Compiled, input: Value, people: &[Principal]) -> Result<Self, Refusal> {
        Self::try_start_for(flow, input, people, Context::default())
    }

    /// Starts a run with a context, in which these users exist.
    fn try_start_for(flow: Compiled, input: Value, people: &[Principal], context: Context) -> Result<Self, Refusal> {
        let people: Option<Arc<[Principal]>> = flow.needs_people().then(|| people.into());
        let now = Timestamp(1_800_000_000_000_000);
        let launched = RunStart {
            run: "01900000-0000-7000-8000-000000000001".parse().unwrap(),
            flow: flow.flow.id.clone(),
            version: flow.version,
            input: object(input),
            context,
            keeps_metadata: true,
            requested_by: "dev".parse().unwrap(),
            token: None,
            people: people.clone(),
            feedback: Vec::new(),
        };
        let transition = launch(&flow, launched.clone(), Vec::new(), Self::moment(now, 0))?;
        assert_eq!(launch(&flow, launched, Vec::new(), Self::moment(now, 0)).unwrap(), transition);
        assert_eq!(transition.state.revision, 1);
        let snapshot = Snapshot {
            state: transition.state.clone(),
            reviews: BTreeMap::new(),
            grants: Vec::new(),
            people: None,
            feedback: Vec::new(),
        };
        let mut play = Self {
            flow: Arc::new(flow),
            snapshot,
            tasks: BTreeMap::new(),
            abandoned: BTreeMap::new(),
            steps: Vec::new(),
            events: Vec::new(),
            resolved: BTreeSet::new(),
            requests: BTreeMap::new(),
            people,
            now,
            moves: 1,
        };
        play.take(transition);
        Ok(play)
    }

    /// Applies an input a second after the last one. If guardrails must ask programs about a decision, they are asked
    /// as the store does it.
    fn try_apply(&mut self, mut input: Input) -> Result<Option<Refusal>, Refusal> {
        loop {
            match (self.try_apply_once(input.clone()), &mut input) {
                (
                    Err(Refusal::Unasked { inquiries, .. }) | Ok(Some(Refusal::Unasked { inquiries, .. })),
                    Input::Decide { replies, .. } | Input::CallBack { replies, .. },
                ) => {
                    assert!(!inquiries.is_empty());
                    replies.extend(inquiries.iter().map(|inquiry| GuardrailReply::new(inquiry, program(inquiry))));
                }
                (applied, _) => return applied,
            }
        }
    }

    fn try_apply_once(&mut self, input: Input) -> Result<Option<Refusal>, Refusal> {
        self.now = self.now.after(Duration::from_secs(1));
        self.moves = self.moves.wrapping_add(1);
        let moment = Self::moment(self.now, self.moves);
        let snapshot = Snapshot { people: self.people.clone(), ..self.snapshot.clone() };
        let transition = apply(&self.flow, snapshot.clone(), input.clone(), moment)?;
        let recorded = Snapshot { people: transition.people_used.clone(), ..snapshot };
        let is_viewed = matches!(input, Input::Viewed { .. });
        assert_eq!(apply(&self.flow, recorded, input, moment).unwrap(), transition, "not replayable");
        self.check_transition(&transition, is_viewed);
        let refused = transition.refused.clone();
        self.take(transition);
        Ok(refused)
    }

    fn apply(&mut self, input: Input) {
        assert_eq!(self.try_apply(input).unwrap(), None);
    }

    /// Does with a transition what the store does, and checks the invariants.
    fn take(&mut self, transition: Transition) {
        self.snapshot.fold(transition.state.clone(), transition.reviews.clone());
        for grant in &transition.given {
            let giver = person(&grant.given_by, &["reviewer"]);
            self.snapshot.grants.push(Granted { grant: grant.clone(), giver });
        }
        for step in &transition.steps {
            match self.steps.iter_mut().find(|known| known.id == step.id) {
                Some(known) => known.clone_from(step),
                None => self.steps.push(step.clone()),
            }
        }
        for task in &transition.tasks {
            assert!(!transition.ended_tasks.contains(&task.id), "a task is new and ended at once");
            self.tasks.insert(task.id, task.clone());
        }
        for task in &transition.ended_tasks {
            let known = self.tasks.remove(task).or_else(|| self.abandoned.remove(task));
            assert!(known.is_some(), "an unknown task was ended");
        }
        for task in &transition.abandoned_tasks {
            let known = self.tasks.remove(task).expect("an unknown task was abandoned");
            assert!(known.kind.is_call());
            self.abandoned.insert(*task, known);
        }
        for event in transition.events.iter().filter(|event| event.kind == EntryKind::ReviewResolved) {
            assert!(self.resolved.insert(event.review_id.unwrap()), "a review was resolved twice");
        }
        self.events = transition.events;
        self.check();
        self.check_requests();
        self.check_guardrails();
    }

    fn status(&self) -> RunStatus {
        summary(&self.snapshot.state).status
    }

    fn key(&self, key: &str) -> &Value {
        self.snapshot.state.keys.get(key).unwrap_or(&Value::Null)
    }

    fn error(&self) -> (FlowCode, String) {
        let error = summary(&self.snapshot.state).error.expect("the run has failed");
        (error.code, error.message)
    }

    /// Returns the only pending review.
    fn review(&self) -> Review {
        let pending: Vec<_> = self.snapshot.reviews.values().filter(|review| review.is_pending()).collect();
        assert_eq!(pending.len(), 1, "{:?}", pending.iter().map(|review| &review.title).collect::<Vec<_>>());
        pending[0].clone()
    }

    fn past(&self, id: ReviewId) -> &Review {
        &self.snapshot.reviews[&id]
    }

    fn kinds(&self) -> Vec<&'static str> {
        self.events.iter().map(|event| event.kind.as_str()).collect()
    }

    fn steps(&self) -> Vec<(String, u32, StepStatus)> {
        self.steps.iter().map(|step| (step.node.to_string(), step.visit, step.status)).collect()
    }

    fn task_at(&self, node: &str) -> Task {
        let at = |task: &&Task| &*task.node == node && task.kind.is_call();
        self.tasks.values().find(at).unwrap_or_else(|| panic!("a task at {node}: {:?}", self.tasks)).clone()
    }

    fn call_task(&self, call: &str) -> Task {
        let of = |task: &&Task| match &task.kind {
            TaskKind::Tool { call: id } | TaskKind::Wake { call: id } => id == call,
            _ => false,
        };
        self.tasks.values().find(of).expect("a task of the call").clone()
    }

    fn model(&mut self, node: &str, answer: ModelAnswer) {
        let task = self.task_at(node).id;
        self.apply(Input::ModelAnswered { task, attempt: 1, answer });
    }

    /// Returns the messages that the model at a node gets.
    fn heard(&self, node: &str) -> Vec<Message> {
        self.model_work(node).messages
    }

    fn model_work(&self, node: &str) -> ModelRequest {
        match work(&self.flow, &self.snapshot.state, &self.task_at(node)) {
            Some(Work::Model(request)) => *request,
            other => panic!("{other:?}"),
        }
    }

    fn tool_work(&self, task: &Task) -> ToolRequest {
        match work(&self.flow, &self.snapshot.state, task) {
            Some(Work::Tool(request)) => *request,
            other => panic!("{other:?}"),
        }
    }

    fn returned(&mut self, task: &Task, result: Value) {
        self.apply(Input::ToolReturned { task: task.id, attempt: 1, result });
    }

    fn failed(&mut self, task: &Task, code: FlowCode, retryable: bool) {
        let failure = TaskFailure { retryable, ..TaskFailure::new(code, "no luck") };
        self.apply(Input::TaskFailed { task: task.id, attempt: 1, failure });
    }

    fn try_decide(&mut self, review: ReviewId, by: &Principal, request: DecisionRequest) -> Result<(), Refusal> {
        match self.try_apply(Input::decide(review, by.clone(), Via::Human, request))? {
            Some(refusal) => Err(refusal),
            None => Ok(()),
        }
    }

    fn decide(&mut self, verdict: Verdict) {
        let review = self.review();
        self.decide_on(&review, verdict);
    }

    fn decide_on(&mut self, review: &Review, verdict: Verdict) {
        self.try_decide(review.id, &ana(), request(review, verdict)).unwrap();
        assert_eq!(self.past(review.id).status, ReviewStatus::Resolved);
    }
}

fn mistakes(refusal: Refusal) -> Vec<(String, String)> {
    match refusal {
        Refusal::Invalid(mistakes) => mistakes.into_iter().map(|mistake| (mistake.path, mistake.code)).collect(),
        other => panic!("{other:?}"),
    }
}
