//! Launches, and inputs of runs: each input is applied to the result of the previous one.

use std::sync::Arc;

use shared::JsonMap;
use shared::access::{Act, Involvement, Principal};
use shared::api::{Decided, DecisionEffect};
use shared::author::Author;
use shared::definition::Effect;
use shared::error::{FlowCode, Mistake};
use shared::feedback::NewFeedback;
use shared::id::{FlowId, ReviewId, RunId};
use shared::log::{Event, EventData, GuardrailFired};
use shared::review::{Review, Veto};
use shared::run::Context;
use shared::time::Timestamp;

use super::super::log_row::{Cause, Recorded};
use super::super::{CommitError, Committed};
use super::grants;
use super::group::{ChangeResult, Group, RunWork, UnreadableRun};
use super::rights::allow;
use crate::clock::Moment;
use crate::engine::{self, Input, Refusal, RunOutcome, RunStart, RunState, Snapshot, Transition, is_carrier};
use crate::flow::Compiled;

impl Group {
    #[expect(clippy::too_many_arguments, reason = "the parts of one operation")]
    pub fn launch(
        &mut self,
        by: Option<&Principal>,
        run: RunId,
        flow: &FlowId,
        version: Option<u32>,
        input: JsonMap,
        context: Context,
        moment: Moment,
    ) -> ChangeResult {
        let by = by.ok_or(CommitError::Unauthenticated)?;
        allow(Some(by), Act::Launch)?;
        let version = match version {
            Some(version) => version,
            None => self.newest.get(flow).map(|(version, _)| *version).ok_or(CommitError::NotFound)?,
        };
        let key = (flow.clone(), version);
        if is_carrier(flow, version) {
            return Err(CommitError::NotFound);
        }
        if !self.compiled.contains_key(&key) && !self.unreadable.contains_key(&key) {
            return Err(CommitError::NotFound);
        }
        let compiled = &Arc::clone(self.flow(flow, version)?);
        self.begin(by, run, compiled, input, context, moment)?;
        let state = &self.snapshot(run)?.state;
        Ok(Committed::Run { run: Box::new(engine::shown_run(Some(compiled), state)) })
    }

    /// Starts a run. Returns [`CommitError::Conflict`] if it exists.
    pub(super) fn begin(
        &mut self,
        by: &Principal,
        run: RunId,
        compiled: &Compiled,
        input: JsonMap,
        context: Context,
        moment: Moment,
    ) -> Result<(), CommitError> {
        if self.runs.get(&run).is_some_and(|work| work.snapshot.is_some()) {
            return Err(CommitError::Conflict(format!("there is already a run {run}")));
        }
        let (flow, version) = (&compiled.flow.id, compiled.version);
        let people = self.people(compiled, run, None);
        let launch = RunStart {
            run,
            flow: flow.clone(),
            version,
            input,
            context,
            keeps_metadata: true,
            requested_by: by.username.clone(),
            token: by.token_id,
            people,
            feedback: self.feedback_on(compiled),
        };
        let granted = if compiled.has_gates() { self.granted(flow, version, run, moment.now) } else { Vec::new() };
        let mut transition = engine::launch(compiled, launch.clone(), granted, moment)?;
        check_asks_somebody(&transition)?;
        let recorded = Recorded {
            moment,
            cause: Cause::Launch(Box::new(launch)),
            grants: std::mem::take(&mut transition.used),
            people: transition.people_used.take(),
            feedback: std::mem::take(&mut transition.feedback_used),
            forgotten: Vec::new(),
        };
        self.runs.entry(run).or_default().absorb(transition, recorded)
    }

    pub fn apply_to_run(&mut self, by: Option<&Principal>, run: RunId, input: Input, moment: Moment) -> ChangeResult {
        self.apply(by, run, input, moment)?;
        let state = &self.snapshot(run)?.state;
        let compiled = self.flow(&state.flow, state.version).ok().map(Arc::as_ref);
        Ok(Committed::Run { run: Box::new(engine::shown_run(compiled, state)) })
    }

    pub fn apply_to_review(
        &mut self,
        by: Option<&Principal>,
        review: ReviewId,
        input: Input,
        moment: Moment,
    ) -> ChangeResult {
        let run = *self.run_of.get(&review).ok_or(CommitError::NotFound)?;
        let viewer = input.by().map(|by| by.username.clone());
        let is_viewed = matches!(input, Input::Viewed { .. });
        self.apply(by, run, input, moment)?;
        if is_viewed {
            return Ok(Committed::Done);
        }
        let review = self.snapshot(run)?.reviews.get(&review).cloned().ok_or(CommitError::NotFound)?;
        let review = review.seen_by(viewer.as_ref());
        let outcome = if review.is_pending() { DecisionEffect::Recorded } else { DecisionEffect::Resolved };
        Ok(Committed::Decided { decided: Box::new(Decided { outcome, review }) })
    }

    /// Passes feedback on an agent to its run.
    pub fn give_feedback(
        &mut self,
        by: Option<&Principal>,
        run: RunId,
        involvement: Involvement,
        feedback: NewFeedback,
        moment: Moment,
    ) -> ChangeResult {
        let person = by.cloned().ok_or(CommitError::Unauthenticated)?;
        self.apply(by, run, Input::Feedback { by: person, involvement, feedback }, moment)?;
        let given = self.out.feedback.last().cloned().ok_or(CommitError::NotFound)?;
        Ok(Committed::Feedback { feedback: Box::new(given) })
    }

    fn apply(
        &mut self,
        by: Option<&Principal>,
        run: RunId,
        mut input: Input,
        moment: Moment,
    ) -> Result<(), CommitError> {
        self.give_rights(by, &mut input, moment.now)?;
        grants::limit(&mut input, self.longest_grant)?;
        let work = self.runs.get(&run).ok_or(CommitError::NotFound)?;
        let snapshot = work.snapshot.as_ref().ok_or(CommitError::NotFound)?;
        let state = &snapshot.state;
        if state.format > RunState::FORMAT {
            return Err(CommitError::NewerFormat(format!(
                "run {run} was continued by a newer server (format {}); this one can no longer change it",
                state.format
            )));
        }
        if let Some(UnreadableRun { why, tasks }) = &work.unreadable {
            let Input::Cancel { by, reason } = &input else { return Err(CommitError::Unreadable(why.clone())) };
            let transition = engine::give_up(snapshot.clone(), why, tasks, by, reason.as_deref(), moment)?;
            let work = self.runs.get_mut(&run).ok_or(CommitError::NotFound)?;
            work.unreadable = None;
            let answer = work.absorb(transition, Recorded::of(moment, input));
            self.keep_grants(run, Vec::new(), true);
            return answer;
        }
        if let Some((task, attempt)) = input.task() {
            let now = work.tasks.get(&task);
            if now.is_none() || attempt.is_some_and(|attempt| now != Some(&attempt)) {
                return Err(Refusal::TaskOver.into());
            }
        }
        let compiled = match self.flow(&state.flow, state.version) {
            Ok(compiled) if !matches!(input, Input::Fail { .. }) => &Arc::clone(compiled),
            Err(error) if !matches!(input, Input::Fail { .. } | Input::Cancel { .. }) => return Err(error),
            _ => return self.end_run(run, input, moment),
        };
        let people = self.people(compiled, run, Some(&input));
        let mut snapshot = snapshot.clone();
        if compiled.has_gates() {
            snapshot.grants = self.granted(&state.flow, state.version, run, moment.now);
        }
        snapshot.people = people;
        snapshot.feedback = self.feedback_on(compiled);
        let applied = engine::apply(compiled, snapshot, input.clone(), moment);
        let mut transition = applied.inspect_err(|refusal| self.log_blocked(run, compiled, &input, refusal, moment))?;
        let repeats = matches!(input, Input::Claim { .. } | Input::Release { .. });
        if repeats && transition.reviews.is_empty() && transition.refused.is_none() {
            // A repeated claim or release changes nothing, and the log, which keeps everything, does not need it.
            return Ok(());
        }
        let given = std::mem::take(&mut transition.given);
        let grants = std::mem::take(&mut transition.used);
        let people = transition.people_used.take();
        let feedback = std::mem::take(&mut transition.feedback_used);
        let said = std::mem::take(&mut transition.feedback_given);
        let over = transition.state.outcome.is_some();
        let work = self.runs.get_mut(&run).ok_or(CommitError::NotFound)?;
        let recorded = Recorded { grants, people, feedback, ..Recorded::of(moment, input) };
        let answer = work.absorb(transition, recorded);
        self.out.feedback.extend(said);
        self.keep_grants(run, given, over);
        answer
    }

    /// Logs what guardrails blocked in a decision that is refused for it. The run is as before, so these entries
    /// have rows of their own. They do not have the blocked content, nor say who decides by a secret vote.
    fn log_blocked(&mut self, run: RunId, compiled: &Compiled, input: &Input, refusal: &Refusal, moment: Moment) {
        let is_block = |mistake: &Mistake| mistake.code == FlowCode::GuardrailBlocked.as_str();
        let (Input::Decide { review, by, request, replies, .. }, Refusal::Invalid(mistakes)) = (input, refusal) else {
            return;
        };
        let Some(snapshot) = self.snapshot(run).ok().filter(|_| mistakes.iter().any(is_block)) else { return };
        let shown = snapshot.state.shown_id();
        let is_secret = snapshot.reviews.get(review).is_some_and(Review::is_secret);
        let by_whom = Some(Author::from(by)).filter(|_| !is_secret);
        let checked = engine::check(compiled, snapshot.clone(), *review, by, request, replies, moment);
        for Veto { guardrail, action, key, reason } in checked.map(|checked| checked.vetoes).unwrap_or_default() {
            let (effect, about) = (Effect::Block, Some(*review));
            let fired = GuardrailFired { guardrail, effect, reason, review: about, action, key };
            let event = Event::new(moment.now, by_whom.clone(), &EventData::GuardrailFired(fired));
            self.out.events.push((Some(run), Event { run_id: shown, review_id: about, ..event }));
        }
    }

    /// Puts the rights that people have in this transaction into an input.
    fn give_rights(&self, by: Option<&Principal>, input: &mut Input, now: Timestamp) -> Result<(), CommitError> {
        let fresh = match (input.by(), by) {
            (Some(claimed), Some(by)) if claimed.username != by.username => {
                return Err(CommitError::Forbidden("you cannot act on another user's behalf".to_owned()));
            }
            (Some(_), Some(by)) => Some(by.clone()),
            (Some(claimed), None) => Some(self.principal_of(claimed, now)?),
            (None, _) => None,
        };
        if let (Some(principal), Some(fresh)) = (input.by_mut(), fresh) {
            *principal = fresh;
        }
        if let Input::Delegate { to, person, .. } = input {
            *person = self.active(to).ok().map(|record| record.principal(None));
        }
        Ok(())
    }

    /// Ends a run without its flow.
    fn end_run(&mut self, run: RunId, input: Input, moment: Moment) -> Result<(), CommitError> {
        let snapshot = self.snapshot(run)?.clone();
        let transition = engine::end(snapshot, input.clone(), moment)?;
        let recorded = Recorded::of(moment, input);
        let answer = self.runs.get_mut(&run).ok_or(CommitError::NotFound)?.absorb(transition, recorded);
        self.keep_grants(run, Vec::new(), true);
        answer
    }

    fn snapshot(&self, run: RunId) -> Result<&Snapshot, CommitError> {
        self.runs.get(&run).and_then(|work| work.snapshot.as_ref()).ok_or(CommitError::NotFound)
    }
}

impl RunWork {
    /// Whether a pending review was delegated. Its delegators must still have the right to decide it.
    pub fn has_delegations(&self) -> bool {
        let mut reviews = self.snapshot.iter().flat_map(|snapshot| snapshot.reviews.values());
        reviews.any(|review| review.is_pending() && !review.delegations.is_empty())
    }

    /// Adds a transition. If it returns the transition's refusal, the transition is written nevertheless.
    fn absorb(&mut self, transition: Transition, recorded: Recorded) -> Result<(), CommitError> {
        let before = self.snapshot.as_ref().map(|snapshot| snapshot.state.revision);
        let is_changed = before != Some(transition.state.revision);
        let changed = self.changed.get_or_insert_default();
        changed.reviews.extend(transition.reviews.iter().map(|review| review.id));
        match &mut self.snapshot {
            Some(snapshot) => snapshot.fold(transition.state, transition.reviews),
            None => self.snapshot = Some(Snapshot::new(transition.state, transition.reviews)),
        }
        transition.steps.into_iter().for_each(|step| changed.step(step));
        for task in transition.tasks {
            // As the row will have it: an existing task gets a new time, and with it the next attempt.
            self.tasks.entry(task.id).and_modify(|attempt| *attempt += 1).or_insert(0);
            changed.tasks.insert(task.id, task);
        }
        for task in transition.ended_tasks {
            self.tasks.remove(&task);
            changed.tasks.remove(&task);
            changed.ended_tasks.insert(task);
        }
        for task in transition.abandoned_tasks {
            // No worker has a task that this group has made or moved.
            if changed.tasks.remove(&task).is_some() {
                self.tasks.remove(&task);
                changed.ended_tasks.insert(task);
            } else {
                changed.abandoned_tasks.insert(task);
            }
        }
        changed.events.extend(transition.events);
        if is_changed {
            changed.inputs.push(recorded);
        }
        transition.refused.map_or(Ok(()), |refusal| Err(refusal.into()))
    }
}

/// Refuses to start a run for a question that would ask nobody.
fn check_asks_somebody(started: &Transition) -> Result<(), CommitError> {
    let state = &started.state;
    if state.shown_id().is_some() || !started.reviews.is_empty() {
        return Ok(());
    }
    let why = match &state.outcome {
        Some(RunOutcome::Failed { error, .. }) => error.message.clone(),
        _ => "this asks no one".to_owned(),
    };
    Err(Refusal::Invalid(vec![Mistake::new("", "invalid", why)]).into())
}
