//! A transition under construction: the run so far, and everything to commit with it. The other files of the engine
//! extend it (`nodes/agent.rs` for agents, `ask/` for questions, …).
//!
//! A branch in progress is taken out of the state, and put back in its next phase unless its step ends. A file that
//! ends a step, answers a question or sends a branch on only reports it ([`super::next`]); `advance.rs` handles the
//! consequences.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use shared::JsonMap;
use shared::access::Principal;
use shared::author::Author;
use shared::error::{FlowCode, FlowError};
use shared::feedback::Feedback;
use shared::grant::Grant;
use shared::id::{NodeId, ReviewId, TaskId, Username};
use shared::log::{Event, EventData, OfRun};
use shared::review::Review;
use shared::run::{Activity, RunStatus, RunSummary, Step, StepStatus};
use shared::time::Timestamp;

use super::guardrail_reply::GuardrailReply;
use super::next::{Answered, Arrival, EndedStep, QuestionAnswer, StepEnd};
use super::phase::{Branch, Phase};
use super::projection;
use super::question::{Question, Subject};
use super::state::RunState;
use super::transition::{Granted, Refusal, Snapshot, Task, TaskKind, Transition};
use crate::clock::{Ids, Moment};
use crate::flow::{Compiled, EvalError};

pub(super) struct Builder<'f> {
    pub(super) flow: &'f Compiled,
    pub(super) now: Timestamp,
    pub(super) ids: Ids,
    pub(super) state: RunState,
    /// The known reviews: those that are pending, the one that the input names, and new ones.
    pub(super) reviews: BTreeMap<ReviewId, Review>,
    /// The users and their roles; `None` if the flow does not need them.
    pub(super) people: Option<Arc<[Principal]>>,
    /// Those of `people` on whom the transition depends; `None` if it depends on nobody.
    pub(super) consulted: Option<BTreeSet<Username>>,
    /// The newest feedback on agents that receive it.
    pub(super) feedback: Vec<Feedback>,
    /// Whether an agent received feedback in this transition.
    pub(super) feedback_told: bool,
    /// The feedback that was given in this transition.
    pub(super) feedback_given: Vec<Feedback>,
    /// Ended steps whose consequences are still pending.
    pub(super) ended: VecDeque<EndedStep>,
    /// Answers that have not been delivered yet.
    pub(super) answers: VecDeque<Answered>,
    /// Branches on their way to a node.
    pub(super) arrivals: VecDeque<Arrival>,
    /// The answers of programs to inquiries of guardrails.
    pub(super) replies: Vec<GuardrailReply>,
    /// The longest lifetime of new grants; `None` if what is asked for is not longer.
    pub(super) longest_grant: Option<Duration>,
    /// Whether the result that is recorded came too late to have an effect.
    pub(super) is_late: bool,
    /// The grants that may cover the run's calls, including those of this transition.
    pub(super) grants: Vec<Granted>,
    pub(super) given: Vec<Grant>,
    pub(super) used: Vec<Granted>,
    /// The run's status before the transition; `None` for a new run.
    before: Option<RunStatus>,
    events: Vec<Emitted>,
    changed: Vec<ReviewId>,
    steps: Vec<Step>,
    tasks: Vec<Task>,
    new_tasks: BTreeSet<TaskId>,
    ended_tasks: Vec<TaskId>,
    abandoned_tasks: Vec<TaskId>,
}

/// A log entry that waits for the end of its transition. Only then is the run added to it: all entries of one commit
/// show the same revision of the run, and folds ignore what is not newer than what they have.
struct Emitted {
    review_id: Option<ReviewId>,
    by: Option<Author>,
    /// Builds what the entry says, given the run after the transition.
    data: Box<dyn FnOnce(&RunSummary) -> EventData>,
}

impl<'f> Builder<'f> {
    /// Begins the first transition of a new run.
    pub(super) fn start(flow: &'f Compiled, state: RunState, moment: Moment) -> Self {
        Self {
            flow,
            now: moment.now,
            ids: moment.ids(),
            state,
            reviews: BTreeMap::new(),
            people: None,
            consulted: None,
            feedback: Vec::new(),
            feedback_told: false,
            feedback_given: Vec::new(),
            ended: VecDeque::new(),
            answers: VecDeque::new(),
            arrivals: VecDeque::new(),
            replies: Vec::new(),
            longest_grant: None,
            is_late: false,
            grants: Vec::new(),
            given: Vec::new(),
            used: Vec::new(),
            before: None,
            events: Vec::new(),
            changed: Vec::new(),
            steps: Vec::new(),
            tasks: Vec::new(),
            new_tasks: BTreeSet::new(),
            ended_tasks: Vec::new(),
            abandoned_tasks: Vec::new(),
        }
    }

    /// Begins a transition of a run that the store has read.
    pub(super) fn resume(flow: &'f Compiled, snapshot: Snapshot, moment: Moment) -> Self {
        let before = projection::status(&snapshot.state);
        let Snapshot { state, reviews, grants, people, feedback } = snapshot;
        Self { reviews, grants, people, feedback, before: Some(before), ..Self::start(flow, state, moment) }
    }

    /// Returns the finished transition. `refused` is set if the input was refused after other changes.
    pub(super) fn finish(mut self, refused: Option<Refusal>) -> Transition {
        self.derive_step_statuses();
        self.state.format = RunState::FORMAT;
        self.state.revision += 1;
        self.state.updated_at = self.now;
        let after = projection::status(&self.state);
        match (self.before, after) {
            (Some(RunStatus::WaitingForHuman), RunStatus::Running) => {
                self.emit_run(None, |run| EventData::RunResumed(OfRun { run }));
            }
            (before, RunStatus::WaitingForHuman) if before != Some(RunStatus::WaitingForHuman) || self.asks_anew() => {
                self.emit_run(None, |run| EventData::WorkflowWaiting(OfRun { run }));
            }
            _ => {}
        }
        self.into_transition(refused)
    }

    /// Returns a transition that only has entries, and leaves the run as it was, with its revision.
    pub(super) fn into_transition(self, refused: Option<Refusal>) -> Transition {
        let run = projection::summary(&self.state);
        let shown = self.state.shown_id();
        // A carrier has no entries of its own, only those of its review.
        let emitted = self.events.into_iter().filter(|entry| shown.is_some() || entry.review_id.is_some());
        let events = emitted.map(|entry| {
            let event = Event::new(self.now, entry.by, &(entry.data)(&run));
            Event { run_id: shown, review_id: entry.review_id, ..event }
        });
        let events = events.collect();
        let mut all = self.reviews;
        let reviews = self.changed.iter().filter_map(|id| all.remove(id)).collect();
        let consulted = self.consulted;
        Transition {
            state: self.state,
            reviews,
            steps: self.steps,
            tasks: self.tasks,
            ended_tasks: self.ended_tasks,
            abandoned_tasks: self.abandoned_tasks,
            events,
            given: self.given,
            used: self.used,
            people_used: self.people.zip(consulted).map(|(people, consulted)| {
                people.iter().filter(|person| consulted.contains(&person.username)).cloned().collect()
            }),
            feedback_used: if self.feedback_told { self.feedback } else { Vec::new() },
            feedback_given: self.feedback_given,
            refused,
        }
    }

    /// Whether this transition opens a review that the run waits for.
    fn asks_anew(&self) -> bool {
        let is_new = |question: &Question| self.reviews.get(&question.review).is_some_and(|review| review.version == 1);
        let mut waited_for = self.state.questions.iter().filter(|question| question.pending && question.blocks());
        waited_for.any(|question| self.changed.contains(&question.review) && is_new(question))
    }

    // --- events ---

    /// Emits an entry about the run as a whole, with its summary.
    pub(super) fn emit_run(&mut self, by: Option<Author>, data: impl FnOnce(Box<RunSummary>) -> EventData + 'static) {
        let data = Box::new(|run: &RunSummary| data(Box::new(run.clone())));
        self.events.push(Emitted { review_id: None, by, data });
    }

    /// Emits any other entry.
    pub(super) fn emit(&mut self, review_id: Option<ReviewId>, by: Option<Author>, data: EventData) {
        self.events.push(Emitted { review_id, by, data: Box::new(|_| data) });
    }

    // --- branches ---

    /// Takes a branch in a matching phase out of the state.
    pub(super) fn take_branch(&mut self, wanted: impl Fn(&Phase) -> bool) -> Option<(u32, Branch)> {
        let number = self.state.branches.iter().find(|(_, branch)| wanted(&branch.phase)).map(|(number, _)| *number)?;
        self.state.branches.remove(&number).map(|branch| (number, branch))
    }

    /// Puts a branch that works on a step into the state, at the node of the step.
    pub(super) fn settle(&mut self, number: u32, phase: Phase) {
        if let Some(node) = phase.step().map(|step| step.node.clone()) {
            self.state.branches.insert(number, Branch { node, phase });
        }
    }

    /// Returns the next number, for a new branch or for the order of arrivals.
    pub(super) fn next_number(&mut self) -> u32 {
        let number = self.state.next_branch;
        self.state.next_branch += 1;
        number
    }

    // --- steps ---

    /// Remembers a step as new or changed.
    pub(super) fn put_step(&mut self, step: &Step) {
        // Searches from the end: the step is nearly always the newest.
        match self.steps.iter_mut().rev().find(|known| known.id == step.id) {
            Some(known) => known.clone_from(step),
            None => self.steps.push(step.clone()),
        }
    }

    /// Returns the number of steps that this transition has made or changed so far.
    pub(super) fn steps_made(&self) -> usize {
        self.steps.len()
    }

    /// Derives the status of each open step (running, waiting or retrying) from what its branch does.
    fn derive_step_statuses(&mut self) {
        let mut changed = Vec::new();
        for (number, activity) in self.state.activities() {
            // If several branches work on a step, the one that waits for the others determines the status.
            if self.state.parent_of(number).is_some() {
                continue;
            }
            let status = match activity {
                Activity::Waiting => StepStatus::Waiting,
                Activity::Retrying => StepStatus::Retrying,
                Activity::Running | Activity::Joining => StepStatus::Running,
            };
            let branch = self.state.branches.get_mut(&number);
            if let Some(step) = branch.and_then(|branch| branch.phase.step_mut())
                && step.status != status
            {
                step.status = status;
                changed.push(step.clone());
            }
        }
        for step in changed {
            self.put_step(&step);
        }
    }

    /// Reports the end of a step, and how its branch continues.
    pub(super) fn end(&mut self, branch: u32, step: Step, end: StepEnd) {
        self.ended.push_back(EndedStep { branch, step, end });
    }

    /// Reports that a step is completed with these writes.
    pub(super) fn finish_step(&mut self, branch: u32, step: Step, writes: JsonMap) {
        self.end(branch, step, StepEnd::Finished { writes });
    }

    /// Reports that a step has failed, without attempts left.
    pub(super) fn fail_step(&mut self, branch: u32, step: Step, error: FlowError) {
        self.end(branch, step, StepEnd::Failed { error });
    }

    /// Like [`Self::fail_step`], with an error at the node of the step.
    pub(super) fn fail(&mut self, branch: u32, step: Step, code: FlowCode, why: impl Into<String>) {
        let error = failure(code, &step.node, why);
        self.fail_step(branch, step, error);
    }

    /// Reports the answer to the question about a subject.
    pub(super) fn answer(&mut self, subject: Subject, answer: QuestionAnswer) {
        self.answers.push_back(Answered { subject, answer });
    }

    // --- tasks ---

    pub(super) fn add_task(&mut self, step: &Step, kind: TaskKind, due_at: Timestamp, repeatable: bool) -> TaskId {
        let id = TaskId(self.ids.uuid());
        self.new_tasks.insert(id);
        self.tasks.push(self.task(id, step, kind, due_at, repeatable));
        id
    }

    /// Moves a task to another due time.
    pub(super) fn move_task(&mut self, id: TaskId, step: &Step, kind: TaskKind, due_at: Timestamp, repeatable: bool) {
        self.tasks.retain(|task| task.id != id);
        self.tasks.push(self.task(id, step, kind, due_at, repeatable));
    }

    /// Ends a task. If this transition created it, nothing of it is committed.
    pub(super) fn end_task(&mut self, id: TaskId) {
        self.tasks.retain(|task| task.id != id);
        self.abandoned_tasks.retain(|task| *task != id);
        if !self.new_tasks.remove(&id) && !self.ended_tasks.contains(&id) {
            self.ended_tasks.push(id);
        }
    }

    /// Abandons a task, and returns whether a worker may hold it already. A task that this transition created or moved
    /// is ended instead: no worker can hold it.
    pub(super) fn abandon_task(&mut self, id: TaskId) -> bool {
        let is_free = self.tasks.iter().any(|task| task.id == id);
        if is_free {
            self.end_task(id);
        } else {
            self.abandoned_tasks.push(id);
        }
        !is_free
    }

    /// Whether this transition ended a task.
    pub(super) fn is_ended(&self, id: TaskId) -> bool {
        self.ended_tasks.contains(&id)
    }

    fn task(&self, id: TaskId, step: &Step, kind: TaskKind, due_at: Timestamp, repeatable: bool) -> Task {
        Task { id, run: self.state.id, step: step.id, node: step.node.clone(), kind, due_at, repeatable }
    }

    // --- reviews ---

    /// Changes a review, raises its version and adds it to the commit. Returns the changed review; `None` if it is
    /// unknown.
    pub(super) fn change_review(&mut self, id: ReviewId, change: impl FnOnce(&mut Review)) -> Option<Review> {
        let review = self.reviews.get_mut(&id)?;
        review.drop_lapsed_claim(self.now);
        change(review);
        review.version += 1;
        if !self.changed.contains(&id) {
            self.changed.push(id);
        }
        Some(review.clone())
    }

    pub(super) fn add_review(&mut self, review: Review) {
        self.changed.push(review.id);
        self.reviews.insert(review.id, review);
    }

    // --- state ---

    /// Writes state keys to the frame of the step.
    pub(super) fn write(&mut self, step: &Step, writes: &JsonMap) {
        self.state.keys_of_mut(&step.node).extend(writes.clone());
    }
}

pub(super) fn failure(code: FlowCode, node: &NodeId, message: impl Into<String>) -> FlowError {
    FlowError { code, message: message.into(), node: Some(node.clone()) }
}

/// Makes the error for a template or condition of a node that cannot be evaluated.
pub(super) fn unevaluated(node: &NodeId, error: &EvalError) -> FlowError {
    failure(FlowCode::FlowCondition, node, error.to_string())
}
