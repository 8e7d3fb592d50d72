//! Where branches go: edges, visits, joins, and the end of a run.

use std::collections::BTreeMap;

use shared::JsonMap;
use shared::decision::Via;
use shared::definition::{EdgeCondition, FailureThen, Join, Node, NodeKind, Target};
use shared::error::{FlowCode, RunError};
use shared::id::{NodeId, Username};
use shared::run::{Step, StepStatus};

use super::builder::{Builder, failure, unevaluated};
use super::event::RunChange;
use super::scope::{self, Visit};
use super::state::{Branch, Phase, RunOutcome};
use super::view;
use crate::limits;

/// The most branches that a run has at once: its state is written with every step.
const MAX_BRANCHES: usize = 2_000;
/// The most steps that are made without waiting for anything: nobody else is served meanwhile.
const MAX_STEPS_AT_ONCE: usize = 10_000;

/// A branch on its way to a node.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    /// The branch.
    pub branch: u32,
    /// Where it goes.
    pub node: NodeId,
    /// What a person wants done differently there, in that visit only. A correction goes past `join: all`: the step
    /// runs again, nothing new has come together.
    pub correction: Option<String>,
    /// The nodes without visits left that sent it on.
    pub detours: Vec<NodeId>,
}

impl Arrival {
    /// A branch that simply goes on.
    pub(super) fn at(branch: u32, node: NodeId) -> Self {
        Self { branch, node, correction: None, detours: Vec::new() }
    }
}

impl Builder<'_> {
    /// Goes on until every branch waits for a task, a person or a join. `max_visits` bounds it; since flows that call each
    /// other multiply theirs, so does what one transition can bear.
    pub(super) fn advance(&mut self) {
        while self.state.outcome.is_none() {
            if let Some(message) = self.too_much() {
                let error = RunError { code: FlowCode::FlowVisitLimit, message, node: None };
                self.end_run(RunOutcome::Failed { at: self.now, error });
            } else if let Some(arrival) = self.arrivals.pop_front() {
                self.arrive(arrival);
            } else if !self.return_from_call() && !self.join() {
                break;
            }
        }
        if self.state.outcome.is_none() {
            if self.state.branches.is_empty() {
                self.complete();
            } else {
                self.refresh_reviews();
            }
        }
    }

    fn too_much(&self) -> Option<String> {
        if self.state.branches.len() + self.arrivals.len() > MAX_BRANCHES {
            Some(format!("the run has more than {MAX_BRANCHES} branches at once: let maps run over shorter lists"))
        } else if self.steps_made() > MAX_STEPS_AT_ONCE {
            Some(format!("the run made more than {MAX_STEPS_AT_ONCE} steps without waiting for anything"))
        } else {
            None
        }
    }

    fn arrive(&mut self, arrival: Arrival) {
        let flow = self.flow;
        let Some(node) = flow.node(&arrival.node) else {
            let message = format!("the flow has no node `{}`", arrival.node);
            return self.fail_flow(&arrival.node, failure(FlowCode::FlowInvalid, &arrival.node, message));
        };
        if self.visits_left(&arrival.node) == 0 {
            self.detour(arrival, node);
        } else if node.join == Join::All && arrival.correction.is_none() {
            let arrived = self.next_number();
            self.settle(arrival.branch, &arrival.node, Phase::Joining { arrived });
        } else {
            self.enter(arrival.branch, &arrival.node, node, arrival.correction);
        }
    }

    /// How often a node may still be visited.
    pub(super) fn visits_left(&self, id: &NodeId) -> u32 {
        let visits = self.state.visits.get(id).copied().unwrap_or(0);
        self.flow.node(id).map_or(0, |node| node.max_visits().saturating_sub(visits))
    }

    /// A node without visits left sends a branch on, or fails the run; nodes that send each other on fail it too.
    fn detour(&mut self, mut arrival: Arrival, node: &Node) {
        let limited = arrival.node;
        match &node.on_visit_limit {
            Some(to) if to.as_str() != limited.own() && !arrival.detours.contains(&limited.beside(to)) => {
                let node = limited.beside(to);
                arrival.detours.push(limited);
                self.arrivals.push_front(Arrival { node, correction: None, ..arrival });
            }
            _ => {
                let message = format!("`{limited}` may be visited {} times, and has been", node.max_visits());
                self.fail_flow(&limited, failure(FlowCode::FlowVisitLimit, &limited, message));
            }
        }
    }

    pub(super) fn enter(&mut self, branch: u32, id: &NodeId, node: &Node, correction: Option<String>) {
        let step = self.start_step(id, node.kind.as_str());
        match &node.kind {
            NodeKind::Set(values) => self.enter_set(branch, step, node, values),
            NodeKind::Router(router) => self.enter_router(branch, step, router),
            NodeKind::Human(human) => self.enter_human(branch, step, human),
            NodeKind::Agent { agent, prompt } => {
                self.enter_agent(branch, step, agent, prompt.as_deref(), correction);
            }
            NodeKind::Tool { tool, arguments } => {
                self.enter_tool(branch, step, tool, arguments.as_ref(), correction);
            }
            NodeKind::Map(map) => self.enter_map(branch, step, map, correction.as_deref()),
            NodeKind::Flow(call) => self.enter_flow(branch, step, call, correction),
            NodeKind::Team(_) => {
                let message = format!("nodes of kind `{}` are not supported yet", node.kind.as_str());
                let error = failure(FlowCode::FlowUnsupported, id, message);
                self.fail_step(branch, step, error);
            }
        }
    }

    /// Lets one group of waiting branches go on as one, where no other live branch can come to their node any more;
    /// where only waiting ones remain, the group of the earliest. Says whether one went.
    fn join(&mut self) -> bool {
        let mut earliest: BTreeMap<&NodeId, u32> = BTreeMap::new();
        for branch in self.state.branches.values() {
            if let Phase::Joining { arrived } = branch.phase {
                let first = earliest.entry(&branch.node).or_insert(arrived);
                *first = arrived.min(*first);
            }
        }
        let waits_at = |phase: &Phase| matches!(phase, Phase::Joining { .. });
        let is_free = |node: &NodeId| {
            let mut others =
                self.state.branches.values().filter(|branch| !(waits_at(&branch.phase) && branch.node == *node));
            !others.any(|branch| self.flow.reaches(&branch.node, node))
        };
        // Those that wait for a call wait for branches that are elsewhere.
        let all_wait = |frame: &str| {
            let mut beside = self.state.branches.values().filter(|branch| branch.node.frame() == frame);
            beside.all(|branch| waits_at(&branch.phase))
        };
        let free = earliest.iter().filter(|(node, _)| is_free(node)).min_by_key(|(_, arrived)| **arrived);
        let stuck = || earliest.iter().filter(|(node, _)| all_wait(node.frame())).min_by_key(|(_, arrived)| **arrived);
        let Some(node) = free.or_else(stuck).map(|(node, _)| (*node).clone()) else { return false };

        let mut numbers: Vec<u32> = Vec::new();
        self.state.branches.retain(|number, branch| {
            let goes = branch.node == node && waits_at(&branch.phase);
            if goes {
                numbers.push(*number);
            }
            !goes
        });
        let flow = self.flow;
        if let (Some(first), Some(definition)) = (numbers.first(), flow.node(&node)) {
            if self.visits_left(&node) == 0 {
                self.detour(Arrival::at(*first, node), definition);
            } else {
                self.enter(*first, &node, definition, None);
            }
        }
        true
    }

    /// A branch leaves the node of a step that is done, along `next`.
    pub(super) fn leave(&mut self, branch: u32, step: &Step) {
        match self.targets(&step.node, step.visit) {
            Ok(targets) => self.go(branch, &step.node, targets),
            Err(error) => self.fail_flow(&step.node, error),
        }
    }

    /// Starts a branch for each target; the first goes on with the number of the one that came.
    pub(super) fn go(&mut self, branch: u32, from: &NodeId, targets: Vec<Target>) {
        let mut own = Some(branch);
        for target in targets {
            if let Target::Node(node) = target {
                let number = own.take().unwrap_or_else(|| self.next_number());
                self.arrivals.push_back(Arrival::at(number, from.beside(&node)));
            }
        }
    }

    /// Where `next` of a node leads now: every entry that has no condition or whose `when` holds; `else` where no
    /// `when` held. No `next` leads nowhere; nothing taken where something was expected is an error.
    pub(super) fn targets(&self, id: &NodeId, visit: u32) -> Result<Vec<Target>, RunError> {
        let edges = self.flow.node(id).map(|node| node.next.0.as_slice()).unwrap_or_default();
        if edges.is_empty() {
            return Ok(Vec::new());
        }
        let scope = scope::of(self.flow, &self.state, id, Visit { number: visit, ..Visit::default() });
        let mut held = Vec::with_capacity(edges.len());
        for edge in edges {
            held.push(match &edge.condition {
                EdgeCondition::When(when) => {
                    self.flow.of(id).holds(when, &scope).map_err(|error| unevaluated(id, &error))?
                }
                EdgeCondition::Always | EdgeCondition::Else => false,
            });
        }
        let any = held.contains(&true);
        let taken: Vec<_> = edges
            .iter()
            .zip(held)
            .filter(|(edge, held)| match edge.condition {
                EdgeCondition::Always => true,
                EdgeCondition::When(_) => *held,
                EdgeCondition::Else => !any,
            })
            .map(|(edge, _)| edge.to.clone())
            .collect();
        if taken.is_empty() {
            let message = format!("no edge of `{id}` could be taken: add one with `else: true`");
            return Err(failure(FlowCode::FlowNoMatchingEdge, id, message));
        }
        Ok(taken)
    }

    /// A step is done: its writes go into the state, and the branch leaves. That of an item is its map's result.
    /// Several values that came in apart can be too large together.
    pub(super) fn finish_step(&mut self, branch: u32, mut step: Step, writes: &JsonMap) {
        if let Some(exceeded) = writes.values().find_map(|value| limits::check(value).err()) {
            let message = format!("what `{}` writes is {exceeded}", step.node);
            let error = failure(FlowCode::FlowCondition, &step.node, message);
            return self.fail_step(branch, step, error);
        }
        if let Some(part) = self.part(&step) {
            return self.item_done(part, step, writes);
        }
        self.write(&step, writes);
        self.complete_step(&mut step, writes);
        self.leave(branch, &step);
    }

    /// A step is over, and its branch goes to a node that is not its `next`. That of an item takes its map along.
    pub(super) fn leave_for(&mut self, branch: u32, mut step: Step, node: &NodeId) {
        self.complete_step(&mut step, &JsonMap::new());
        match self.part(&step) {
            Some(part) => self.leave_map(part, step.node.beside(node)),
            None => self.arrivals.push_back(Arrival::at(branch, step.node.beside(node))),
        }
    }

    /// A step failed, and no try is left: the failure policy says what happens. An item that fails, fails its map.
    pub(super) fn fail_step(&mut self, branch: u32, mut step: Step, error: RunError) {
        self.failed_step(&mut step, error.clone());
        if let Some(part) = self.part(&step) {
            return self.item_failed(part, error);
        }
        match self.failure_policy(&step.node).then.clone() {
            FailureThen::Fail => self.fail_flow(&step.node, error),
            FailureThen::Goto(node) => self.arrivals.push_back(Arrival::at(branch, step.node.beside(&node))),
        }
    }

    /// The flow that a node is in fails: the run, or the step that called it.
    pub(super) fn fail_flow(&mut self, node: &NodeId, error: RunError) {
        match self.end_frame(node.frame(), &error) {
            Some((branch, step)) => self.fail_step(branch, step, error),
            None => self.end_run(RunOutcome::Failed { at: self.now, error }),
        }
    }

    /// Ends the run, and with it all branches: pending reviews are withdrawn, timers ended, calls abandoned, steps
    /// cancelled.
    pub(super) fn end_run(&mut self, outcome: RunOutcome) {
        let (why, by) = match &outcome {
            RunOutcome::Completed { .. } => ("the run has completed".to_owned(), None),
            RunOutcome::Failed { error, .. } => (format!("the run has failed: {error}"), None),
            RunOutcome::Cancelled { by, reason, .. } => {
                let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
                (format!("the run was cancelled{reason}"), Some(by.clone()))
            }
        };
        self.arrivals.clear();
        while let Some(number) = self.state.branches.keys().next().copied() {
            self.end_branch(number, by.as_ref(), &why);
        }
        self.emit_end(&outcome, by);
        self.state.outcome = Some(outcome);
    }

    /// Ends a branch where it stands: its reviews are withdrawn, its timers ended, its calls abandoned, its step
    /// cancelled; with it goes all that the flow does which it called.
    pub(super) fn end_branch(&mut self, number: u32, by: Option<&Username>, why: &str) {
        let Some(Branch { phase, .. }) = self.state.branches.remove(&number) else { return };
        self.abandon(&phase);
        for asked in phase.asked().to_vec() {
            self.withdraw(asked, Via::Run, by.cloned(), why);
        }
        if let Phase::Flow { step } = &phase {
            self.end_call(step, by, why);
        }
        if let Some(step) = phase.step() {
            self.end_step(&mut step.clone(), StepStatus::Cancelled);
        }
    }

    fn emit_end(&mut self, outcome: &RunOutcome, by: Option<Username>) {
        match outcome {
            RunOutcome::Completed { .. } => {
                let output = view::output(self.flow, &self.state.keys);
                self.emit_run(RunChange::Completed { output }, None);
            }
            RunOutcome::Failed { .. } => self.emit_run(RunChange::Failed, None),
            RunOutcome::Cancelled { reason, .. } => {
                self.emit_run(RunChange::Cancelled { reason: reason.clone() }, by);
            }
        }
    }
}
