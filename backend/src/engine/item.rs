//! The items of maps: which item of which map a visit belongs to. The visit of the mapped node identifies an item: the
//! visits of a map are consecutive.

use serde_json::Value;
use shared::id::NodeId;
use shared::run::Step;

use super::phase::Phase;
use super::state::RunState;
use crate::flow::Compiled;

/// The place of an item in its map.
#[derive(Debug, Clone, Copy)]
pub(super) struct MapItem {
    /// The number of the map's branch.
    pub map: u32,
    /// The index of the item in the list, from 0.
    pub index: u32,
    /// The number of items in the list.
    pub of: u32,
}

/// Returns the map item that a step is; `None` if it is none.
pub(super) fn map_item(flow: &Compiled, state: &RunState, step: &Step) -> Option<MapItem> {
    part(flow, state, &step.node, step.visit).map(|(part, _)| part)
}

/// Returns the map item of a visit as people are told it, counted from 1. If the visit is none, it is the item of the
/// innermost call that led to the flow of the visit.
pub(super) fn part_around(flow: &Compiled, state: &RunState, node: &NodeId, visit: u32) -> Option<shared::run::Part> {
    let mut calls = std::iter::successors(Some((node.clone(), visit)), |(node, _)| node.caller());
    calls.find_map(|(at, visit)| {
        let (part, _) = part(flow, state, &at, visit)?;
        Some(shared::run::Part { number: part.index + 1, of: part.of, inside: at != *node })
    })
}

/// Returns the value of the item in a visit of a mapped node, with the name under which templates see it.
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
