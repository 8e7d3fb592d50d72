//! What must be true of a run after every transition.

use shared::request::Request;

use super::*;

impl Play {
    /// Checks what a transition may change of the run as it is now.
    pub(super) fn check_transition(&self, transition: &Transition, is_viewed: bool) {
        if is_viewed {
            assert_eq!((&transition.state, &*transition.reviews), (&self.snapshot.state, &[][..]), "a view changed it");
        } else {
            assert_eq!(transition.state.revision, self.snapshot.state.revision + 1);
        }
        if self.snapshot.state.outcome.is_some() {
            let RunState { revision, updated_at, ref unanswered, .. } = transition.state;
            let before = self.snapshot.state.clone();
            let RunState { ref questions, .. } = transition.state;
            let (unanswered, questions) = (unanswered.clone(), questions.clone());
            let only = RunState { revision, updated_at, questions, unanswered, ..before };
            assert_eq!(transition.state, only, "a run that is over changed");
        }
    }

    /// Checks that what a call sends follows from its arguments alone, once it is made, and is what its gate shows.
    pub(super) fn check_requests(&mut self) {
        let state = &self.snapshot.state;
        for (number, branch) in &state.branches {
            let Some(step) = branch.phase.step() else { continue };
            for call in branch.phase.calls().iter().filter(|call| !matches!(call.state, ToolCallState::Done { .. })) {
                let request = call.request.clone().expect("a call has its request");
                assert_eq!(call.digest, digest::of_call(&call.tool, &call.arguments, Some(&request)));
                assert!(
                    call.reads.is_empty() || call.state == ToolCallState::Gated,
                    "what is no longer needed is gone"
                );
                let now = (call.arguments.clone(), request);
                let known = self.requests.entry((step.id, call.id.clone())).or_insert_with(|| now.clone());
                assert!(*known == now || known.0 != now.0, "{known:?} became {now:?}");
                known.clone_from(&now);
                for question in state.questions_of(*number).filter(|question| question.pending) {
                    let shown =
                        self.snapshot.reviews[&question.review].actions.iter().find(|action| action.id == call.id);
                    let shown = shown.map(|action| (action.arguments.clone(), action.request.clone()));
                    // A change of a team sends nothing.
                    let sent = |request: &Option<Request>| request.as_ref().is_none_or(|request| *request == now.1);
                    assert!(shown.is_none_or(|shown| shown.0 == now.0 && sent(&shown.1)));
                }
            }
        }
    }

    /// Checks that what a guardrail blocks does not happen, and that the output of a run is what its guardrails let
    /// pass.
    pub(super) fn check_guardrails(&self) {
        for event in self.events.iter().filter(|event| event.kind == EntryKind::GuardrailFired) {
            let review = event.review_id.map(|id| &self.snapshot.reviews[&id]);
            let (Some(review), Some(action)) = (review, event.data.get("action").and_then(Value::as_str)) else {
                continue;
            };
            let vetoed = review.resolution.iter().flat_map(|resolution| &resolution.vetoes);
            let vetoed = vetoed.filter(|veto| veto.action.as_deref() == Some(action)).count();
            assert!(vetoed > 0 || event.data["effect"] != "block", "a veto is on its review");
            let branches = self.snapshot.state.branches.values().map(|branch| &branch.phase);
            let its = |phase: &&Phase| {
                phase
                    .step()
                    .is_some_and(|step| Some(&step.node) == review.node.as_ref() && Some(step.visit) == review.visit)
            };
            let open = branches.filter(its).flat_map(Phase::calls).find(|call| call.id == action);
            if vetoed > 0 {
                assert!(open.is_none_or(|call| matches!(call.state, ToolCallState::Done { .. })), "{open:?}");
            }
        }
        let unguarded = self.flow.return_gate().is_some_and(|gate| gate.guardrails == Some(false));
        if let Some(output) = shown_run(Some(&self.flow), &self.snapshot.state).output.filter(|_| !unguarded) {
            let action = flow::guardrail::action("output", "x", None);
            let subject = shared::definition::GuardrailScope::Outputs;
            let matter = flow::guardrail::Matter { id: String::new(), subject, action, values: output, request: None };
            // Programs were asked about it before any redaction.
            let answered = |_: &Inquiry| Some(GuardrailAnswer::Allows);
            let found = self.flow.check_matter(&matter, || scope::of_run(&self.snapshot.state), &answered);
            assert!(found.vetoes().next().is_none() && found.redacted.is_none(), "{found:?}");
        }
    }

    pub(super) fn check(&self) {
        let state = &self.snapshot.state;
        // Stored and read again, it is the same.
        let stored = serde_json::to_string(state).unwrap();
        assert_eq!(&serde_json::from_str::<RunState>(&stored).unwrap(), state);

        let asked: BTreeSet<_> = state.questions.iter().map(|question| question.review).collect();
        assert_eq!(asked.len(), state.questions.len(), "a review belongs to two questions");
        let open = state.questions.iter().filter(|question| question.pending);
        let open: BTreeSet<_> = open.map(|question| question.review).collect();
        let pending: BTreeSet<_> =
            self.snapshot.reviews.values().filter(|review| review.is_pending()).map(|review| review.id).collect();
        assert_eq!(pending, open, "pending reviews are those of questions that people are asked");
        for review in self.snapshot.reviews.values() {
            assert_eq!(review.is_pending(), review.resolution.is_none());
            assert_eq!(review.is_pending(), !self.resolved.contains(&review.id));
            assert_eq!(review.digest, digest::of_review(review));
        }

        let mut expected: BTreeSet<TaskId> =
            state.questions.iter().filter_map(|question| question.timer.map(|timer| timer.task)).collect();
        for question in &state.questions {
            let Some(branch) = question.subject.branch() else {
                let review = &self.snapshot.reviews[&question.review];
                assert!(
                    question.pending && review.kind == shared::review::ReviewKind::Handoff && question.timer.is_none()
                );
                continue;
            };
            let phase = &state.branches[&branch].phase;
            match &question.subject {
                Subject::Node { .. } => assert!(matches!(phase, Phase::Human { .. }), "{question:?}: {phase:?}"),
                Subject::Calls { calls, .. } => {
                    let waits = |call: &ToolCall| calls.contains(&call.id) && call.state == ToolCallState::Gated;
                    assert_eq!(phase.calls().iter().filter(|call| waits(call)).count(), calls.len(), "{question:?}");
                }
                Subject::Ask { call, .. } => {
                    let asks = |own: &&ToolCall| own.id == *call && own.state == ToolCallState::Asks;
                    assert_eq!(phase.calls().iter().filter(asks).count(), 1, "{question:?}: {phase:?}");
                    assert!(question.pending, "only people are asked");
                }
                Subject::Takeover { .. } => {
                    assert!(
                        matches!(phase, Phase::Agent { .. }) && phase.tasks().is_empty() && phase.calls().is_empty()
                    );
                }
                Subject::Specialist { call, .. } => {
                    let vets = |own: &&ToolCall| own.id == *call && own.state == ToolCallState::Vetting;
                    assert_eq!(phase.calls().iter().filter(vets).count(), 1, "{question:?}: {phase:?}");
                }
                Subject::Handoff { .. } => unreachable!("it has no branch"),
                Subject::Agent { .. } => {
                    let conversation = phase.conversation().expect("an agent's step waits");
                    assert!(
                        conversation.model_task.is_none() && conversation.calls.is_empty() && conversation.turn == 1
                    );
                }
                Subject::Output { .. } => {
                    assert!(matches!(phase, Phase::Returning { .. }), "{question:?}: {phase:?}");
                    assert!(state.branches[&branch].node.is_end());
                    assert!(
                        shown_run(Some(&self.flow), state).output.is_none(),
                        "nothing is given before there is leave"
                    );
                }
                Subject::Lost { call, .. } => {
                    let waits = |own: &&ToolCall| own.id == *call && own.state == ToolCallState::Lost;
                    assert_eq!(phase.calls().iter().filter(waits).count(), 1, "{question:?}: {phase:?}");
                }
            }
        }
        let of_calls: Vec<_> = state
            .questions
            .iter()
            .flat_map(|question| question.subject.calls().iter().map(|call| (question.subject.branch(), call)))
            .collect();
        assert_eq!(of_calls.iter().collect::<BTreeSet<_>>().len(), of_calls.len(), "a call is asked about twice");
        let mut alive: BTreeSet<StepId> = BTreeSet::new();
        for (number, branch) in &state.branches {
            let tasks = tasks_of(state, *number);
            expected.extend(&tasks);
            alive.extend(branch.phase.step().map(|step| step.id));
            let asked = state.questions_of(*number).count();
            let waits = !tasks.is_empty() || asked > 0;
            let gated = branch.phase.calls().iter();
            let gated = gated.filter(|call| {
                matches!(
                    call.state,
                    ToolCallState::Gated | ToolCallState::Asks | ToolCallState::Vetting | ToolCallState::Lost
                )
            });
            let of_this: usize = state.questions_of(*number).map(|question| question.subject.calls().len()).sum();
            assert_eq!(gated.count(), of_this, "each call that is held back is asked about");
            let is_new =
                |conversation: &Conversation| conversation.model_task.is_none() && conversation.calls.is_empty();
            let asks = match &branch.phase {
                Phase::Human { .. } | Phase::Returning { .. } => true,
                phase => phase.conversation().is_some_and(is_new),
            };
            assert_eq!(asks, asked == 1 && of_this == 0, "what waits for leave, or for an answer, asks once");
            let helped = state.children_of(*number).count();
            if let Some(parent) = branch.phase.works_for() {
                assert!(parent < *number && state.branches.contains_key(&parent), "nobody hears it: {branch:?}");
            }
            let others = match &branch.phase {
                Phase::Joining { .. } => true,
                Phase::Team { team, .. } => {
                    assert_eq!(team.under_way as usize, helped, "{team:?}");
                    helped > 0
                }
                phase if phase.delegates() => {
                    let delegated = phase.calls().iter().filter(|call| call.state == ToolCallState::Delegated);
                    assert_eq!(delegated.count(), helped);
                    helped > 0
                }
                Phase::Map { items, results, .. } => results.len() < items.len(),
                Phase::Flow { step } => {
                    let frame = step.node.call(step.visit);
                    let inside = state.branches.values().any(|branch| branch.node.frame() == frame);
                    inside && state.frames.contains_key(&frame)
                }
                _ => false,
            };
            assert!(waits || others, "a branch waits for nothing: {branch:?}");
            if let Phase::Map { first, items, results, .. } = &branch.phase {
                let map = self.flow.node(&branch.node).map(|node| &node.kind);
                let Some(shared::definition::NodeKind::Map(map)) = map else { panic!("{map:?}") };
                let visits = *first..*first + u32::try_from(items.len()).unwrap();
                let mapped = branch.node.beside(&map.node);
                let part = |step: &Step| step.node == mapped && visits.contains(&step.visit);
                let items_under_way = state.branches.values().filter(|other| other.phase.works_for().is_none());
                let alive = items_under_way.filter(|other| other.phase.step().is_some_and(part)).count();
                assert_eq!(alive + results.len(), items.len(), "every item is under way or done");
            }
        }
        let calling = state.branches.values().filter(|branch| matches!(branch.phase, Phase::Flow { .. })).count();
        assert_eq!(state.frames.len(), calling, "each call has its frame");
        let frames: BTreeSet<&str> = state.frames.keys().map(String::as_str).chain([""]).collect();
        assert!(state.branches.values().all(|branch| frames.contains(branch.node.frame())), "a branch is nowhere");
        for node in state.visits.keys().chain(state.decisions.keys()).chain(state.answers.keys()) {
            assert!(frames.contains(node.frame()), "{node} is left of a call that is over");
        }
        assert_eq!(self.tasks.keys().copied().collect::<BTreeSet<_>>(), expected, "tasks are those of branches");
        for step in &self.steps {
            let ended = matches!(step.status, StepStatus::Completed | StepStatus::Failed | StepStatus::Cancelled);
            assert_eq!(ended, !alive.contains(&step.id), "{step:?}");
            assert_eq!(ended, step.duration_ms.is_some());
        }
        assert!(state.unanswered.keys().eq(self.abandoned.keys()), "the calls that nobody has heard of");
        let over = state.outcome.is_some();
        assert_eq!(over, state.branches.is_empty());
        assert_eq!(over, summary(state).status.is_over());
        let all_join = state.branches.values().all(|branch| matches!(branch.phase, Phase::Joining { .. }));
        assert!(over || !all_join, "all branches wait for each other");
        for event in &self.events {
            if let Some(run) = event.data.get("run") {
                assert_eq!(run, &json!(summary(state)));
            }
        }
        if !over {
            let working = state.branches.keys().any(|number| !tasks_of(state, *number).is_empty());
            let waiting = summary(state).status == RunStatus::WaitingForHuman;
            assert_eq!(waiting, !working);
        }
    }
}

/// Returns the tasks that are due, running or retrying for a branch: its own calls, and those to handlers of its
/// questions.
fn tasks_of(state: &RunState, branch: u32) -> Vec<TaskId> {
    let own = state.branches[&branch].phase.tasks();
    let asked = state.questions_of(branch).filter_map(Question::task);
    own.into_iter().chain(asked).map(|(task, _)| task).collect()
}
