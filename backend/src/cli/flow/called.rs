//! The flows that a flow file calls, read from the files of a folder.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use shared::definition::Flow;
use shared::id::FlowId;

use super::super::exit::Quit;
use crate::flow::{Compiled, Library, calls, read};

/// The flows of a folder that a flow calls, directly or indirectly.
#[derive(Debug, Default)]
pub struct Called {
    /// The called flows. Each one comes after the flows that it calls itself.
    pub flows: Vec<Flow>,
    /// The ids of all flows in the folder, for the hint "did you mean".
    names: Vec<String>,
}

impl Called {
    /// Finds the flows that `flow` calls; none if it could not be parsed. Fails if the folder cannot be read.
    pub fn of(flow: Option<&Flow>, folder: &Path) -> Result<Self, Quit> {
        let Some(flow) = flow.filter(|flow| calls(flow).next().is_some()) else { return Ok(Self::default()) };
        let files = files(folder).map_err(|error| Quit::unread(folder, &error))?;
        let mut flows = Vec::new();
        collect(flow, &files, &mut vec![flow.id.clone()], &mut flows);
        Ok(Self { flows, names: files.into_keys().map(String::from).collect() })
    }

    /// Compiles the flows to a library, against which the calls of the calling flow are checked.
    pub fn library(&self) -> Library {
        let mut library = Library::default();
        for flow in &self.flows {
            // A flow with errors is missing from the library. Its errors are reported when that flow is checked itself.
            if let Ok(compiled) = Compiled::calling(flow.clone(), 1, &library) {
                library.add(Arc::new(compiled));
            }
        }
        self.names.iter().for_each(|name| library.name(name.clone()));
        library
    }
}

fn files(folder: &Path) -> std::io::Result<BTreeMap<FlowId, Flow>> {
    // The parent of a bare file name is an empty path.
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut flows = BTreeMap::new();
    for path in crate::app::flow_files(folder)? {
        if let Some(flow) = std::fs::read_to_string(path).ok().and_then(|source| read(&source).flow().cloned()) {
            flows.insert(flow.id.clone(), flow);
        }
    }
    Ok(flows)
}

/// Adds the flows that `flow` calls to `found`, depth first. `above` are the flows on the path to it. A call back to
/// one of them is skipped here, and refused when the flow is saved.
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
