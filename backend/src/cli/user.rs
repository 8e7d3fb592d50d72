//! `countersign user …`: adds and manages users in the database. Works beside a running server.

use std::io::BufRead;

use anyhow::{Context, bail};
use clap::Subcommand;
use shared::api::NewUser;
use shared::id::Username;

use super::print;
use crate::app;
use crate::auth::{self, Passwords};
use crate::clock::SharedClock;
use crate::config::{Storage, StorageArgs};
use crate::notify::is_slack_user_id;
use crate::store::{ProviderAccount, Store};

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
        /// Id of the user at the provider (`sub`), which the audit log shows for a refused sign-in
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

/// Runs a `countersign user` command.
pub async fn run(command: UserCommand) -> anyhow::Result<()> {
    let clock = app::system_clock();
    match command {
        UserCommand::Add { username, roles, display_name, email, password_stdin: _, storage } => {
            let password = password_of_stdin()?;
            let store = open(&Storage::resolve(&storage)?.0, &clock).await?;
            let new = NewUser { username, password, display_name, email, roles };
            let added = auth::add_user(&store, &clock, &Passwords::new(clock.clone()), None, new).await;
            store.close().await;
            match added {
                Ok(user) => print(&format!("{} may log in, with roles: {}", user.username, user.roles.join(", "))),
                Err(error) => return Err(error.into()),
            }
        }
        UserCommand::Password { username, password_stdin: _, storage } => {
            let password = password_of_stdin()?;
            let store = open(&Storage::resolve(&storage)?.0, &clock).await?;
            let passwords = Passwords::new(clock.clone());
            let set = auth::set_password(&store, &passwords, &username, password).await;
            store.close().await;
            set?;
            print(&format!("{username} has a new password; their earlier sessions and tokens have ended"));
        }
        UserCommand::ResetSecondFactor { username, storage } => {
            let store = open(&Storage::resolve(&storage)?.0, &clock).await?;
            let removed = auth::reset_second_factor(&store, username.clone()).await;
            store.close().await;
            removed.with_context(|| format!("the second factor of {username}"))?;
            print(&format!("{username} can log in without a second factor"));
        }
        UserCommand::Slack { username, member, remove: _, storage } => {
            if member.as_deref().is_some_and(|id| !is_slack_user_id(id)) {
                bail!("a member ID in Slack looks like U024BE7LH");
            }
            let done = if member.is_some() { "is known in Slack" } else { "is no longer known in Slack" };
            let store = open(&Storage::resolve(&storage)?.0, &clock).await?;
            let set = auth::set_slack_user_id(&store, username.clone(), member).await;
            store.close().await;
            set.with_context(|| format!("the member ID of {username}"))?;
            print(&format!("{username} {done}"));
        }
        UserCommand::SingleSignOn { username, subject, remove: _, storage } => {
            let (storage, file) = Storage::resolve(&storage)?;
            let account = match subject {
                None => None,
                Some(subject) => {
                    let oidc = file.oidc.context("the settings name no identity provider; add [oidc]")?;
                    Some(ProviderAccount { issuer: oidc.issuer, subject })
                }
            };
            let by = if account.is_some() { "the identity provider" } else { "a password, once it is set" };
            let store = open(&storage, &clock).await?;
            let linked = auth::link_account(&store, username.clone(), account).await;
            store.close().await;
            linked.with_context(|| format!("the account of {username}"))?;
            print(&format!("{username} signs in with {by}; their earlier sessions and tokens have ended"));
        }
        UserCommand::Erase { username, storage } => {
            let store = open(&Storage::resolve(&storage)?.0, &clock).await?;
            let erased = auth::erase_user(&store, username.clone()).await;
            store.close().await;
            let erasure = erased.with_context(|| format!("the personal data of {username}"))?;
            print(&format!("{username} is now {}", erasure.username));
            if !erasure.done {
                print("a server on this database erases everything else that names them, within minutes");
            }
            if erasure.archived_runs > 0 {
                print(&format!("{} of their runs are archived; the files still name them", erasure.archived_runs));
            }
        }
        UserCommand::Link { username, storage } => {
            let store = open(&Storage::resolve(&storage)?.0, &clock).await?;
            let known = store.user(&username).await?;
            let link = match known {
                Some(_) => auth::login_link(&store, &clock, username.clone()).await,
                None => bail!("there is no user named {username}"),
            };
            store.close().await;
            print(&format!("/login#token={}", link?));
        }
    }
    Ok(())
}

/// Opens the database. Fails if no server has created it yet, so that no user is added to a new one by mistake.
async fn open(storage: &Storage, clock: &SharedClock) -> anyhow::Result<Store> {
    if !Store::may_exist(&storage.database) {
        bail!("there is no database at {}; start a server first, or name its folder with --data", storage.database);
    }
    Ok(app::open_to_write(storage, clock.clone()).await?.0)
}

fn password_of_stdin() -> anyhow::Result<String> {
    let mut password = String::new();
    std::io::stdin().lock().read_line(&mut password).context("the password cannot be read")?;
    Ok(password.trim_end_matches(['\n', '\r']).to_owned())
}
