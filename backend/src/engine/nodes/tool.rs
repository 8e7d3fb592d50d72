//! Tool nodes: one call, with arguments that are rendered once, shown, and executed unchanged.

use std::collections::BTreeSet;

use serde_json::Value;
use shared::JsonMap;
use shared::definition::Gate;
use shared::error::{FlowCode, FlowError};
use shared::run::Step;

use crate::engine::builder::{Builder, failure};
use crate::engine::conversation::{CallSite, ToolCall, ToolCallState};
use crate::engine::invoke::{Started, parameters};
use crate::engine::phase::Phase;
use crate::engine::question::Subject;
use crate::engine::roster::CallOrigin;
use crate::engine::ruling::Ruling;
use crate::engine::scope;

impl<'f> Builder<'f> {
    /// Enters a tool node: starts its call, or asks about it if a gate holds it back. `Err` if the step fails.
    pub(in crate::engine) fn enter_tool(
        &mut self,
        branch: u32,
        step: Step,
        tool: &str,
        templates: Option<&JsonMap>,
        correction: Option<String>,
    ) -> Result<(), FlowError> {
        let mut call = self.tool_call(&step, tool, templates, correction.as_deref())?;
        let at = CallSite { step: &step, agent: None, correction: correction.as_deref() };
        match self.hold_back(at, &mut call) {
            None => self.run_tool(branch, step, call, correction),
            Some(gate) => self.wait_at(gate, branch, step, call, correction),
        }
        Ok(())
    }

    fn wait_at(&mut self, gate: &'f Gate, branch: u32, step: Step, call: ToolCall, correction: Option<String>) {
        let gated = [(call.id.clone(), gate)];
        self.settle(branch, Phase::tool(step, call, correction));
        self.ask_about(branch, &gated);
    }

    /// Creates the node's call: with its rendered templates, or with the readable keys that the tool's parameters name.
    fn tool_call(
        &self,
        step: &Step,
        tool: &str,
        templates: Option<&JsonMap>,
        correction: Option<&str>,
    ) -> Result<ToolCall, FlowError> {
        let arguments = if let Some(templates) = templates {
            self.render_object(step, templates, correction)?
        } else {
            let definition = self.flow.of(&step.node).tool(tool);
            let schema = definition.as_ref().and_then(|tool| parameters(tool));
            let named = schema.as_ref().and_then(|schema| schema.get("properties")).and_then(Value::as_object);
            Value::Object(scope::readable_of(self.flow, &self.state, step, named))
        };
        self.new_call(step, CallOrigin::default(), correction, "c1-1".to_owned(), tool, &arguments)
            .map_err(|why| failure(FlowCode::ToolFailed, &step.node, why))
    }

    /// Starts the call, once nothing holds it back any more.
    fn run_tool(&mut self, branch: u32, step: Step, mut call: ToolCall, correction: Option<String>) {
        match self.start_call(&step, CallOrigin::default(), &mut call) {
            // A tool node works in no team, so it creates no specialist and is never vetted.
            Ok(Started::Due | Started::Vetting) => {
                self.settle(branch, Phase::tool(step, call, correction));
            }
            Ok(Started::Asks) => {
                let asked = call.id.clone();
                self.settle(branch, Phase::tool(step, call, correction));
                self.ask(Subject::Ask { branch, call: asked, paused: false });
            }
            Ok(Started::Delegated) => {
                let (call_id, own) = (call.id.clone(), step.clone());
                self.settle(branch, Phase::tool(step, call, correction));
                self.begin_task(branch, &own, &call_id);
            }
            Ok(Started::HandsOver) => {
                let result = self.hand_over_to(&step, None, &call);
                self.emit_executed(&step, &call, Ok(&result));
                self.tool_done(branch, step, result, &BTreeSet::new());
            }
            Ok(Started::Done { result, writes }) => {
                self.emit_executed(&step, &call, Ok(&result));
                self.finish_step(branch, step, writes);
            }
            Err(why) => self.fail(branch, step, FlowCode::ToolFailed, why),
        }
    }

    /// Completes the step with the result of the call, which goes to the node's result key, and with the keys that were
    /// written during the step.
    pub(in crate::engine) fn tool_done(&mut self, branch: u32, step: Step, result: Value, wrote: &BTreeSet<String>) {
        let node = self.flow.node(&step.node);
        let key = node.and_then(|node| scope::result_key(self.flow, &step.node, node));
        let mut writes = self.written_meanwhile(&step.node, wrote);
        writes.extend(key.map(|key| (key, result)));
        self.finish_step(branch, step, writes);
    }

    /// Applies the ruling on the call.
    pub(in crate::engine) fn tool_call_decided(
        &mut self,
        branch: u32,
        step: Step,
        correction: Option<String>,
        call: &ToolCall,
        ruling: Ruling<ToolCall>,
    ) {
        match ruling {
            Ruling::Proceeds(as_it_runs) if call.state != ToolCallState::Gated && call.digest == as_it_runs.digest => {
                self.run_tool(branch, step, as_it_runs, correction);
            }
            Ruling::Proceeds(mut as_it_runs) => {
                let at = CallSite { step: &step, agent: None, correction: correction.as_deref() };
                match self.pass_gate(at, self.asking_gate(at, call), &mut as_it_runs) {
                    Ok(Some(gate)) => self.wait_at(gate, branch, step, as_it_runs, correction),
                    Ok(None) => self.run_tool(branch, step, as_it_runs, correction),
                    Err(why) => self.fail(branch, step, FlowCode::ToolPermissionDenied, why),
                }
            }
            Ruling::Answered(result) => self.tool_done(branch, step, result, &BTreeSet::new()),
            Ruling::Refused(code, why) => self.fail(branch, step, code, why),
        }
    }
}
