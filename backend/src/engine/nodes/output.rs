//! The output of a flow: held back by its gate `before_return`, and returned once it is approved.

use shared::JsonMap;
use shared::error::FlowCode;
use shared::id::NodeId;
use shared::run::Step;

use crate::engine::ask::action::Proposed;
use crate::engine::builder::{Builder, failure};
use crate::engine::invoke::listed;
use crate::engine::next::StepEnd;
use crate::engine::phase::Phase;
use crate::engine::projection;
use crate::engine::question::Subject;
use crate::engine::ruling::Ruling;
use crate::engine::scope::Visit;

impl Builder<'_> {
    /// Handles the end of a flow: fails it if its output is not valid; holds the output back if its gate closes, or if
    /// guardrails ask programs about the output of the run. Returns whether one of these is so.
    pub(in crate::engine) fn hold_output(&mut self, frame: &str) -> bool {
        let node = NodeId::end_of(frame);
        let flow = self.flow.of(&node);
        let output = projection::output(flow, self.state.keys_of(&node));
        let mistakes = flow.check_output(&output, "");
        if !mistakes.is_empty() {
            let why = format!("the output does not match `output_schema`: {}", listed(&mistakes));
            let error = failure(FlowCode::FlowInvalid, &node, why);
            let (branch, step) = (self.next_number(), self.start_step(&node, "return"));
            self.end(branch, step, StepEnd::Stopped { error });
            return true;
        }
        let proposed = Proposed::of_output(flow, output);
        let closes = |gate| self.closes(gate, &node, Visit { number: 1, ..proposed.seen() });
        if !flow.return_gate().is_some_and(closes) {
            return frame.is_empty() && self.asks_about_output();
        }
        let step = self.start_step(&node, "return");
        let branch = self.next_number();
        self.settle(branch, Phase::Returning { step });
        self.ask(Subject::Output { branch });
        true
    }

    /// Lets guardrails ask programs about an output of the run that needs no approval. Returns whether they do.
    fn asks_about_output(&mut self) -> bool {
        let inquiries = self.inquiries_about_output();
        if inquiries.is_empty() {
            return false;
        }
        let node = NodeId::end_of("");
        let (branch, step) = (self.next_number(), self.start_step(&node, "return"));
        self.settle(branch, Phase::Returning { step });
        self.ask_about_end(branch, inquiries);
        true
    }

    /// Applies the ruling on an output. If it is rejected or blocked, the flow fails, whatever its failure policy says:
    /// nothing is left to be done.
    pub(in crate::engine) fn output_decided(&mut self, branch: u32, step: Step, ruling: Ruling<JsonMap>) {
        let end = match ruling {
            Ruling::Proceeds(output) => StepEnd::Returned { output },
            Ruling::Refused(code, why) => StepEnd::Stopped { error: failure(code, &step.node, why) },
            Ruling::Answered(_) => {
                // Reviews of outputs do not offer this.
                StepEnd::Stopped { error: failure(FlowCode::FlowInvalid, &step.node, "an output cannot be answered") }
            }
        };
        self.end(branch, step, end);
    }
}
