//! Nested flows: a flow node calls another flow, which runs in the same run. Its branches are branches of the run, its
//! nodes are identified by the calls that lead to them ([`NodeId::frame`]), and it has its own keys, visits and
//! decisions, in a frame that ends with it. The calling branch waits, and continues with its output.
//!
//! A flow that fails, or that a person stops, makes the calling step fail, whose failure policy applies.

use std::collections::BTreeSet;

use serde_json::Value;
use shared::JsonMap;
use shared::definition::FlowCall;
use shared::error::{FlowCode, FlowError};
use shared::id::NodeId;
use shared::run::Step;

use crate::engine::builder::{Builder, failure};
use crate::engine::invoke::listed;
use crate::engine::launch::{checked_input, properties, state_keys};
use crate::engine::next::Arrival;
use crate::engine::phase::{Branch, Phase};
use crate::engine::projection;
use crate::engine::scope;
use crate::engine::state::Frame;

impl Builder<'_> {
    /// Enters a flow node: starts the called flow in a new frame. `Err` if the step fails.
    pub(in crate::engine) fn enter_flow(
        &mut self,
        branch: u32,
        mut step: Step,
        call: &FlowCall,
        correction: Option<String>,
    ) -> Result<(), FlowError> {
        let flow = self.flow;
        let Some((called, start)) = flow.called(&step.node).and_then(|called| Some((called, called.flow.start()?)))
        else {
            return Err(failure(FlowCode::FlowInvalid, &step.node, format!("the flow `{}` does not exist", call.id)));
        };
        let input = self.call_input(&step, call, correction.as_deref())?;
        step.note = Some(format!("{}, version {}", called.flow.title(), called.version));
        let frame = step.node.call(step.visit);
        let keys = state_keys(called, &input);
        self.state.frames.insert(frame.clone(), Frame { input, keys, correction });
        self.settle(branch, Phase::Flow { step });
        let first = self.next_number();
        self.arrivals.push_back(Arrival::at(first, NodeId::within(&frame, start)));
        Ok(())
    }

    /// Returns the checked input of a call: its rendered templates, or the readable keys that the called flow's `input`
    /// names.
    fn call_input(&self, step: &Step, call: &FlowCall, correction: Option<&str>) -> Result<JsonMap, FlowError> {
        let called = self.flow.called(&step.node);
        let rendered = if call.input.is_empty() {
            scope::readable_of(self.flow, &self.state, step, called.and_then(properties))
        } else {
            match self.render_object(step, &call.input, correction)? {
                Value::Object(input) => input,
                _ => JsonMap::new(),
            }
        };
        let Some(called) = called else { return Ok(rendered) };
        checked_input(called, rendered).map_err(|mistakes| {
            let message = format!("the input of the flow `{}` is not valid: {}", call.id, listed(&mistakes));
            failure(FlowCode::FlowInvalid, &step.node, message)
        })
    }

    /// Returns from a called flow that has no branch left. Returns whether there was one.
    pub(in crate::engine) fn return_from_call(&mut self) -> bool {
        if self.state.frames.is_empty() {
            return false;
        }
        // If there are branches deeper inside, the branch that called their flow is in this frame.
        let occupied: BTreeSet<&str> = self.state.branches.values().map(|branch| branch.node.frame()).collect();
        let done = self.state.frames.keys().find(|frame| !occupied.contains(frame.as_str()));
        let Some(frame) = done.cloned() else { return false };
        if self.hold_output(&frame) {
            return true;
        }
        let keys = self.state.frames.get(&frame).map(|frame| frame.keys.clone()).unwrap_or_default();
        let output = projection::output(self.flow.of(&NodeId::end_of(&frame)), &keys);
        self.give_to_caller(&frame, output);
        true
    }

    /// Ends an execution of a flow, and completes the calling step with its output.
    pub(in crate::engine) fn give_to_caller(&mut self, frame: &str, output: JsonMap) {
        let caller = self.take_branch(|phase| phase.calls_frame(frame));
        self.state.end_frame(frame);
        if let Some((branch, Branch { phase: Phase::Flow { step }, .. })) = caller {
            let writes = self.returned_keys(&step.node, output);
            self.finish_step(branch, step, writes);
        }
    }

    /// Returns the writes of an output: those of its keys that `write_keys` names, or else the whole output under the
    /// node's result key.
    fn returned_keys(&self, id: &NodeId, output: JsonMap) -> JsonMap {
        let Some(node) = self.flow.node(id) else { return JsonMap::new() };
        let named = |key: &String| node.write_keys.is_some() && scope::may_write(self.flow, id, node, key);
        if output.keys().any(named) {
            return output.into_iter().filter(|(key, _)| named(key)).collect();
        }
        let key = scope::result_key(self.flow, id, node);
        key.map(|key| (key, Value::Object(output))).into_iter().collect()
    }
}
