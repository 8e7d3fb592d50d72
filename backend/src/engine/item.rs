//! The items of maps: which item of which map a visit belongs to. The visit of the mapped node identifies an item: the
//! visits of a map are consecutive.

use serde_json::Value;
use shared::id::NodeId;
use shared::run::Step;

use super::phase::Phase;
use super::state::RunState;
use crate::flow::Compiled;

/// Which item of which map a step is.
#[derive(Debug, Clone, Copy)]
pub(super) struct MapItem {
    /// The map's branch.
    pub map: u32,
    /// Its place in the list, from 0.
    pub index: u32,
    /// How many there are.
    pub of: u32,
}

/// Which item a step is, where it is one.
pub(super) fn part_of(flow: &Compiled, state: &RunState, step: &Step) -> Option<MapItem> {
    part(flow, state, &step.node, step.visit).map(|(part, _)| part)
}

/// The same as people are told; else which item the call is that led to the flow that the step is in.
pub(super) fn part_around(flow: &Compiled, state: &RunState, node: &NodeId, visit: u32) -> Option<shared::run::Part> {
    let mut calls = std::iter::successors(Some((node.clone(), visit)), |(node, _)| node.caller());
    calls.find_map(|(at, visit)| {
        let (part, _) = part(flow, state, &at, visit)?;
        Some(shared::run::Part { number: part.index + 1, of: part.of, inside: at != *node })
    })
}

/// The item of a visit of a mapped node, with the name under which it is seen.
pub(super) fn item<'s>(
    flow: &'s Compiled,
    state: &'s RunState,
    node: &NodeId,
    visit: u32,
) -> Option<(&'s str, &'s Value)> {
    let (_, item) = part(flow, state, node, visit)?;
    Some((flow.map_of(node)?.1.r#as.as_str(), item))
}

fn part<'s>(flow: &Compiled, state: &'s RunState, node: &NodeId, visit: u32) -> Option<(MapItem, &'s Value)> {
    let (map, _) = flow.map_of(node)?;
    state.branches.iter().find_map(|(number, branch)| match &branch.phase {
        Phase::Map { first, items, .. } if branch.node == map => {
            let index = visit.checked_sub(*first)?;
            let item = items.get(usize::try_from(index).ok()?)?;
            let of = u32::try_from(items.len()).unwrap_or(u32::MAX);
            Some((MapItem { map: *number, index, of }, item))
        }
        _ => None,
    })
}
