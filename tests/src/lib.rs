//! The harness: it boots the real server with a real database, and drives it as its clients do.
//!
//! What a test starts ends with it, even if the test fails: every process has its own process group, which is killed
//! when its handle is dropped. Settings, all optional:
//!
//! | variable | meaning |
//! |---|---|
//! | `COUNTERSIGN_BIN` | the server's binary; default: the one in the target folder |
//! | `COUNTERSIGN_TEST_POSTGRES` | URL of a PostgreSQL, without a database; default: each test starts a cluster |
//! | `COUNTERSIGN_TEST_POSTGRES_BINARIES` | the folder of PostgreSQL's programs; default: `PATH`, then Debian's newest |
//! | `COUNTERSIGN_TEST_FULL` | selects the larger of the two defaults below; `cargo xtask test --full` sets it |
//! | `COUNTERSIGN_TEST_ROUNDS` | the number of rounds of each race; default 20, or 100 |
//! | `COUNTERSIGN_TEST_KILLS` | how often the server is killed under load; default 10, or 50 |
//! | `COUNTERSIGN_TEST_ENTRIES` | the number of entries that a reconnecting socket receives; default 2,000, or 10,000 |
//! | `COUNTERSIGN_TEST_SECONDS` | for how many seconds three servers are disturbed under load; default 15, or 45 |
//! | `COUNTERSIGN_TEST_PICTURES` | a folder for screenshots of pages, at every width, light and dark; default: none |
//! | `COUNTERSIGN_TEST_SEED` | the seed of random choices; default 1 |

pub mod browser;
pub mod caller;
pub mod device;
pub mod flows;
pub mod held;
pub mod identity_provider;
pub mod locator;
pub mod log;
pub mod pages;
pub mod port;
pub mod postgres;
pub mod process;
pub mod proxy;
pub mod recorder;
pub mod reviewing;
pub mod server;
pub mod settings;
pub mod socket;
pub mod totp;
pub mod transport;
pub mod visitor;
pub mod wait;

pub use browser::{Browser, BrowserResult};
pub use device::Breach;
pub use identity_provider::{Fault, IdentityProvider, Person};
pub use port::Port;
pub use proxy::Proxy;
pub use recorder::Recorder;
pub use server::{Database, Options, PASSWORD, Server, binary};
pub use socket::Socket;
pub use transport::{Api, HttpTransport};
pub use visitor::Visitor;
pub use wait::{DEADLINE, eventually};

/// Makes two tests of each function `async fn promise(database: Database)`: one on SQLite, one on PostgreSQL.
#[macro_export]
macro_rules! on_both {
    ($($promise:ident),+ $(,)?) => {$(
        mod $promise {
            #[tokio::test(flavor = "multi_thread")]
            async fn on_sqlite() {
                super::$promise($crate::Database::Sqlite).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn on_postgres() {
                super::$promise($crate::Database::Postgres).await;
            }
        }
    )+};
}
