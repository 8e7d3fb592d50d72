//! The beginning and the end of visits of nodes, with their log entries.

use shared::JsonMap;
use shared::error::FlowError;
use shared::id::{NodeId, StepId};
use shared::log::{EventData, OfStep, StepCompleted};
use shared::run::{Step, StepStatus};

use super::builder::Builder;
use super::item;

impl Builder<'_> {
    pub(super) fn start_step(&mut self, node: &NodeId, kind: &str) -> Step {
        let visits = self.state.visits.entry(node.clone()).or_default();
        *visits += 1;
        let visit = *visits;
        let step = Step {
            id: StepId(self.ids.uuid()),
            node: node.clone(),
            visit,
            part: item::part_around(self.flow, &self.state, node, visit),
            kind: kind.to_owned(),
            status: StepStatus::Running,
            started_at: self.now,
            duration_ms: None,
            tries: 1,
            error: None,
            note: None,
        };
        self.emit(None, None, EventData::StepStarted(OfStep { step: step.clone() }));
        self.put_step(&step);
        step
    }

    /// Completes a visit that has written `writes`.
    pub(super) fn complete_step(&mut self, step: &mut Step, writes: &JsonMap) {
        self.end_step(step, StepStatus::Completed);
        let data = StepCompleted { step: step.clone(), writes: writes.clone() };
        self.emit(None, None, EventData::StepCompleted(data));
    }

    /// Records that a visit has failed; [`Self::fail_step`] reports it with its consequences.
    pub(super) fn record_failure(&mut self, step: &mut Step, error: FlowError) {
        step.error = Some(error);
        self.end_step(step, StepStatus::Failed);
        self.emit(None, None, EventData::StepFailed(OfStep { step: step.clone() }));
    }

    /// Sets the final status and the duration of a visit.
    pub(super) fn end_step(&mut self, step: &mut Step, status: StepStatus) {
        step.status = status;
        let duration = self.now.since(step.started_at).as_millis();
        step.duration_ms = Some(u64::try_from(duration).unwrap_or(u64::MAX));
        self.put_step(step);
    }
}
