//! Advances a run: delivers answers, continues branches whose steps are over, and lets branches enter nodes, join and
//! end. This is the only place that knows the consequences; the modules below only report what has happened
//! ([`super::next`]).

use std::collections::BTreeMap;

use shared::JsonMap;
use shared::definition::{FailureThen, Join, Node, NodeKind, Target};
use shared::error::{FlowCode, FlowError};
use shared::id::NodeId;
use shared::run::Step;

use super::builder::{Builder, failure};
use super::item;
use super::next::{Answered, Arrival, EndedStep, QuestionAnswer, Reply, StepEnd};
use super::phase::{Branch, Phase};
use super::state::RunOutcome;
use crate::flow::work_limit;
use crate::limits;

/// The maximum number of branches that a run has at once: its state is written with every step.
const MAX_BRANCHES: usize = 2_000;
/// The maximum number of steps in one transition: no other input is served while it is computed.
const MAX_STEPS_AT_ONCE: usize = 10_000;

impl Builder<'_> {
    /// Advances the run until every branch waits for a task, a person or a join. `max_visits` bounds this; since nested
    /// flows multiply their visits, `MAX_BRANCHES` and `MAX_STEPS_AT_ONCE` do too. What the steps compute is bounded by
    /// [`work_limit::MAX_AT_ONCE`].
    pub(super) fn advance(&mut self) {
        self.deliver();
        while self.state.outcome.is_none() {
            if let Some((code, message)) = self.too_much() {
                let error = FlowError { code, message, node: None };
                self.end_run(RunOutcome::Failed { at: self.now, error });
            } else if let Some(arrival) = self.arrivals.pop_front() {
                self.arrive(arrival);
            } else if !self.return_from_call() && !self.join() {
                if !self.state.branches.is_empty() {
                    break;
                }
                if !self.hold_output("") {
                    self.complete();
                }
            }
            self.deliver();
        }
        if self.state.outcome.is_none() {
            self.refresh_reviews();
        }
    }

    /// Processes the reported ends of steps and answers to questions. Branches that are on their way do not arrive yet.
    pub(super) fn deliver(&mut self) {
        loop {
            if let Some(ended) = self.ended.pop_front() {
                self.step_ended(ended);
            } else if let Some(answered) = self.answers.pop_front() {
                self.hand_over(answered);
            } else {
                break;
            }
        }
    }

    /// Delivers an answer to the branch that waits for it.
    fn hand_over(&mut self, answered: Answered) {
        let Answered { subject, answer } = answered;
        let Some(number) = subject.branch() else { return };
        // A timeout that is an error of the flow fails the step itself, not the branch that works for it.
        let number = if matches!(answer, QuestionAnswer::TimedOut(_)) { self.state.root_of(number) } else { number };
        let failed = matches!(answer, QuestionAnswer::Failed(_) | QuestionAnswer::TimedOut(_));
        if failed {
            self.end_work(number, None, "the run has failed");
        }
        let Some(Branch { node, phase }) = self.state.branches.remove(&number) else { return };
        match (phase, answer) {
            (Phase::Returning { step }, QuestionAnswer::Failed(error)) => {
                self.end(number, step, StepEnd::Stopped { error });
            }
            (Phase::Agent { step, conversation }, QuestionAnswer::Failed(error)) => {
                self.fail_conversation(number, step, &conversation, error);
            }
            (Phase::Team { step, team }, QuestionAnswer::Turn(ended)) => self.turn_ended(number, step, team, *ended),
            (phase, QuestionAnswer::Failed(error)) => {
                if let Some(step) = phase.step() {
                    self.fail_step(number, step.clone(), error);
                }
            }
            (phase, QuestionAnswer::TimedOut(error)) => {
                if let Some(step) = phase.step() {
                    self.end(number, step.clone(), StepEnd::Stopped { error });
                }
            }
            (Phase::Human { step }, QuestionAnswer::Node(answer)) => self.human_answered(number, step, answer),
            (Phase::Agent { step, conversation }, QuestionAnswer::Calls { rulings, instructions, .. }) => {
                self.agent_calls_decided(number, step, conversation, rulings, instructions);
            }
            (Phase::Agent { step, conversation }, QuestionAnswer::Action { ruling, .. }) => {
                self.agent_decided(number, step, conversation, ruling);
            }
            (Phase::Agent { step, .. }, QuestionAnswer::Written(writes)) => {
                self.finish_taken_over(number, step, writes);
            }
            (Phase::Agent { step, conversation }, QuestionAnswer::Reply(Reply::TakesOver { result, then }, _)) => {
                let call = subject.calls().first().cloned().unwrap_or_default();
                self.taken_over(number, step, conversation, &call, &result, then);
            }
            (phase, QuestionAnswer::Reply(reply, _)) => {
                let call = subject.calls().first().cloned().unwrap_or_default();
                self.call_replied(number, phase, &call, reply);
            }
            (Phase::Returning { step }, QuestionAnswer::Action { ruling, .. }) => {
                self.output_decided(number, step, ruling);
            }
            (Phase::Tool { step, call, correction, wrote }, QuestionAnswer::Calls { mut rulings, .. }) => {
                match rulings.remove(&call.id) {
                    Some(ruling) => self.tool_call_decided(number, step, correction, &call, ruling),
                    None => self.settle(number, Phase::Tool { step, call, correction, wrote }),
                }
            }
            // Does not happen, since an answer fits its question, and a question its subject: the branch stays as it
            // is.
            (phase, _) => _ = self.state.branches.insert(number, Branch { node, phase }),
        }
    }

    fn step_ended(&mut self, ended: EndedStep) {
        let EndedStep { branch, mut step, end } = ended;
        match end {
            StepEnd::Finished { writes } => self.finished(branch, step, &writes),
            StepEnd::Chose { targets } => {
                self.complete_step(&mut step, &JsonMap::new());
                self.go(branch, &step.node, targets);
            }
            StepEnd::LeftFor { node } => self.leave_for(branch, step, &node),
            StepEnd::Corrects { node, message } => {
                self.complete_step(&mut step, &JsonMap::new());
                if let Some(node) = node {
                    self.arrivals.push_back(Arrival { correction: Some(message), ..Arrival::at(branch, node) });
                }
            }
            StepEnd::Returned { output } => self.returned(step, output),
            StepEnd::Failed { error } => self.after_failure(branch, step, error),
            StepEnd::Stopped { error } => {
                self.record_failure(&mut step, error.clone());
                self.fail_flow(&step.node, error);
            }
        }
    }

    fn too_much(&self) -> Option<(FlowCode, String)> {
        if work_limit::is_spent() {
            return Some((FlowCode::FlowCondition, work_limit::SPENT.to_owned()));
        }
        // The items of a map are queued together, but those that end at once are never branches side by side.
        let message = if self.arrivals.front().is_some_and(|arrival| arrival.item_of.is_some()) {
            return None;
        } else if self.state.branches.len() + self.arrivals.len() > MAX_BRANCHES {
            format!("the run has more than {MAX_BRANCHES} branches at once; use maps over shorter lists")
        } else if self.steps_made() > MAX_STEPS_AT_ONCE {
            format!("the run took more than {MAX_STEPS_AT_ONCE} steps without waiting for anything")
        } else {
            return None;
        };
        Some((FlowCode::FlowVisitLimit, message))
    }

    fn arrive(&mut self, arrival: Arrival) {
        let flow = self.flow;
        let Some(node) = flow.node(&arrival.node) else {
            let message = format!("the flow has no node `{}`", arrival.node);
            return self.fail_flow(&arrival.node, failure(FlowCode::FlowInvalid, &arrival.node, message));
        };
        if arrival.item_of.is_some() {
            self.enter(arrival.branch, &arrival.node, node, arrival.correction);
        } else if self.visits_left(&arrival.node) == 0 {
            self.detour(arrival, node);
        } else if node.join == Join::All && arrival.correction.is_none() {
            let arrived = self.next_number();
            let waiting = Branch { node: arrival.node, phase: Phase::Joining { arrived } };
            self.state.branches.insert(arrival.branch, waiting);
        } else {
            self.enter(arrival.branch, &arrival.node, node, arrival.correction);
        }
    }

    /// Redirects a branch from a node without visits left to the node's `on_visit_limit`. The flow fails if there is
    /// none, or if such nodes redirect to each other in a circle.
    fn detour(&mut self, mut arrival: Arrival, node: &Node) {
        let limited = arrival.node;
        match &node.on_visit_limit {
            Some(to) if to.as_str() != limited.own() && !arrival.detours.contains(&limited.beside(to)) => {
                let node = limited.beside(to);
                arrival.detours.push(limited);
                self.arrivals.push_front(Arrival { node, correction: None, ..arrival });
            }
            _ => {
                let message = format!("`{limited}` has used all of its {} visits", node.max_visits());
                self.fail_flow(&limited, failure(FlowCode::FlowVisitLimit, &limited, message));
            }
        }
    }

    fn enter(&mut self, branch: u32, id: &NodeId, node: &Node, correction: Option<String>) {
        let step = self.start_step(id, node.kind.as_str());
        let own = step.clone();
        let entered = match &node.kind {
            NodeKind::Set(values) => self.enter_set(branch, step, node, values),
            NodeKind::Router(router) => self.enter_router(branch, step, router),
            NodeKind::Human(_) => {
                self.enter_human(branch, step);
                Ok(())
            }
            NodeKind::Agent { agent, prompt } => self.enter_agent(branch, step, agent, prompt.as_deref(), correction),
            NodeKind::Tool { tool, arguments } => self.enter_tool(branch, step, tool, arguments.as_ref(), correction),
            NodeKind::Map(map) => self.enter_map(branch, step, map, correction.as_deref()),
            NodeKind::Flow(call) => self.enter_flow(branch, step, call, correction),
            NodeKind::Team(team) => self.enter_team(branch, step, team, correction.as_deref()),
        };
        if let Err(error) = entered {
            self.fail_step(branch, own, error);
        }
    }

    /// Moves a branch on from the node of a completed step, along `next`.
    fn leave(&mut self, branch: u32, step: &Step) {
        match self.targets(&step.node, step.visit) {
            Ok(targets) => self.go(branch, &step.node, targets),
            Err(error) => self.fail_flow(&step.node, error),
        }
    }

    /// Starts a branch for each target node; the first one keeps the number of the branch that leaves.
    fn go(&mut self, branch: u32, from: &NodeId, targets: Vec<Target>) {
        let mut own = Some(branch);
        for target in targets {
            if let Target::Node(node) = target {
                let number = own.take().unwrap_or_else(|| self.next_number());
                self.arrivals.push_back(Arrival::at(number, from.beside(&node)));
            }
        }
    }

    /// Completes a step: writes to the state, and moves its branch on. For an item of a map, the map gets the result
    /// instead. A value can be too large although its parts were not, such as the results of a map: then the step
    /// fails.
    fn finished(&mut self, branch: u32, mut step: Step, writes: &JsonMap) {
        if let Some(exceeded) = writes.values().find_map(|value| limits::check(value).err()) {
            let message = format!("what `{}` writes is {exceeded}", step.node);
            let error = failure(FlowCode::FlowCondition, &step.node, message);
            return self.after_failure(branch, step, error);
        }
        if let Some(part) = item::map_item(self.flow, &self.state, &step) {
            return self.item_done(part, step, writes);
        }
        self.write(&step, writes);
        self.complete_step(&mut step, writes);
        self.leave(branch, &step);
    }

    /// Completes a step whose branch goes to a node outside of its `next`. For an item of a map, the whole map leaves.
    fn leave_for(&mut self, branch: u32, mut step: Step, node: &NodeId) {
        self.complete_step(&mut step, &JsonMap::new());
        match item::map_item(self.flow, &self.state, &step) {
            Some(part) => self.leave_map(part, step.node.beside(node)),
            None => self.arrivals.push_back(Arrival::at(branch, step.node.beside(node))),
        }
    }

    /// Fails a step that has no attempts left, and applies its failure policy. For an item of a map, the map fails.
    fn after_failure(&mut self, branch: u32, mut step: Step, error: FlowError) {
        self.record_failure(&mut step, error.clone());
        if let Some(part) = item::map_item(self.flow, &self.state, &step) {
            return self.item_failed(part, error);
        }
        match self.failure_policy(&step.node).then.clone() {
            FailureThen::Fail => self.fail_flow(&step.node, error),
            FailureThen::Goto(node) => self.arrivals.push_back(Arrival::at(branch, step.node.beside(&node))),
        }
    }

    /// Fails the flow that a node is in: the run, or the step that called the flow.
    fn fail_flow(&mut self, node: &NodeId, error: FlowError) {
        match self.end_frame(node.frame(), &error) {
            Some((branch, step)) => self.fail_step(branch, step, error),
            None => self.end_run(RunOutcome::Failed { at: self.now, error }),
        }
    }

    /// Completes the run after its last branch has ended, or fails it if a guardrail blocks the output. Redactions of
    /// the output are also made in the state.
    fn complete(&mut self) {
        match self.check_final_output() {
            Ok(output) => {
                self.state.keys.extend(output);
                self.end_run(RunOutcome::Completed { at: self.now });
            }
            Err(error) => self.end_run(RunOutcome::Failed { at: self.now, error }),
        }
    }

    /// Returns an approved output to the caller of its flow, or completes the run. Values that the approval changed are
    /// also written to the state.
    fn returned(&mut self, mut step: Step, output: JsonMap) {
        let keys = self.state.keys_of(&step.node);
        let changed = output.iter().filter(|(key, value)| keys.get(*key) != Some(value));
        let writes: JsonMap = changed.map(|(key, value)| (key.clone(), value.clone())).collect();
        self.write(&step, &writes);
        self.complete_step(&mut step, &writes);
        match step.node.frame() {
            "" => self.end_run(RunOutcome::Completed { at: self.now }),
            frame => self.give_to_caller(frame, output),
        }
    }

    /// Joins one group of waiting branches into one, at a node that no other live branch can reach any more. If all
    /// branches of a frame wait, the group with the earliest arrival is joined. Returns whether a group was joined.
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
        // A branch that waits for a called flow does not count: the branches of that flow can still move it.
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
}
