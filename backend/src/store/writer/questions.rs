//! Questions without a flow: the number of pending ones, and the runs that carry them.

use std::collections::BTreeSet;
use std::sync::Arc;

use shared::access::{Act, Principal};
use shared::id::RunId;

use super::super::db::{Conn, Sql};
use super::super::{Change, CommitError, Committed, Error, Inner, Operation, queue};
use super::group::{ChangeResult, Group};
use super::rights::allow;
use crate::clock::Moment;
use crate::engine::{Carrier, RunState};

/// The largest number of pending questions of one kind by one person or program.
const MOST_PENDING: u64 = 100;

impl Group {
    /// Reads how many questions are pending of the people who ask another one.
    pub async fn load_open_questions(&mut self, conn: &mut Conn, changes: &[Change]) -> Result<(), Error> {
        let mut keys = BTreeSet::new();
        for change in changes {
            if let (Operation::Ask { question, .. }, Some(actor)) = (&change.operation, &change.by) {
                keys.insert(queue::question(question.kind, &actor.principal.username));
                let flow = Arc::clone(&question.flow);
                self.compiled.insert((flow.flow.id.clone(), flow.version), flow);
            }
        }
        let sql = Sql::new("SELECT question, COUNT(*) FROM queue WHERE question").among(&keys);
        for row in conn.fetch(sql.push(" GROUP BY question")).await? {
            self.asked.insert(row.text(0)?, u64::try_from(row.int(1)?).unwrap_or(0));
        }
        Ok(())
    }

    /// Prepares the flow of a run that carries a question. Returns `false` if the run carries none.
    pub fn load_carrier(&mut self, inner: &Inner, run: &RunState) -> bool {
        if run.shown_id().is_some() {
            return false;
        }
        let key = (run.flow.clone(), run.version);
        match inner.carrier_flow(run) {
            Ok(flow) => {
                self.compiled.insert(key, flow);
            }
            Err(why) => {
                self.unreadable.insert(key, why);
            }
        }
        true
    }

    pub fn ask(&mut self, by: Option<&Principal>, run: RunId, question: &Carrier, moment: Moment) -> ChangeResult {
        let by = by.ok_or(CommitError::Unauthenticated)?;
        allow(Some(by), Act::Ask)?;
        let key = queue::question(question.kind, &by.username);
        let waiting = self.asked.get(&key).copied().unwrap_or(0);
        if waiting >= MOST_PENDING {
            let kind = question.kind.as_str();
            return Err(CommitError::TooManyPending(format!(
                "`{}` already has {waiting} pending questions of the kind `{kind}`, which is the limit: wait for an \
                 answer, or withdraw one",
                by.username
            )));
        }
        let Carrier { flow, input, context, .. } = question;
        self.begin(by, run, flow, input.clone(), context.clone(), moment)?;
        self.asked.insert(key, waiting + 1);
        let reviews = self.runs.get(&run).and_then(|work| work.snapshot.as_ref()).map(|snapshot| &snapshot.reviews);
        let review = reviews.and_then(|reviews| reviews.values().next()).ok_or(CommitError::NotFound)?;
        Ok(Committed::Review { review: Box::new(review.clone().seen_by(Some(&by.username))) })
    }
}
