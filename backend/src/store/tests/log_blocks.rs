//! The blocks that are found are the newest ones that match, in a long log, no matter what is common or rare in which
//! part of it.

use super::support::{Dice, World, on_both};
use crate::store::db::Sql;
use crate::store::log_index::{BLOCK, Block, Sought, Term, in_each, in_spans};
use crate::store::words::Words;

on_both! {
    the_newest_blocks_are_found_wherever_they_are,
}

/// The number of blocks. Most numbers between them have none, as after archiving.
const BLOCKS: usize = 500;
/// The largest distance between two blocks; the log has a hundred thousand block numbers in total.
const APART: usize = 400;

/// A block of the test.
struct Written {
    number: i64,
    /// Terms, each with the rows that have it.
    terms: Vec<(Term, u32)>,
    words: Vec<&'static str>,
}

fn term(kind: &str) -> Term {
    Term::of(Some(kind), None, None).expect("a term")
}

/// Words: one block in so many, within a range of blocks, has this word.
const HAVE: [(usize, usize, usize, &str); 7] = [
    (1, 0, BLOCKS, "common"),
    (5, 0, BLOCKS, "middling"),
    (90, 0, BLOCKS, "rare"),
    (1, 0, BLOCKS / 4, "old"),
    (1, BLOCKS - BLOCKS / 8, BLOCKS, "new"),
    (2, BLOCKS / 3, BLOCKS / 2, "oldish"),
    (1, 3, 4, "once"),
];

fn made(dice: &mut Dice) -> Vec<Written> {
    let mut number = 3000;
    let block = |index: usize| {
        number += 1 + i64::try_from(dice.below(APART)).expect("fits");
        let (mut terms, mut words) = (Vec::new(), Vec::new());
        for (one_in, from, to, name) in HAVE {
            if (from..to).contains(&index) && dice.below(one_in) == 0 {
                let rows = u32::try_from(1 + dice.below(1 << 30)).expect("fits");
                terms.push((term(name), rows));
            }
            if (from..to).contains(&index) && dice.below(one_in) == 0 {
                words.push(name);
            }
        }
        Written { number, terms, words }
    };
    (0..BLOCKS).map(block).collect()
}

async fn write(world: &World, blocks: &[Written]) {
    let mut conn = world.store.inner.db.write_on_this_thread().await.expect("writes");
    for block in blocks {
        let masks =
            block.terms.iter().flat_map(|(term, rows)| [&term.0.to_be_bytes()[..], &rows.to_be_bytes()].concat());
        let tokens = block.terms.iter().map(|(term, _)| term.token());
        let tokens: Vec<_> = tokens.chain(block.words.iter().map(ToString::to_string)).collect();
        conn.put_block(block.number, (0, 0), masks.collect(), &tokens).await.expect("is written");
    }
    conn.commit().await.expect("is written");
}

/// The rule without an index: the rows of a block that may match.
fn rows(block: &Written, terms: &[Term], words: &[&str]) -> Vec<i64> {
    let has = |word: &&str| block.words.iter().any(|of| of.starts_with(*word));
    let of_terms = block.terms.iter().filter(|(term, _)| terms.contains(term));
    let mask = of_terms.fold(if terms.is_empty() { u32::MAX } else { 0 }, |mask, (_, rows)| mask | rows);
    let rows = (0..BLOCK).rev().filter(|row| words.iter().all(has) && mask >> row & 1 == 1);
    rows.map(|row| block.number * BLOCK + row).collect()
}

async fn the_newest_blocks_are_found_wherever_they_are(world: World) {
    let mut dice = Dice(3);
    let blocks = made(&mut dice);
    write(&world, &blocks).await;
    let mut conn = world.store.inner.db.snapshot().await.expect("reads");
    let mut found_some = 0;
    for _ in 0..300 {
        let names = ["common", "middling", "rare", "old", "new", "oldish", "once", "nothing"];
        let (mut terms, mut words) = (Vec::new(), Vec::new());
        for _ in 0..dice.below(3) {
            let name: &&str = dice.of(&names);
            terms.push(term(name));
        }
        for _ in 0..dice.below(3).max(usize::from(terms.is_empty())) {
            words.push(*dice.of(&["common", "mid", "r", "old", "ol", "new", "once", "nothing"]));
        }
        let places = [0, blocks[0].number, blocks[dice.below(BLOCKS)].number, blocks[BLOCKS - 1].number + 5];
        let (one, other) = (*dice.of(&places), *dice.of(&places));
        let (from, to) = (one.min(other), one.max(other));
        let most = *dice.of(&[1, 3, 16, 64, 1000]);
        let fitting = blocks.iter().rev().filter(|block| (from..=to).contains(&block.number));
        let expected = fitting.map(|block| rows(block, &terms, &words)).filter(|rows| !rows.is_empty()).take(most);
        let expected: Vec<_> = expected.collect();
        let sought = Sought { terms: terms.clone(), words: Words::of(Some(&words.join(" "))) };
        let found = conn.blocks(&sought, from, to, i64::try_from(most).expect("fits")).await.expect("reads");
        let found: Vec<Vec<i64>> = found.iter().map(|block: &Block| block.rows().collect()).collect();
        assert_eq!(found, expected, "{words:?} and {sought:?} from {from} to {to}, {most} at most");
        found_some += usize::from(!found.is_empty());
    }
    assert!(found_some > 60, "{found_some}");
}

/// PostgreSQL finds the newest blocks by their key, and others by the searched terms and their span.
#[tokio::test]
async fn postgres_finds_blocks_by_their_key_and_by_their_span() {
    let Some(world) = World::postgres().await else { return };
    let mut conn = world.store.inner.db.write_on_this_thread().await.expect("reads");
    // Without this, PostgreSQL would read the empty table directly.
    conn.execute(Sql::new("SET LOCAL enable_seqscan = off")).await.expect("is set");
    for (sql, of_key) in [(in_each("'word'", (0, 5000), 3), true), (in_spans("'word'", (0, 5000), 3), false)] {
        let plan = conn.fetch(sql.around("EXPLAIN ")).await.expect("explains");
        let plan: Vec<String> = plan.iter().map(|row| row.text(0).expect("text")).collect();
        let has = |part: &str| plan.iter().any(|line| line.contains(part));
        assert_eq!(has("log_blocks_pkey"), of_key, "{plan:#?}");
        assert_eq!(has("log_blocks_terms"), !of_key, "{plan:#?}");
        let both =
            plan.iter().any(|line| line.contains("Index Cond: ((terms @@ ") && line.contains("ARRAY[(block / 1024)]"));
        assert_eq!(both, !of_key, "{plan:#?}");
    }
}
