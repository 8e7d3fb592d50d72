//! The options of Countersign inside a program: the reviewers, the functions that are tools, and the database.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::Value;
use shared::JsonMap;
use shared::access::{DEVELOPER, REVIEWER};
use shared::api::User;
use shared::decision::Via;
use shared::id::Username;
use shared::review::Review;
use tokio::net::TcpListener;
use tokio::sync::broadcast;

use super::choice::IntoChoice;
use super::error::StartError;
use super::function::{Functions, WithFunctions};
use super::handler::{Handled, Handlers, WithHandlers};
use super::reviewer::{Reviewer, reviewer_fn};
use super::reviewer_loop::{Person, ReviewerLoop};
use super::{Countersign, Inner, NewsObserver};
use crate::app::{self, Runner, RunnerOptions};
use crate::audit::Seals;
use crate::auth;
use crate::clock::SharedClock;
use crate::config;
use crate::flow::Reach;
use crate::handler::{CallbackKey, CallbackUrl};
use crate::http::Outside;
use crate::store::{Change, CommitError, NewUserRecord, Operation, Store, StoreOptions};

/// How many log entries a slow receiver may lag behind.
const NEWS: usize = 4096;

/// The options for running flows in this program.
#[derive(Default)]
pub struct Options {
    url: Option<String>,
    requester: Option<String>,
    people: Vec<NewPerson>,
    deciders: Vec<(String, Vec<String>)>,
    functions: Functions,
    handlers: Handlers,
    settings: config::SettingsFile,
    flows: Option<PathBuf>,
    listen: Option<SocketAddr>,
}

struct NewPerson {
    username: String,
    roles: Vec<String>,
    via: Via,
    reviewer: Arc<dyn Reviewer>,
}

impl Options {
    /// Creates options with a temporary database, which ends with the program, and without reviewers and functions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores everything in this database (`sqlite:<file>` or `postgres://…`), so that waiting runs continue when the
    /// program is started again.
    pub fn database(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// Asks this function, as the user `reviewer`. It gets the review, and returns a `Choice`, or a result with one.
    pub fn reviewer<F, A, C>(self, function: F) -> Self
    where
        F: Fn(Review) -> A + Send + Sync + 'static,
        A: Future<Output = C> + Send + 'static,
        C: IntoChoice + 'static,
    {
        self.person(REVIEWER, [], Via::Human, reviewer_fn(function))
    }

    /// Adds a person with this name, the role `reviewer` and these roles; if there are several, each is asked what they
    /// may decide. `via` is the channel of their decisions in the audit log.
    pub fn person<const N: usize>(
        self,
        username: impl Into<String>,
        roles: [&str; N],
        via: Via,
        reviewer: Arc<dyn Reviewer>,
    ) -> Self {
        self.person_with(username, roles.map(str::to_owned).to_vec(), via, reviewer)
    }

    /// Does the same with roles that are known only at run time.
    pub fn person_with(
        mut self,
        username: impl Into<String>,
        roles: Vec<String>,
        via: Via,
        reviewer: Arc<dyn Reviewer>,
    ) -> Self {
        self.people.push(NewPerson { username: username.into(), roles, via, reviewer });
        self
    }

    /// Adds a person with the role `reviewer` and these roles who is not asked: the program decides in their name with
    /// [`Countersign::decide`] at any time, or they decide in the console.
    pub fn decider<const N: usize>(mut self, username: impl Into<String>, roles: [&str; N]) -> Self {
        self.deciders.push((username.into(), roles.map(str::to_owned).to_vec()));
        self
    }

    /// Sets the name that starts runs; default: `program`. It matters for reviews that exclude this person.
    pub fn requested_by(mut self, username: impl Into<String>) -> Self {
        self.requester = Some(username.into());
        self
    }

    /// Adds the function of a tool that a flow declares with [`function`](crate::flow::builder::function). It gets the
    /// arguments as they were approved, if approval was required.
    pub fn tool<F, A, E>(mut self, name: impl Into<String>, function: F) -> Self
    where
        F: Fn(JsonMap) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Value, E>> + Send + 'static,
        E: Display,
    {
        self.functions.add(name.into(), function);
        self
    }

    /// Adds the function of a handler that a flow names with [`Human::handler`](crate::flow::builder::Human::handler):
    /// it is asked before people, and decides or passes on. It gets the review as people would see it, and has five
    /// minutes; use a reviewer for anything that takes longer.
    pub fn handler<F, A, H>(mut self, name: impl Into<String>, function: F) -> Self
    where
        F: Fn(Review) -> A + Send + Sync + 'static,
        A: Future<Output = H> + Send + 'static,
        H: Into<Handled>,
    {
        self.handlers.add(name.into(), function);
        self
    }

    /// Applies a server's settings file, except what these options set (`database`, `flows`, `listen`) and what only a
    /// server does: `archive`, `retention`, `seal_head`, `oidc` and the channels of notifications. If a server seals
    /// the same database, `seal_key` is required too: entries that are written without it are not sealed.
    pub fn settings(mut self, settings: config::SettingsFile) -> Self {
        self.settings = settings;
        self
    }

    /// Saves the flow files of a folder first.
    pub fn flows(mut self, folder: impl Into<PathBuf>) -> Self {
        self.flows = Some(folder.into());
        self
    }

    /// Also serves the console; log in with [`Countersign::links`].
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = Some(address);
        self
    }

    /// Opens the store, and starts the worker and the loop that asks reviewers.
    pub async fn start(self) -> Result<Countersign, StartError> {
        let requester: Username = self.requester.unwrap_or_else(|| "program".to_owned()).parse()?;
        let people = self.people.into_iter().map(NewPerson::named).collect::<Result<Vec<_>, _>>()?;
        let deciders = self.deciders.into_iter().map(|(name, roles)| Ok((name.parse()?, with_reviewer(roles))));
        let deciders = deciders.collect::<Result<Vec<(Username, Vec<String>)>, shared::id::InvalidName>>()?;
        let (url, folder) = if let Some(url) = self.url {
            (url, None)
        } else {
            let folder = tempfile::Builder::new().prefix("countersign-").tempdir()?;
            (format!("sqlite:{}", folder.path().join("countersign.db").display()), Some(folder))
        };
        let listener = match self.listen {
            Some(address) => Some(app::listen(address).await?),
            None => None,
        };
        let clock = app::system_clock();
        let (store, callbacks) = open_store(&self.settings, url, &clock).await?;
        let reach =
            Reach { terminal: people.iter().any(|person| person.via == Via::Cli), ..app::reach(&self.settings, true) };
        let has_deciders = !deciders.is_empty();
        let asked = people.iter().map(|person| (person.username.clone(), person.roles.clone()));
        let everyone: Vec<_> = asked.chain(deciders).collect();
        add_people(&store, &clock, &requester, everyone.clone()).await?;
        if let Some(folder) = &self.flows {
            app::load_flows(&store, folder, None, &reach).await?;
        }
        let links = match &listener {
            Some(_) => links(&store, &clock, everyone.into_iter().map(|(username, _)| username).collect()).await?,
            None => Vec::new(),
        };

        let functions = self.functions;
        let secrets = app::secrets(&self.settings.secrets);
        let others = app::tools(&self.settings, secrets.clone())?;
        let tools = Arc::new(WithFunctions { functions: functions.clone(), others });
        let models = Arc::new(app::models(&self.settings.prices, secrets)?);
        let address = listener.as_ref().map(TcpListener::local_addr).transpose()?;
        let server = address.map(|address| app::notified_url(&self.settings, address));
        let server = server.map(|server| CallbackUrl { server, key: callbacks.clone() });
        let others = app::webhooks(&self.settings.notifications.allowed_hosts, server, clock.clone())?;
        let programs = Arc::new(WithHandlers { handlers: self.handlers.clone(), others });
        let (news, heard) = broadcast::channel(NEWS);
        let inner = Arc::new(Inner {
            store: store.clone(),
            clock: clock.clone(),
            requester,
            functions,
            handlers: self.handlers,
            reach: reach.clone(),
            news: news.clone(),
            watched: Mutex::default(),
            streams: OnceLock::new(),
        });
        let mut options = RunnerOptions::new(&self.settings, store, clock, models, tools, programs)?;
        options.observers.push(Arc::new(NewsObserver(news)));
        let runner = Runner::start(options).await?;
        inner.streams.get_or_init(|| runner.hub.streams().clone());
        let listening = runner.hub.listen();
        let notifier = ReviewerLoop::new(Arc::clone(&inner), people, listener.is_some() || has_deciders);
        let notifier = inner.store.background().run("questions to reviewers", Box::pin(notifier.run(heard)));
        let server = match listener {
            Some(listener) => {
                let outside = Outside { reach, callbacks, ..Outside::default() };
                Some(app::serve(&runner, listener, &self.settings, None, Seals::default(), outside)?)
            }
            None => None,
        };
        let (notifier, runner) = (Some(notifier), Some(runner));
        Ok(Countersign { inner, notifier, server, links, _listening: listening, runner, folder })
    }
}

/// Opens the store, with the key of callbacks if the settings name a file for it.
async fn open_store(
    settings: &config::SettingsFile,
    url: String,
    clock: &SharedClock,
) -> Result<(Store, Option<CallbackKey>), StartError> {
    let environment = app::environment();
    let longest_grant = settings.longest_grant();
    let options = StoreOptions { environment, longest_grant, ..StoreOptions::new(url, clock.clone()) };
    Ok(match &settings.seal_key {
        Some(path) => {
            let (store, key, _) = app::open_record(path, options).await?;
            (store, Some(CallbackKey::new(key.callback_key())))
        }
        None => (Store::open(options).await?, None),
    })
}

impl NewPerson {
    fn named(self) -> Result<Arc<Person>, shared::id::InvalidName> {
        let roles = with_reviewer(self.roles);
        let username = self.username.parse()?;
        Ok(Arc::new(Person { username, roles, via: self.via, reviewer: self.reviewer }))
    }
}

/// Returns the system role reviewer, and these roles.
fn with_reviewer(roles: Vec<String>) -> Vec<String> {
    let others = roles.into_iter().filter(|role| role != REVIEWER);
    std::iter::once(REVIEWER.to_owned()).chain(others).collect()
}

/// Adds missing people, with all roles that they need.
async fn add_people(
    store: &Store,
    clock: &SharedClock,
    requester: &Username,
    people: impl IntoIterator<Item = (Username, Vec<String>)>,
) -> Result<(), StartError> {
    let mut needed: BTreeMap<Username, Vec<String>> = BTreeMap::new();
    needed.entry(requester.clone()).or_default().push(DEVELOPER.to_owned());
    for (username, roles) in people {
        needed.entry(username).or_default().extend(roles);
    }
    for (username, roles) in needed {
        let roles = auth::check_roles(roles)?;
        let user = User::new(username, roles, clock.now());
        let record = Box::new(NewUserRecord { user, password_hash: None });
        match store.commit(Change::by_server(Operation::CreateUser(record))).await {
            // In a database that is kept, people stay as they are.
            Ok(_) | Err(CommitError::Conflict(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Creates a login link for each of these people who may log in.
async fn links(
    store: &Store,
    clock: &SharedClock,
    people: BTreeSet<Username>,
) -> Result<Vec<(Username, String)>, StartError> {
    let mut links = Vec::new();
    for username in people {
        match auth::login_link(store, clock, username.clone()).await {
            Ok(secret) => links.push((username, secret)),
            // In a database that is kept, they may have been deactivated.
            Err(auth::Error::Commit(CommitError::Unauthenticated)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(links)
}
