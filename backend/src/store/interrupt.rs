//! Ends reads from SQLite whose caller no longer waits, such as those of a dropped request: a long one would keep its
//! thread and its connection from others.

use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::{Connection, InterruptHandle};

use super::driver_error::DriverError;

/// What a caller shares with the thread that reads for it. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Interrupt(Arc<Mutex<ReadState>>);

#[derive(Default)]
struct ReadState {
    /// Whether the caller has left.
    is_over: bool,
    /// Set while a statement runs.
    statement: Option<InterruptHandle>,
}

/// A caller that waits. When it is dropped, the statement that runs for it is interrupted, and no other begins.
pub(super) struct Caller(Interrupt);

impl Interrupt {
    /// Returns what the caller has to hold while it waits.
    pub fn caller(&self) -> Caller {
        Caller(self.clone())
    }

    /// Runs statements, unless the caller has left.
    pub fn run<T>(
        &self,
        conn: &Connection,
        statements: impl FnOnce(&Connection) -> Result<T, DriverError>,
    ) -> Result<T, DriverError> {
        {
            let mut reading = self.0.lock();
            if reading.is_over {
                return Err(DriverError::Interrupted);
            }
            reading.statement = Some(conn.get_interrupt_handle());
        }
        let result = statements(conn);
        // Later statements of the connection may belong to another caller.
        self.0.lock().statement = None;
        result
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        let mut reading = self.0.0.lock();
        reading.is_over = true;
        if let Some(statement) = &reading.statement {
            statement.interrupt();
        }
    }
}
