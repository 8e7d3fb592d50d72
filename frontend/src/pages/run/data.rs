//! The data of the run's page. Steps and reviews are loaded once and then follow the log; the state, which is not in
//! the log, is reloaded after events, at most once a second. What the server or the network failed to load is loaded
//! again, after pauses that grow.

use std::collections::BTreeSet;

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::api::Graph;
use shared::error::Problem;
use shared::id::RunId;
use shared::log::Entry;
use shared::protocol::ServerMessage;
use shared::run::{Report, Run};

use crate::client::{Api, Live, use_api};
use crate::components::graph::{Marks, marks};
use crate::state::streams::Streams;
use crate::state::{reconnect, report};

/// The time in which entries are collected before a reload, in milliseconds.
const GATHER_MS: u32 = 60;
/// The minimum pause between two reloads, in milliseconds.
const PAUSE_MS: u32 = 1000;

/// The parts of the data to load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ToReload {
    run: bool,
    report: bool,
}

impl ToReload {
    fn add(&mut self, more: Self) {
        self.run |= more.run;
        self.report |= more.report;
    }
}

/// The state of loading for one page.
#[derive(Debug, Default)]
struct LoadState {
    /// The parts to load next.
    to_reload: ToReload,
    /// The parts that could not be loaded. They are loaded with the next load, or after a pause.
    failed: ToReload,
    /// The number of loads that failed one after another.
    failures: u32,
    busy: bool,
    /// The entries that arrived while the report was loading, and may be missing from it.
    meanwhile: Vec<Entry>,
}

/// The data of one run, kept up to date. Cheap to copy into closures.
#[derive(Clone, Copy)]
pub struct RunData {
    pub id: RunId,
    /// The run; `None` until it is loaded.
    pub run: RwSignal<Option<Run>>,
    /// Its steps and reviews; `None` until they are loaded.
    pub report: RwSignal<Option<Report>>,
    /// The graph of the flow's version; `None` until it is loaded.
    pub graph: RwSignal<Option<Graph>>,
    /// The state keys that changed last.
    pub changed: RwSignal<BTreeSet<String>>,
    /// The streamed text of running agents.
    pub streams: RwSignal<Streams>,
    pub problem: RwSignal<Option<Problem>>,
    /// The marks of the run in the graph.
    pub marks: Signal<Marks>,
    loads: StoredValue<LoadState>,
    api: Api,
}

impl RunData {
    /// Loads a run and follows it while the calling component exists.
    pub fn follow(id: RunId) -> Self {
        let live = expect_context::<Live>();
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
            loads: StoredValue::new(LoadState::default()),
            api: use_api(),
        };
        live.follow_run(id);
        live.listen(move |message| match message {
            ServerMessage::Entry(entry) if entry.event.run_id == Some(id) => data.apply(entry),
            ServerMessage::Stream { run, .. } if *run == id => data.streams.update(|streams| streams.apply(message)),
            _ => {}
        });
        // Data loaded before the socket's position is known would be reloaded at once.
        live.once_followed(move || data.load());
        live.on_return(move || data.load());
        data
    }

    /// Reloads everything soon.
    pub fn load(self) {
        self.read(ToReload { run: true, report: true });
    }

    /// Applies a log entry of the run.
    fn apply(self, entry: &Entry) {
        let mut anew = false;
        self.report.update(|report| anew = report.as_mut().is_none_or(|report| report::apply(report, entry)));
        self.loads.update_value(|loads| {
            if loads.busy {
                loads.meanwhile.push(entry.clone());
            }
        });
        self.report.with_untracked(|report| {
            if let Some(report) = report {
                self.streams.update(|streams| streams.keep_running(&report.steps));
            }
        });
        let newer = entry.event.run().filter(|summary| {
            self.run.with_untracked(|run| run.as_ref().is_some_and(|run| run.summary.revision < summary.revision))
        });
        if let Some(summary) = newer {
            self.run.update(|run| run.as_mut().into_iter().for_each(|run| run.summary.clone_from(&summary)));
        }
        self.read(ToReload { run: true, report: anew });
    }

    fn read(self, more: ToReload) {
        let begin = self.loads.try_update_value(|loads| {
            loads.to_reload.add(more);
            loads.to_reload.add(std::mem::take(&mut loads.failed));
            !std::mem::replace(&mut loads.busy, true)
        });
        if begin != Some(true) {
            return;
        }
        spawn_local(async move {
            TimeoutFuture::new(GATHER_MS).await;
            // `None`: the page is gone.
            while let Some(parts) = self.loads.try_update_value(|loads| {
                loads.busy = loads.to_reload != ToReload::default();
                loads.meanwhile.clear();
                let mut parts = std::mem::take(&mut loads.to_reload);
                if parts != ToReload::default() {
                    parts.add(std::mem::take(&mut loads.failed));
                }
                parts
            }) && parts != ToReload::default()
            {
                let run = async { if parts.run { Some(self.api.run(self.id).await) } else { None } };
                let report = async { if parts.report { Some(self.api.report(self.id).await) } else { None } };
                let (run, report) = futures::join!(run, report);
                match (run.transpose(), report.transpose()) {
                    (Ok(run), Ok(report)) => self.take(run, report),
                    (Err(problem), _) | (_, Err(problem)) => self.fail(parts, problem),
                }
                TimeoutFuture::new(PAUSE_MS).await;
            }
        });
    }

    /// Notes what could not be loaded, and loads it again after a pause.
    fn fail(self, parts: ToReload, problem: Problem) {
        // A person may still try again what the console does not.
        let is_passing = reconnect::is_passing(&problem);
        if self.problem.try_set(Some(problem)).is_some() {
            return;
        }
        let failures = self.loads.try_update_value(|loads| {
            loads.failed.add(parts);
            loads.failures = loads.failures.saturating_add(1);
            loads.failures
        });
        let Some(failures) = failures.filter(|_| is_passing) else { return };
        spawn_local(async move {
            TimeoutFuture::new(reconnect::wait_ms(failures, js_sys::Math::random()).max(PAUSE_MS)).await;
            // A later load has a pause of its own.
            if self.loads.try_with_value(|loads| loads.failures == failures) == Some(true) {
                self.read(ToReload::default());
            }
        });
    }

    fn take(self, run: Option<Run>, report: Option<Report>) {
        if self.problem.try_set(None).is_some() {
            return;
        }
        self.loads.update_value(|loads| loads.failures = 0);
        if let Some(mut report) = report {
            self.loads.with_value(|loads| {
                for entry in &loads.meanwhile {
                    report::apply(&mut report, entry);
                }
            });
            self.streams.update(|streams| streams.keep_running(&report.steps));
            self.report.set(Some(report));
        }
        if let Some(run) = run {
            self.take_run(run);
        }
    }

    fn take_run(self, run: Run) {
        let before = self.run.get_untracked();
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
                // Without the graph, the page still shows everything in words.
                if let Ok(flow) = self.api.flow(&flow, Some(version)).await {
                    self.graph.set(flow.graph);
                }
            });
        }
        self.run.set(Some(run));
    }
}
