//! The script of pgbench: what the server sends to PostgreSQL for a group of cycles. The transactions are those of
//! `backend/src/store/writer`, in its order: what `load` and `load_runs` read, the batch of `write`, and the rows of the
//! log. `Pgbench::check_writes` fails if the server writes other rows.
//!
//! pgbench cannot send arrays of ids, so the statements compute them. It sends everything else, once for each row.

use std::fmt::Write as _;

/// The largest group: that of the server. pgbench passes at most 255 arguments to a statement.
pub const LARGEST_GROUP: usize = 32;

/// The ids of the runs of a group are `:first` and the numbers that follow.
const FIRST: &str = "\\set n :n + 1\n\\set first (:n * :clients + :client_id) * :group\n";

/// The end of the time for a review without a deadline.
const NO_DEADLINE: &str = "253402300799999999::bigint";

/// The columns of rows that the server writes for a run, with their variables: `:asked_state` while the run waits, and
/// `:decided_state` once it is decided.
const COLUMNS: [&str; 5] = ["state", "steps", "body", "search", "facts"];

/// Returns the script for groups of this many cycles: one transaction launches all runs, each run's reviews are read by
/// themselves, and one transaction decides all reviews.
pub fn of_group(group: usize) -> String {
    let mut script = FIRST.to_owned();
    script.push_str(&begin(group));
    script.push_str(CREDENTIAL);
    script.push_str(&runs_and_reviews(group));
    script.push_str("SELECT version FROM flows WHERE id = 'ask' ORDER BY version DESC LIMIT 1;\n");
    script.push_str(&launches(group));
    script.push_str(&log(group, "asked"));
    script.push_str("COMMIT;\n");
    for number in 0..group {
        script.push_str(&reviews_of_run(number));
    }
    script.push_str(&runs_of_reviews(group));
    script.push_str(&begin(group));
    script.push_str(CREDENTIAL);
    script.push_str(&runs_and_reviews(group));
    script.push_str(&decisions(group));
    script.push_str(&log(group, "decided"));
    script.push_str("COMMIT;\n");
    script
}

/// Begins a transaction with the locks of its person, its credential and its runs, in one round trip.
fn begin(group: usize) -> String {
    let runs = list(group, |number| format!("pg_advisory_xact_lock(:first::bigint + {number})"));
    format!(
        "\\startpipeline\nBEGIN ISOLATION LEVEL READ COMMITTED;\n\
         SELECT pg_advisory_xact_lock_shared(1), pg_advisory_xact_lock_shared(2), {runs};\n\\endpipeline\n"
    )
}

/// Reads the credential of the callers, with its person.
const CREDENTIAL: &str = "SELECT c.digest, c.kind, c.id, c.name, c.username, c.roles, c.created_at, c.expires_at, \
                          c.last_used_at, c.client, c.confirmed_at, u.username, u.display_name, u.email, u.roles, \
                          u.active, u.password_hash, u.created_at, u.deputyships, u.second_factor, \
                          u.provider_account, u.signed_in_at \
                          FROM credentials c JOIN users u ON u.username = c.username \
                          WHERE c.digest IN (:digest::bytea);\n";

/// The columns of a review for the case that its body cannot be read.
const REVIEW: &str = "r.id, r.flow, r.status, r.requested_by, r.created_at, r.kind, r.severity, r.due";

/// Reads which runs the reviews of a group belong to, before the transaction that locks these runs.
fn runs_of_reviews(group: usize) -> String {
    format!("SELECT id, run_id FROM reviews WHERE id IN ({});\n", list(group, review))
}

/// Reads the runs of a group, and their pending reviews.
fn runs_and_reviews(group: usize) -> String {
    let runs = list(group, run);
    format!(
        "SELECT id, state, NULL, steps, status, NULL, NULL, NULL, NULL, NULL FROM runs WHERE id IN ({runs}) \
         UNION ALL SELECT r.run_id, r.body, {REVIEW} FROM reviews r WHERE r.run_id IN ({runs}) \
         AND r.status = 'pending';\n"
    )
}

/// Reads the reviews of a run as a page.
fn reviews_of_run(number: usize) -> String {
    let (run, review) = (run(number), review(number));
    format!(
        "SELECT r.id, r.created_at FROM reviews r WHERE r.run_id = {run} AND r.flow IS NOT NULL \
         AND EXISTS (SELECT 1 FROM runs WHERE id = r.run_id) ORDER BY r.created_at + 0 DESC, r.id DESC LIMIT 51;\n\
         SELECT r.run_id, r.body, {REVIEW} FROM reviews r WHERE r.id IN ({review});\n"
    )
}

fn launches(group: usize) -> String {
    let writes = [
        upsert_runs("waiting_for_human"),
        "INSERT INTO runs_by_status (status, created_at, id) SELECT 'waiting_for_human', made, run FROM sent"
            .to_owned(),
        upsert_reviews("pending"),
        "INSERT INTO classes (class, outline) SELECT :class::uuid, :outline::text ON CONFLICT (class) DO NOTHING"
            .to_owned(),
        format!(
            "INSERT INTO queue (due, severity_rank, created_at, id, class, claimed_until, question) \
             SELECT {NO_DEADLINE}, 2, made, review, :class::uuid, 0, NULL FROM sent \
             ON CONFLICT (due, severity_rank, created_at, id) \
             DO UPDATE SET class = excluded.class, claimed_until = excluded.claimed_until"
        ),
        audience("asked"),
    ];
    batch(group, "asked", &writes)
}

fn decisions(group: usize) -> String {
    let writes = [
        upsert_runs("completed"),
        "DELETE FROM runs_by_status WHERE (status, created_at, id) \
         IN (SELECT 'waiting_for_human'::text, made, run FROM sent)"
            .to_owned(),
        upsert_reviews("resolved"),
        format!(
            "DELETE FROM queue WHERE (due, severity_rank, created_at, id) \
             IN (SELECT {NO_DEADLINE}, 2::bigint, made, review FROM sent)"
        ),
        audience("decided"),
    ];
    batch(group, "decided", &writes)
}

fn upsert_runs(status: &str) -> String {
    format!(
        "INSERT INTO runs (id, flow, status, requested_by, created_at, format, state, carries_question, steps) \
         SELECT run, 'ask', '{status}', 'admin', made, 1, state, 0, steps FROM sent \
         ON CONFLICT (id) DO UPDATE SET status = excluded.status, format = excluded.format, state = excluded.state, \
         steps = COALESCE(excluded.steps, runs.steps)"
    )
}

fn upsert_reviews(status: &str) -> String {
    format!(
        "INSERT INTO reviews (id, run_id, status, kind, severity, flow, requested_by, not_requester, created_at, \
         search, body, facts, tags, due, severity_rank, irreversible, claimed_until, comments) \
         SELECT review, run, '{status}', 'approval', 'medium', 'ask', 'admin', 0, made, search, body, facts, NULL, \
         {NO_DEADLINE}, 2, 0, 0, 0 FROM sent \
         ON CONFLICT (id) DO UPDATE SET status = excluded.status, search = excluded.search, body = excluded.body, \
         facts = excluded.facts, tags = excluded.tags, due = excluded.due, claimed_until = excluded.claimed_until, \
         comments = excluded.comments"
    )
}

/// Inserts the subjects that a review gets when it is asked or decided.
fn audience(when: &str) -> String {
    format!(
        "INSERT INTO review_audience (subject, created_at, review_id) SELECT subject, made, review \
         FROM sent CROSS JOIN unnest(:{when}_subjects::text[]) AS subject ON CONFLICT DO NOTHING"
    )
}

/// Writes to several tables, and draws the numbers of the log rows, in one statement.
fn batch(group: usize, when: &str, writes: &[String]) -> String {
    let mut sql = format!("WITH sent AS ({})", sent(group, when, &COLUMNS));
    let mut count = format!("{group}::bigint");
    for (part, write) in writes.iter().enumerate() {
        let _ = write!(sql, ", w{part} AS ({write} RETURNING 1)");
        let _ = write!(count, " + 0 * (SELECT COUNT(*) FROM w{part})");
    }
    // The group holds the lock of the log, so its numbers follow one another.
    format!("{sql} SELECT MIN(n) AS seq FROM log_numbers({count}) AS n \\gset\n")
}

/// Inserts a row of the log for each run.
fn log(group: usize, when: &str) -> String {
    let sent = sent(group, when, &["log"]);
    format!(
        "INSERT INTO log (seq, commit_id, at, run_id, body, mac) OVERRIDING SYSTEM VALUE \
         SELECT :seq::bigint + number, md5('{when}' || :first::text)::uuid, made, run, log, \
         decode(repeat('00', 40), 'hex') FROM ({sent}) AS sent;\n"
    )
}

/// The rows of a group: the number of each in the group, its time and ids, and the columns that pgbench sends for it.
fn sent(group: usize, when: &str, columns: &[&str]) -> String {
    let arrays = columns.iter().map(|column| {
        let values = list(group, |_| format!(":{when}_{column}"));
        format!("ARRAY[{values}]::text[]")
    });
    let (arrays, columns) = (arrays.collect::<Vec<_>>().join(", "), columns.join(", "));
    let (run, review) = (id("0", "place - 1"), id("1", "place - 1"));
    format!(
        "SELECT place - 1 AS number, :first::bigint + place - 1 AS made, {run} AS run, {review} AS review, \
         {columns} FROM unnest({arrays}) WITH ORDINALITY AS given({columns}, place)"
    )
}

/// The id of a run of the group.
fn run(number: usize) -> String {
    id("0", &number.to_string())
}

/// The id of a run's review.
fn review(number: usize) -> String {
    id("1", &number.to_string())
}

/// An id that begins with this digit. Ids rise with time, like those of the server.
fn id(digit: &str, number: &str) -> String {
    format!("('{digit}' || lpad(to_hex(:first::bigint + {number}), 31, '0'))::uuid")
}

fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_statement_has_more_arguments_than_pgbench_passes() {
        for statement in of_group(LARGEST_GROUP).lines() {
            let arguments = statement.replace("::", "").matches(':').count();
            assert!(arguments <= 255, "{arguments} arguments: {statement}");
        }
    }
}
