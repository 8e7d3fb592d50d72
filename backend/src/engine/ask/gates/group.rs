//! Groups the calls of a turn that are asked about together.

use shared::definition::{Builtin, Gate, ToolKind};

use crate::engine::builder::Builder;
use crate::engine::question::Subject;

impl<'f> Builder<'f> {
    /// Asks about gated calls of a branch's turn: one question for each set of handlers and reviewers that the gates
    /// name, so that nobody decides what another gate reserves for others. Calls that a grant covers are not asked
    /// about.
    pub(in crate::engine) fn ask_about(&mut self, branch: u32, gated: &[(String, &'f Gate)]) {
        let mut groups: Vec<(&'f Gate, Vec<String>)> = Vec::new();
        for (call, gate) in gated {
            let lone = Subject::Calls { branch, calls: vec![call.clone()] };
            if self.is_granted(&lone, gate) {
                continue;
            }
            let (changes_team, step) = (self.changes_team(&lone), self.state.step_of(&lone));
            let group = groups.iter_mut().find(|(first, calls)| {
                let others = Subject::Calls { branch, calls: calls.clone() };
                // A change of a team is asked about by itself.
                !changes_team
                    && !self.changes_team(&others)
                    && step.is_some_and(|step| self.ask_the_same(step, first, gate))
            });
            match group {
                Some((_, calls)) => calls.push(call.clone()),
                None => groups.push((gate, vec![call.clone()])),
            }
        }
        for (_, calls) in groups {
            self.ask(Subject::Calls { branch, calls });
        }
    }

    /// Whether a call makes a specialist or changes a strategy.
    fn changes_team(&self, subject: &Subject) -> bool {
        let flow = self.state.step_of(subject).map(|step| self.flow.of(&step.node));
        let tools = self.state.calls_of(subject).1.filter_map(|call| flow?.tool(&call.tool));
        let changes =
            |kind: &ToolKind| matches!(kind, ToolKind::Builtin(Builtin::SpawnSpecialist | Builtin::SetStrategy));
        tools.into_iter().any(|tool| changes(&tool.kind))
    }
}
