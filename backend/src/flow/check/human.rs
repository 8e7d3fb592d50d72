//! Checks human nodes: the question, the options, and the source of a correction.

use std::collections::BTreeSet;

use shared::definition::{ChoiceKind, Human, OnTimeout, as_read};
use shared::error::pointer;
use shared::id::NodeId;

use super::{Checker, handlers, policy, stakes, timers};
use crate::flow::reachability::nearest_sources;

pub fn check(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    for (id, human) in flow.humans() {
        let base = format!("{}/human", pointer(["nodes", id.as_str()]));
        question(checker, &base, human);
        options(checker, &base, human);
        alternatives(checker, &base, human);
        correction(checker, &base, id, human);
        timers::of_human(checker, &base, id, human);
        handlers::of_human(checker, &base, human);
        policy::check(checker, &base, id, human);
    }
}

fn question(checker: &mut Checker<'_>, base: &str, human: &Human) {
    if human.prompt.as_ref().is_none_or(|prompt| prompt.trim().is_empty()) {
        match human.prompt_key {
            Some(_) => checker.warn(base, "without `prompt` there is no question if `prompt_key` is not set"),
            None => checker.invalid(base, "`prompt` is missing: write what the person is asked"),
        }
    }
    let edited = human.edit_keys.iter().enumerate().map(|(index, edit)| ("edit_keys", index, &edit.key));
    let reviewed = human.review_keys.iter().enumerate().map(|(index, review)| ("review_keys", index, &review.key));
    let mut keys = BTreeSet::new();
    for (list, index, key) in edited.chain(reviewed) {
        if !keys.insert((list, key)) {
            checker.invalid(&format!("{base}/{list}/{index}"), format!("`{key}` is listed twice"));
        }
    }
}

fn options(checker: &mut Checker<'_>, base: &str, human: &Human) {
    if human.options_key.is_some() && !human.options.is_empty() {
        checker.invalid(&format!("{base}/options_key"), "a node has `options` or `options_key`; remove one of them");
    }
    if human.allow_free_text.is_some() && !human.has_options() {
        let message = "without options, free text is the only answer; leave this out";
        checker.invalid(&format!("{base}/allow_free_text"), message);
    }
    let (mut ids, mut labels) = (BTreeSet::new(), BTreeSet::new());
    for (index, option) in human.options.iter().enumerate() {
        let path = format!("{base}/options/{index}");
        if option.id.trim().is_empty() {
            checker.invalid(&format!("{path}/id"), "an option needs an id");
        } else if !ids.insert(&option.id) {
            checker.invalid(&format!("{path}/id"), format!("there are two options `{}`; ids must differ", option.id));
        }
        if option.label.trim().is_empty() {
            checker.invalid(&format!("{path}/label"), "an option needs a label: people read it");
        } else if !labels.insert(as_read(&option.text())) {
            let message = format!("two options read `{}`: people could not tell them apart", option.label);
            checker.invalid(&format!("{path}/label"), message);
        }
    }
    if human.on_reject.is_some() && human.has_options() && !human.may_offer(ChoiceKind::Stop) && !timer_stops(human) {
        checker.warn(&format!("{base}/on_reject"), "nothing rejects here: there is no option of kind `stop`");
    }
}

/// Checks the alternatives; those with an id are offered together with the options.
fn alternatives(checker: &mut Checker<'_>, base: &str, human: &Human) {
    stakes::alternatives(checker, base, &human.alternatives, &human.options);
    if !human.has_options() {
        let why = "without `options`, free text is the answer, and nothing else can be chosen";
        stakes::only_sentences(checker, base, &human.alternatives, why);
    } else if !human.policy.is_first() {
        let why = "if several people decide, a vote for it would count as an approval";
        stakes::only_sentences(checker, base, &human.alternatives, why);
    } else if human.alternatives.iter().any(|alternative| alternative.choice().is_some()) && !is_read(checker) {
        let message = "whichever is chosen, the run continues as after an approval: let a condition or a template \
                       use `decision.alternative`";
        checker.warn(&format!("{base}/alternatives"), message);
    }
}

/// Whether any expression of the flow reads which alternative was chosen.
fn is_read(checker: &Checker<'_>) -> bool {
    serde_json::to_string(checker.flow)
        .is_ok_and(|flow| flow.contains(".alternative") || flow.contains("decision.option"))
}

fn timer_stops(human: &Human) -> bool {
    human.on_timeout.as_ref().map(OnTimeout::last) == Some(&OnTimeout::Reject)
}

fn correction(checker: &mut Checker<'_>, base: &str, id: &NodeId, human: &Human) {
    if let Some(named) = &human.corrects {
        let path = format!("{base}/corrects");
        if !human.has_options() {
            checker.invalid(&path, "without options, free text is the answer, and corrects nothing");
        }
        // Unknown nodes are reported by `names`.
        if let Some(node) = checker.flow.nodes.get(named)
            && !node.kind.is_source()
        {
            let message = format!(
                "`{named}` is a {} node, which cannot be corrected; name an agent or tool node",
                node.kind.as_str()
            );
            checker.invalid(&path, message);
        }
        return;
    }
    if !human.has_options() || !checker.nodes_whole || checker.reachability.source_of(id).is_some() {
        return;
    }
    let sources: Vec<_> = nearest_sources(checker.flow, id).iter().map(|source| format!("`{source}`")).collect();
    let why = if sources.is_empty() {
        "no earlier step made anything".to_owned()
    } else {
        format!("several steps lead here ({}); name one in `corrects`", sources.join(", "))
    };
    let mut found = false;
    for (index, option) in human.options.iter().enumerate() {
        if option.kind == ChoiceKind::Correct {
            found = true;
            let path = format!("{base}/options/{index}/kind");
            checker.invalid(&path, format!("there is no step for a correction to run again: {why}"));
        }
    }
    if !found && !sources.is_empty() {
        checker.warn(base, format!("free text will not be offered: {why}"));
    }
}
