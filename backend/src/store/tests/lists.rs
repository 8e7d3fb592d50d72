//! A list in a statement may have any length, although SQLite takes 32,766 arguments and PostgreSQL 65,535.

use uuid::Uuid;

use super::support::{World, on_both};
use crate::store::db::{Arg, Row, Sql};

on_both! {
    a_list_of_any_length_has_its_values_and_no_others,
    rows_are_found_among_very_many_ids,
}

/// Makes a value of a number.
type ToArg = fn(u32) -> Arg;

/// More values than either database takes as arguments of their own.
const MANY: u32 = 70_000;

async fn a_list_of_any_length_has_its_values_and_no_others(world: World) {
    let kinds: [(&str, ToArg); 4] = [
        ("BIGINT", |number| number.into()),
        ("TEXT", |number| format!("número '{number}'").into()),
        ("BYTEA", |number| Arg::Blob(Some(number.to_be_bytes().to_vec()))),
        ("UUID", |number| Uuid::from_u128(number.into()).into()),
    ];
    let mut conn = world.store.inner.db.read().await.expect("reads");
    for (name, kind) in kinds {
        // PostgreSQL does not infer the type of an argument that stands alone.
        let cast = if conn.is_postgres() { format!(" AS {name})") } else { ")".to_owned() };
        let begin = if conn.is_postgres() { "SELECT 1 WHERE CAST(" } else { "SELECT 1 WHERE (" };
        for count in [1, 4_096, 4_097, MANY] {
            // The first and the last of the list, and one that is not in it.
            for (number, is_in) in [(0, true), (count - 1, true), (count, false)] {
                for compared in ["", " NOT"] {
                    let sql = Sql::new(begin).bind(kind(number)).push(&cast).push(compared);
                    let sql = sql.among((0..count).map(kind)).push(" AND 1 = ").bind(1_i64);
                    let found = !conn.fetch(sql).await.expect("reads").is_empty();
                    assert_eq!(found, is_in == compared.is_empty(), "{name} {number}{compared} among {count}");
                }
            }
        }
    }
}

async fn rows_are_found_among_very_many_ids(world: World) {
    let review = world.launched_review("hello").await;
    world.launch("hello").await;
    let ids = (1..=MANY).map(|number| Uuid::from_u128(number.into())).chain([review.id.0]);
    let sql = Sql::new("SELECT v.id FROM reviews v WHERE v.id").among(ids);
    let mut conn = world.store.inner.db.read().await.expect("reads");
    assert_eq!(conn.all(sql.clone(), Row::uuid).await.expect("reads"), [review.id.0]);
    if !conn.is_postgres() {
        let plan = conn.all(sql.around("EXPLAIN QUERY PLAN "), |row, _| row.text(3)).await.expect("explains");
        assert!(plan.iter().any(|line| line.starts_with("SEARCH v ")), "{plan:#?}");
    }
}
