//! `countersign user …`: adds and manages users in the database. Works beside a running server.

use std::io::BufRead;

use anyhow::{Context, bail};
use clap::Subcommand;
use shared::api::{NewUser, UserPatch};
use shared::id::Username;

use super::{print, storage_of_server};
use crate::app;
use crate::auth::{self, Passwords};
use crate::clock::SharedClock;
use crate::config::{Storage, StorageArgs};
use crate::notify::is_slack_user_id;
use crate::store::{Change, FactorChange, Operation, ProviderAccount, Store, UserChange};

/// The commands for users.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Add a user
    Add {
        /// Username to log in with
        username: Username,
        /// Role: reviewer, developer, admin, or one of your own; may be repeated
        #[arg(long = "role", value_name = "ROLE")]
        roles: Vec<String>,
        /// Name that others see
        #[arg(long, value_name = "NAME")]
        display_name: Option<String>,
        /// E-mail address
        #[arg(long, value_name = "ADDRESS")]
        email: Option<String>,
        /// Read the password from standard input, as one line
        #[arg(long, required = true)]
        password_stdin: bool,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Set a user's password; their sessions, tokens and login links end
    Password {
        /// Username of the user who gets the password.
        username: Username,
        /// Read the password from standard input, as one line
        #[arg(long, required = true)]
        password_stdin: bool,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Remove a user's second factor, for example if their device is lost
    ResetSecondFactor {
        /// Username of the user whose second factor is removed.
        username: Username,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Set or remove a user's member ID in Slack; what this member presses in messages counts as the user's decision
    Slack {
        /// Username of the user in Countersign
        username: Username,
        /// Member ID from the profile in Slack, such as U024BE7LH
        #[arg(long, value_name = "ID", required_unless_present = "remove", conflicts_with = "remove")]
        member: Option<String>,
        /// Remove the member ID of this user
        #[arg(long)]
        remove: bool,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Switch a user from a password to single sign-on
    SingleSignOn {
        /// Username of the user in Countersign
        username: Username,
        /// Id of the user at the provider (`sub`), which the audit log shows for a refused login
        #[arg(long, required_unless_present = "remove", conflicts_with = "remove")]
        subject: Option<String>,
        /// End single sign-on for this user; set a password afterwards
        #[arg(long)]
        remove: bool,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Erase the personal data of a deactivated user; a running server then replaces their name everywhere
    Erase {
        /// Username of the person to erase, who must already be deactivated.
        username: Username,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Print a link that logs a user in once, within a day: open /login#token=<secret> on the server
    Link {
        /// Username of the user whom the link logs in.
        username: Username,
        #[command(flatten)]
        storage: StorageArgs,
    },
}

pub async fn run(command: UserCommand) -> anyhow::Result<()> {
    let clock = app::system_clock();
    match command {
        UserCommand::Add { username, roles, display_name, email, password_stdin: _, storage } => {
            let new = NewUser { username, password: password_of_stdin()?, display_name, email, roles };
            let passwords = Passwords::new(clock.clone());
            let add = async |store: &Store| auth::add_user(store, &clock, &passwords, None, new).await;
            let user = in_database(&storage, &clock, add).await??;
            print(&format!("{} may log in, with roles: {}", user.username, user.roles.join(", ")));
        }
        UserCommand::Password { username, password_stdin: _, storage } => {
            let (password, passwords) = (password_of_stdin()?, Passwords::new(clock.clone()));
            let set = async |store: &Store| auth::set_password(store, &passwords, &username, password).await;
            in_database(&storage, &clock, set).await??;
            print(&format!("{username} has a new password; their earlier sessions and tokens have ended"));
        }
        UserCommand::ResetSecondFactor { username, storage } => {
            let remove =
                Operation::ChangeSecondFactor { username: username.clone(), change: FactorChange::Remove(None) };
            commit(remove, format!("the second factor of {username}"), &storage, &clock).await?;
            print(&format!("{username} can log in without a second factor"));
        }
        UserCommand::Slack { username, member, remove: _, storage } => {
            if member.as_deref().is_some_and(|id| !is_slack_user_id(id)) {
                bail!("a member ID in Slack looks like U024BE7LH");
            }
            let done = if member.is_some() { "is known in Slack" } else { "is no longer known in Slack" };
            let patch = UserPatch { slack_user_id: Some(member.unwrap_or_default()), ..UserPatch::default() };
            let change = UserChange { username: username.clone(), patch, password_hash: None };
            let set = Operation::UpdateUser(Box::new(change));
            commit(set, format!("the member ID of {username}"), &storage, &clock).await?;
            print(&format!("{username} {done}"));
        }
        UserCommand::SingleSignOn { username, subject, remove: _, storage } => {
            link(username, subject, &storage, &clock).await?;
        }
        UserCommand::Erase { username, storage } => erase(username, &storage, &clock).await?,
        UserCommand::Link { username, storage } => {
            let link = async |store: &Store| match store.user(&username).await? {
                Some(_) => Ok(auth::login_link(store, &clock, username.clone()).await?),
                None => bail!("there is no user named {username}"),
            };
            let secret = in_database(&storage, &clock, link).await??;
            print(&format!("/login#token={secret}"));
        }
    }
    Ok(())
}

/// Links a user to an account at the identity provider; without a `subject`, removes the link.
async fn link(
    username: Username,
    subject: Option<String>,
    storage: &StorageArgs,
    clock: &SharedClock,
) -> anyhow::Result<()> {
    let account = match subject {
        None => None,
        Some(subject) => {
            let (_, file) = Storage::resolve(storage)?;
            let oidc = file.oidc.context("the settings name no identity provider; add [oidc]")?;
            Some(ProviderAccount { issuer: oidc.issuer, subject })
        }
    };
    let by = if account.is_some() { "the identity provider" } else { "a password, once it is set" };
    let link = Operation::LinkAccount { username: username.clone(), account };
    commit(link, format!("the account of {username}"), storage, clock).await?;
    print(&format!("{username} logs in with {by}; their earlier sessions and tokens have ended"));
    Ok(())
}

async fn erase(username: Username, storage: &StorageArgs, clock: &SharedClock) -> anyhow::Result<()> {
    let erase = async |store: &Store| auth::erase_user(store, None, username.clone()).await;
    let erased = in_database(storage, clock, erase).await?;
    let erasure = erased.with_context(|| format!("the personal data of {username}"))?;
    print(&format!("{username} is now {}", erasure.username));
    if !erasure.done {
        print("a server on this database erases everything else that names them, within minutes");
    }
    if erasure.archived_runs > 0 {
        print(&format!("{} of their runs are archived; the files still name them", erasure.archived_runs));
    }
    Ok(())
}

/// Commits an operation at the server's terminal. `what` begins the error.
async fn commit(operation: Operation, what: String, storage: &StorageArgs, clock: &SharedClock) -> anyhow::Result<()> {
    let commit = async |store: &Store| store.commit(Change::by_server(operation)).await;
    in_database(storage, clock, commit).await?.map(drop).context(what)
}

/// Opens the database of a server, does `work`, and closes it, also if the work has failed.
async fn in_database<T>(
    storage: &StorageArgs,
    clock: &SharedClock,
    work: impl AsyncFnOnce(&Store) -> T,
) -> anyhow::Result<T> {
    let storage = storage_of_server(storage)?;
    storage.make_folder()?;
    let store = app::open_to_write(&storage, clock.clone()).await?.0;
    let done = work(&store).await;
    store.close().await;
    Ok(done)
}

fn password_of_stdin() -> anyhow::Result<String> {
    let mut password = String::new();
    std::io::stdin().lock().read_line(&mut password).context("the password cannot be read")?;
    Ok(password.trim_end_matches(['\n', '\r']).to_owned())
}
