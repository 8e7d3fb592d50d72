//! What the page knows of its run: loaded, and loaded anew when the log tells of the run. Entries only say that
//! something has changed; what is shown always is one answer of the server.

use std::collections::BTreeSet;

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::api::Graph;
use shared::error::Problem;
use shared::id::RunId;
use shared::protocol::ServerMessage;
use shared::run::{Report, Run};

use crate::client::{Api, Connection, Live, use_api};
use crate::components::graph::{Marks, marks};
use crate::state::streams::Streams;

/// Entries that come within so many milliseconds are answered by one loading.
const GATHER_MS: u32 = 60;

/// One run, followed. Cheap to copy into closures.
#[derive(Clone, Copy)]
pub struct RunData {
    /// Its id.
    pub id: RunId,
    /// The run; none: not loaded yet.
    pub run: RwSignal<Option<Run>>,
    /// Its steps and reviews.
    pub report: RwSignal<Option<Report>>,
    /// The picture of its flow's version.
    pub graph: RwSignal<Option<Graph>>,
    /// The state keys that changed last.
    pub changed: RwSignal<BTreeSet<String>>,
    /// What running agents have said so far.
    pub streams: RwSignal<Streams>,
    /// Why it could not be loaded.
    pub problem: RwSignal<Option<Problem>>,
    /// What the graph shows of the run.
    pub marks: Signal<Marks>,
    /// Whether a loading is under way, and whether something has changed since it began.
    loading: StoredValue<(bool, bool)>,
    api: Api,
}

impl RunData {
    /// Loads a run and follows it while the component lives that calls this.
    pub fn follow(id: RunId) -> Self {
        let live = Live::expect();
        let run = RwSignal::new(None);
        let report = RwSignal::new(None);
        let marks = Memo::new(move |_| run.with(|run| report.with(|report| marks(run.as_ref(), report.as_ref()))));
        let data = Self {
            id,
            run,
            report,
            graph: RwSignal::new(None),
            changed: RwSignal::new(BTreeSet::new()),
            streams: RwSignal::new(Streams::default()),
            problem: RwSignal::new(None),
            marks: marks.into(),
            loading: StoredValue::new((false, false)),
            api: use_api(),
        };
        live.follow_run(id);
        live.listen(move |message| match message {
            ServerMessage::Entry(entry) if entry.event.run_id == Some(id) => data.load(),
            // What happened before it may not be told.
            ServerMessage::Snapshot { .. } => data.load(),
            ServerMessage::Stream { run, .. } if *run == id => data.streams.update(|streams| streams.hear(message)),
            _ => {}
        });
        // After a lost connection the entries come again, but a page that was opened without one has nothing.
        Effect::new(move |_| {
            if matches!(live.connection.get(), Connection::Open | Connection::Lost { .. }) {
                data.load();
            }
        });
        data
    }

    /// Loads the run anew, soon.
    pub fn load(self) {
        let Some((busy, _)) = self.loading.try_get_value() else { return };
        self.loading.set_value((true, busy));
        if busy {
            return;
        }
        spawn_local(async move {
            loop {
                TimeoutFuture::new(GATHER_MS).await;
                let (run, report) = futures::join!(self.api.run(self.id), self.api.report(self.id));
                match (run, report) {
                    (Ok(run), Ok(report)) => self.take(run, report),
                    (Err(problem), _) | (_, Err(problem)) => self.problem.set(Some(problem)),
                }
                // None: the page has gone.
                let Some((_, again)) = self.loading.try_get_value() else { return };
                self.loading.set_value((again, false));
                if !again {
                    return;
                }
            }
        });
    }

    fn take(self, run: Run, report: Report) {
        let Some(before) = self.run.try_get_untracked() else { return };
        self.problem.set(None);
        if let Some(before) = &before {
            if before.summary.revision > run.summary.revision {
                return;
            }
            let differs = |key: &&String| before.state.get(*key) != run.state.get(*key);
            let changed: BTreeSet<String> = run.state.keys().filter(differs).cloned().collect();
            if !changed.is_empty() {
                self.changed.set(changed);
            }
        } else {
            let (flow, version) = (run.summary.flow.clone(), run.summary.version);
            spawn_local(async move {
                // Without the picture the page still says everything in words.
                if let Ok(flow) = self.api.flow(&flow, Some(version)).await {
                    self.graph.set(flow.graph);
                }
            });
        }
        self.streams.update(|streams| streams.keep_running(&report.steps));
        self.report.set(Some(report));
        self.run.set(Some(run));
    }
}
