//! The output of a flow: held back where its gate `before_return` closes, and given once somebody has given leave.

use shared::JsonMap;
use shared::error::FlowCode;
use shared::id::NodeId;
use shared::run::Step;

use crate::engine::ask::action::Proposed;
use crate::engine::builder::{Builder, failure};
use crate::engine::next::StepEnd;
use crate::engine::phase::Phase;
use crate::engine::question::Subject;
use crate::engine::ruling::Ruling;
use crate::engine::scope::Visit;
use crate::engine::view;

impl Builder<'_> {
    /// A flow has come to its end: its output is asked about where its gate closes. Says whether it does.
    pub(in crate::engine) fn hold_output(&mut self, frame: &str) -> bool {
        let node = NodeId::end_of(frame);
        let flow = self.flow.of(&node);
        let Some(gate) = flow.return_gate() else { return false };
        let proposed = Proposed::of_output(&flow.flow.id, view::output(flow, self.state.keys_of(&node)));
        if !self.closes(gate, &node, Visit { number: 1, ..proposed.seen() }) {
            return false;
        }
        let step = self.start_step(&node, "return");
        let branch = self.next_number();
        self.settle(branch, &node, Phase::Returning { step });
        self.ask(Subject::Output { branch });
        true
    }

    /// The question about the output is answered. What is rejected or blocked fails the flow, whatever its failure policy
    /// says: nothing is left to be done.
    pub(in crate::engine) fn output_decided(&mut self, branch: u32, step: Step, ruling: Ruling<JsonMap>) {
        let end = match ruling {
            Ruling::Proceeds(output) => StepEnd::Returned { output },
            Ruling::Refused(code, why) => {
                StepEnd::Stopped { error: failure(code, &step.node, format!("the output may not be given: {why}")) }
            }
            Ruling::Answered(_) => {
                // It is not offered.
                StepEnd::Stopped { error: failure(FlowCode::FlowInvalid, &step.node, "an output cannot be answered") }
            }
        };
        self.end(branch, step, end);
    }
}
