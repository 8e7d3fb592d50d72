//! `countersign user …`: adding people at the server's own terminal. Works beside a running server.

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
use crate::store::{ProviderAccount, Store};

/// What can be done with people.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Adds a person
    Add {
        /// The username, with which they log in
        username: Username,
        /// A role: reviewer, developer, admin, or one of your own; may be repeated
        #[arg(long = "role", value_name = "ROLE")]
        roles: Vec<String>,
        /// The name that others are shown
        #[arg(long, value_name = "NAME")]
        display_name: Option<String>,
        /// The e-mail address
        #[arg(long, value_name = "ADDRESS")]
        email: Option<String>,
        /// Reads their password, one line, from standard input
        #[arg(long, required = true)]
        password_stdin: bool,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Sets somebody's password; their sessions, tokens and links end
    Password {
        /// The username of the person who gets the password.
        username: Username,
        /// Reads the password, one line, from standard input
        #[arg(long, required = true)]
        password_stdin: bool,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Removes a user's second factor, for example when their device is lost
    ResetSecondFactor {
        /// The username of the person who loses the second factor.
        username: Username,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Switches an existing user from a password to single sign-on
    SingleSignOn {
        /// The username here
        username: Username,
        /// What the provider calls them: `sub`, as the audit shows it of a sign-in that was refused
        #[arg(long, required_unless_present = "remove", conflicts_with = "remove")]
        subject: Option<String>,
        /// Ends single sign-on for them; set a password then
        #[arg(long)]
        remove: bool,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Erases the personal data of somebody who may no longer log in; a server takes them out of all that names them
    Erase {
        /// The username of the person to erase, who must be deactivated already.
        username: Username,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Prints a secret that logs a person in once, within a day: open /login#token=<secret> on the server
    Link {
        /// The username of the person whom the link logs in.
        username: Username,
        #[command(flatten)]
        storage: StorageArgs,
    },
}

/// Carries the command out.
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
                Ok(user) => print(&format!("{} may log in, with the roles: {}", user.username, user.roles.join(", "))),
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
            print(&format!("{username} has a new password; what let them in before has ended"));
        }
        UserCommand::ResetSecondFactor { username, storage } => {
            let store = open(&Storage::resolve(&storage)?.0, &clock).await?;
            let removed = auth::reset_second_factor(&store, username.clone()).await;
            store.close().await;
            removed.with_context(|| format!("the second factor of {username}"))?;
            print(&format!("{username} logs in without a second factor"));
        }
        UserCommand::SingleSignOn { username, subject, remove: _, storage } => {
            let (storage, file) = Storage::resolve(&storage)?;
            let account = match subject {
                None => None,
                Some(subject) => {
                    let oidc = file.oidc.context("the settings name no identity provider: add [oidc]")?;
                    Some(ProviderAccount { issuer: oidc.issuer, subject })
                }
            };
            let by = if account.is_some() { "the identity provider" } else { "a password, once it is set" };
            let store = open(&storage, &clock).await?;
            let linked = auth::link_account(&store, username.clone(), account).await;
            store.close().await;
            linked.with_context(|| format!("the account of {username}"))?;
            print(&format!("{username} signs in by {by}; what let them in before has ended"));
        }
        UserCommand::Erase { username, storage } => {
            let store = open(&Storage::resolve(&storage)?.0, &clock).await?;
            let erased = auth::erase_user(&store, username.clone()).await;
            store.close().await;
            let erasure = erased.with_context(|| format!("the personal data of {username}"))?;
            print(&format!("{username} is {} from now on", erasure.username));
            if !erasure.done {
                print("what else names them is erased by a server that runs on this database, within minutes");
            }
            if erasure.archived_runs > 0 {
                print(&format!("{} of their runs are archived: the files still name them", erasure.archived_runs));
            }
        }
        UserCommand::Link { username, storage } => {
            let store = open(&Storage::resolve(&storage)?.0, &clock).await?;
            let known = store.user(&username).await?;
            let link = match known {
                Some(_) => auth::login_link(&store, &clock, username.clone()).await,
                None => bail!("there is nobody named {username}"),
            };
            store.close().await;
            print(&format!("/login#token={}", link?));
        }
    }
    Ok(())
}

/// Opens the database that a server has made. Nobody is added to a new one by mistake.
async fn open(storage: &Storage, clock: &SharedClock) -> anyhow::Result<Store> {
    if !Store::may_exist(&storage.database) {
        bail!("there is no database at {} yet: start a server first, or name its folder with --data", storage.database);
    }
    Ok(app::open_to_write(storage, clock.clone()).await?.0)
}

fn password_of_stdin() -> anyhow::Result<String> {
    let mut password = String::new();
    std::io::stdin().lock().read_line(&mut password).context("the password cannot be read")?;
    Ok(password.trim_end_matches(['\n', '\r']).to_owned())
}
