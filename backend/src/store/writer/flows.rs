//! Saving flows.

use std::sync::Arc;

use shared::access::{Act, Principal};
use shared::api::FlowVersion;
use shared::log::{EventData, FlowSaved};

use super::super::{Committed, NewFlow};
use super::group::{ChangeResult, Group};
use super::rights::allow;
use crate::clock::Moment;
use crate::engine::Refusal;
use crate::flow::{Compiled, Library};

impl Group {
    /// Saves a new version. Returns the newest one instead if it has the same source and calls the same versions.
    pub fn save_flow(&mut self, by: Option<&Principal>, new: NewFlow, moment: Moment) -> ChangeResult {
        allow(by, Act::SaveFlow)?;
        let NewFlow { flow, source, digest } = new;
        let newest = self.newest.get(&flow.id);
        let version = newest.map_or(1, |(version, _)| version + 1);
        let compiled = Compiled::calling(flow, version, &self.library()).map_err(Refusal::Invalid)?;
        let flow = compiled.flow.clone();
        // The same source calls other versions if these have been saved since.
        let is_same = |newest: &&FlowVersion| newest.digest == digest && newest.definition.as_deref() == Some(&flow);
        if let Some(same) = newest.and_then(|(_, newest)| newest.as_ref()).filter(is_same) {
            return Ok(Committed::Flow { flow: Box::new(same.clone()) });
        }
        let saved = FlowVersion {
            id: flow.id.clone(),
            version,
            title: flow.title().to_owned(),
            description: flow.description.clone(),
            input: flow.input.clone(),
            definition: Some(Box::new(flow)),
            source: Some(source),
            digest,
            graph: None,
            saved_by: by.map(|by| by.username.clone()),
            saved_at: moment.now,
            warnings: Vec::new(),
        };
        let saved_event = FlowSaved { flow: saved.id.clone(), version, digest: saved.digest.clone() };
        self.emit(by, &EventData::FlowSaved(saved_event), moment);
        self.compiled
            .insert((saved.id.clone(), version), Arc::new(compiled.with_environment(Arc::clone(&self.environment))));
        self.newest.insert(saved.id.clone(), (version, Some(saved.clone())));
        self.out.flows.push(saved.clone());
        Ok(Committed::Flow { flow: Box::new(saved) })
    }

    /// The flows that changes of this group may call.
    fn library(&self) -> Library {
        let mut library = Library::default();
        self.compiled.values().for_each(|flow| library.add(Arc::clone(flow)));
        library
    }
}
