//! Calls of other flows. The called version is fixed when the caller is saved, so that a version of a flow always does
//! the same. Only saved flows can be called, so no run can call itself in a circle.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use shared::definition::{Flow, FlowCall, NodeKind};
use shared::error::{FlowCode, Mistake, pointer};
use shared::id::{FlowId, MAX_CALLS, NodeId};

use super::compiled::Compiled;
use super::suggest::did_you_mean;

/// The flows that can be called, compiled.
#[derive(Debug, Clone, Default)]
pub struct Library {
    newest: HashMap<FlowId, Arc<Compiled>>,
    versions: HashMap<(FlowId, u32), Arc<Compiled>>,
    /// The flows that this server cannot read, and why.
    unreadable: HashMap<FlowId, String>,
    /// The names of further flows, for "did you mean".
    names: BTreeSet<String>,
}

impl Library {
    /// Adds a flow. A call without a version gets the highest version.
    pub fn add(&mut self, flow: Arc<Compiled>) {
        let id = flow.flow.id.clone();
        self.versions.insert((id.clone(), flow.version), Arc::clone(&flow));
        let newest = self.newest.entry(id).or_insert_with(|| Arc::clone(&flow));
        if newest.version < flow.version {
            *newest = flow;
        }
    }

    /// Adds the name of a flow that is not called.
    pub fn name(&mut self, id: String) {
        self.names.insert(id);
    }

    /// Adds a flow that this server cannot read.
    pub fn unreadable(&mut self, id: FlowId, why: String) {
        self.unreadable.insert(id, why);
    }

    fn get(&self, call: &FlowCall) -> Option<&Arc<Compiled>> {
        match call.version {
            Some(version) => self.versions.get(&(call.id.clone(), version)),
            None => self.newest.get(&call.id),
        }
    }
}

impl Compiled {
    /// Compiles a checked flow that calls no other. Returns the mistakes, which the [check](mod@super::check) finds too.
    pub fn new(flow: Flow, version: u32) -> Result<Self, Vec<Mistake>> {
        Self::calling(flow, version, &Library::default())
    }

    /// Compiles a flow that may call those of a library. A call without a version gets the newest one, and keeps it:
    /// see [`Self::flow`].
    pub fn calling(mut flow: Flow, version: u32, library: &Library) -> Result<Self, Vec<Mistake>> {
        let called = fix(&mut flow, library);
        Self::with_calls(flow, version, called)
    }
}

/// Returns the calls of a flow, by node.
pub fn calls(flow: &Flow) -> impl Iterator<Item = (&NodeId, &FlowCall)> {
    flow.nodes.iter().filter_map(|(id, node)| match &node.kind {
        NodeKind::Flow(call) => Some((id, call)),
        _ => None,
    })
}

/// Finds the flow of a call. `Err` has the key of the call that is wrong, and why.
pub(super) fn find<'l>(
    flow: &Flow,
    call: &FlowCall,
    library: &'l Library,
) -> Result<&'l Arc<Compiled>, (&'static str, String)> {
    let id = &call.id;
    if *id == flow.id {
        return Err(("id", format!("`{id}` calls itself; use `next` to go back in the same flow")));
    }
    let Some(called) = library.get(call) else {
        if let Some(why) = library.unreadable.get(id) {
            return Err(("id", format!("`{id}` cannot be called until it is saved again: {why}")));
        }
        if let Some(newest) = library.newest.get(id) {
            return Err(("version", format!("the newest version of `{id}` is {}", newest.version)));
        }
        let names = library.names.iter().map(String::as_str).chain(library.newest.keys().map(FlowId::as_str));
        let guess = did_you_mean(id, names.filter(|name| *name != flow.id.as_str()));
        return Err(("id", format!("there is no flow `{id}`{guess}; save it before the flow that calls it")));
    };
    if called.calls(&flow.id) {
        return Err((
            "id",
            format!("`{id}` calls `{}`, directly or indirectly: flows cannot call each other", flow.id),
        ));
    }
    if called.depth() + 1 > MAX_CALLS {
        return Err(("id", format!("flows can call each other {MAX_CALLS} deep, and `{id}` is already that deep")));
    }
    Ok(called)
}

/// Fixes the version of each call. Returns the called flows, or every mistake.
fn fix(flow: &mut Flow, library: &Library) -> Result<HashMap<NodeId, Arc<Compiled>>, Vec<Mistake>> {
    let mut called = HashMap::new();
    let mut mistakes = Vec::new();
    for (node, call) in calls(flow) {
        match find(flow, call, library) {
            Ok(found) => {
                called.insert(node.clone(), Arc::clone(found));
            }
            Err((key, why)) => {
                let path = pointer(["nodes", node.as_str(), "flow", key]);
                mistakes.push(Mistake::new(path, FlowCode::FlowInvalid.as_str(), why));
            }
        }
    }
    for (id, found) in &called {
        if let Some(NodeKind::Flow(call)) = flow.nodes.get_mut(id).map(|node| &mut node.kind) {
            call.version = Some(found.version);
        }
    }
    if mistakes.is_empty() { Ok(called) } else { Err(mistakes) }
}
