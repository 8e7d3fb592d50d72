//! Checks for branches that would overwrite each other. A key may be written in only one of two branches that can run
//! at the same time (see [`crate::flow::parallel`]), and only one of them may write any key.

use std::collections::{BTreeSet, HashMap};

use shared::id::NodeId;

use super::Checker;
use crate::flow::keys::{ANY, writes};
use crate::flow::parallel::Branches;

pub fn check(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    let ids: Vec<&NodeId> = flow.nodes.keys().collect();
    let writes = by_several(flow.nodes.iter().map(|(id, node)| writes(flow, id, node)).collect());
    if writes.iter().all(Vec::is_empty) {
        return;
    }
    let mut noted = BTreeSet::new();
    Branches::of(flow).pairs(&mut |fork, pair| {
        let mut writers: HashMap<&str, Vec<usize>> = HashMap::new();
        for at in pair.left() {
            for (_, key) in &writes[at] {
                writers.entry(key).or_default().push(at);
            }
        }
        for other in pair.right() {
            for (path, key) in &writes[other] {
                let writers = writers.get(key.as_str()).into_iter().flatten().copied();
                for one in writers.filter(|one| pair.are_together(*one, other)) {
                    if noted.insert((one.min(other), one.max(other), key)) {
                        let together = format!(
                            "`{}` and `{}` can run at the same time after `{}`",
                            ids[one], ids[other], ids[fork]
                        );
                        let message = if key == ANY {
                            format!(
                                "{together}, and both may write any key; list the keys of one of them in `write_keys`"
                            )
                        } else {
                            format!("{together}, and both write `{key}`; give one of them another key in `write_keys`")
                        };
                        checker.invalid(path, message);
                    }
                }
            }
        }
    });
}

/// Removes keys that only one node writes.
fn by_several(mut writes: Vec<Vec<(String, String)>>) -> Vec<Vec<(String, String)>> {
    let mut writers: HashMap<String, usize> = HashMap::new();
    for (_, key) in writes.iter().flatten() {
        *writers.entry(key.clone()).or_default() += 1;
    }
    for writes in &mut writes {
        writes.retain(|(_, key)| writers[key] > 1);
    }
    writes
}
