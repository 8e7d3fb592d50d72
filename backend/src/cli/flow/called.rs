//! The flows that a flow file calls, from the files beside it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use shared::definition::Flow;
use shared::id::FlowId;

use crate::flow::{Compiled, Library, calls, read};

/// The flows of a folder that a flow calls, directly or not; those that are called come before those that call.
#[derive(Debug, Default)]
pub struct Called {
    /// The flows that are called, with what they call themselves.
    pub flows: Vec<Flow>,
    /// What the flows of the folder are called, for "did you mean".
    names: Vec<String>,
}

impl Called {
    /// Those of a flow; of what could not be read at all, none.
    pub fn of(flow: Option<&Flow>, folder: &Path) -> std::io::Result<Self> {
        let Some(flow) = flow.filter(|flow| calls(flow).next().is_some()) else { return Ok(Self::default()) };
        let files = files(folder)?;
        let mut flows = Vec::new();
        collect(flow, &files, &mut vec![flow.id.clone()], &mut flows);
        Ok(Self { flows, names: files.into_keys().map(String::from).collect() })
    }

    /// The same, as what can be called.
    pub fn library(&self) -> Library {
        let mut library = Library::default();
        for flow in &self.flows {
            // One with mistakes is missed by those that call it; they are named when it is checked itself.
            if let Ok(compiled) = Compiled::calling(flow.clone(), 1, &library) {
                library.add(Arc::new(compiled));
            }
        }
        self.names.iter().for_each(|name| library.name(name.clone()));
        library
    }
}

fn files(folder: &Path) -> std::io::Result<BTreeMap<FlowId, Flow>> {
    // The folder of a file that is named without one.
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut flows = BTreeMap::new();
    for path in crate::app::flow_files(folder)? {
        if let Some(flow) = std::fs::read_to_string(path).ok().and_then(|source| read(&source).flow().cloned()) {
            flows.insert(flow.id.clone(), flow);
        }
    }
    Ok(flows)
}

/// `above` are the flows on the way here: what would come back to one of them is left out, and refused when it is saved.
fn collect(flow: &Flow, files: &BTreeMap<FlowId, Flow>, above: &mut Vec<FlowId>, found: &mut Vec<Flow>) {
    for (_, call) in calls(flow) {
        let known = above.contains(&call.id) || found.iter().any(|found| found.id == call.id);
        if let Some(called) = files.get(&call.id).filter(|_| !known) {
            above.push(call.id.clone());
            collect(called, files, above, found);
            above.pop();
            found.push(called.clone());
        }
    }
}
