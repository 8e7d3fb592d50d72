//! The changes that wait until the flows that they need are compiled. The writer writes others meanwhile: compiling a
//! large flow takes far longer than most transactions.

use std::sync::Arc;

use shared::id::FlowId;
use tokio::task::JoinSet;

use super::super::Inner;
use super::queue::{QueuedChange, WAITING};

#[derive(Default)]
pub(super) struct Preparations {
    tasks: JoinSet<Vec<QueuedChange>>,
    /// The number of changes that wait in them.
    waiting: usize,
}

impl Preparations {
    /// Whether the writer may take more changes from its queue, which may have to wait here, too.
    pub fn has_room(&self) -> bool {
        self.waiting < WAITING
    }

    /// Compiles these versions of flows. [`Self::next`] returns the changes afterwards, whether that succeeded or not.
    pub fn begin(&mut self, inner: &Arc<Inner>, mut jobs: Vec<QueuedChange>, flows: Vec<(FlowId, u32)>) {
        self.waiting += jobs.len();
        let inner = Arc::clone(inner);
        self.tasks.spawn(async move {
            for (flow, version) in flows {
                if let Err(error) = inner.compiled(&flow, version).await {
                    tracing::debug!(%error, %flow, version, "a flow could not be compiled; its changes say why");
                }
            }
            for job in &mut jobs {
                job.caller.is_prepared = true;
            }
            jobs
        });
    }

    /// Waits for the next changes that are prepared. `None` if none are waiting. Cancel safe.
    pub async fn next(&mut self) -> Option<Vec<QueuedChange>> {
        while let Some(ended) = self.tasks.join_next().await {
            match ended {
                Ok(jobs) => {
                    self.waiting = self.waiting.saturating_sub(jobs.len());
                    return Some(jobs);
                }
                // Their callers learn that it is not known what has become of the changes.
                Err(error) => tracing::error!(%error, "changes that waited for a flow are lost"),
            }
        }
        self.waiting = 0;
        None
    }
}
