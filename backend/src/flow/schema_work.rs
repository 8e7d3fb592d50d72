//! How often a JSON Schema may check a value. With references, a short schema can check one value more often than any
//! computer can handle: a chain of 30 definitions that each name the previous one twice checks it a billion times.

use std::collections::HashMap;

use serde_json::Value;

use crate::limits::MAX_DEPTH;

/// The maximum number of subschemas that apply to one value.
const MAX_PASSES: usize = 100_000;

/// Keywords whose schemas apply to the same value: with a list of schemas, a map of them, or one.
const LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];
const SINGLE: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords that refer to another schema, for the same value.
pub(super) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Returns the maximum number of subschemas that apply to any one value, at any depth. Fails if a reference is not
/// valid. Recurses as deep as the schema is nested.
pub(super) fn passes(schema: &Value) -> Result<usize, String> {
    let mut graph = SchemaGraph { root: schema, nodes: Vec::new(), known: HashMap::new() };
    let root = graph.add(schema)?;
    let order = graph.in_order()?;
    let mut most = 0;
    let mut above = vec![0; graph.nodes.len()];
    for depth in 0..=MAX_DEPTH {
        let mut here = vec![0_usize; graph.nodes.len()];
        for index in &order {
            let node = &graph.nodes[*index];
            let same = node.same.iter().fold(usize::from(depth == 0), |sum, of| sum.saturating_add(here[*of]));
            here[*index] = same.saturating_add(if depth == 0 { 0 } else { node.parts(&above) });
        }
        most = most.max(here[root]);
        above = here;
    }
    if most > MAX_PASSES {
        return Err(format!("its references check a single value more than {MAX_PASSES} times"));
    }
    Ok(most)
}

/// A subschema, with the indices of the subschemas that it applies.
#[derive(Default)]
struct SchemaNode {
    /// Subschemas for the same value.
    same: Vec<usize>,
    /// Subschemas of which at most one applies to a member of an object: the one for its name, or the one for all other
    /// names.
    members: Vec<usize>,
    /// Subschemas that may all apply to a member of an object.
    any_member: Vec<usize>,
    /// Subschemas of which at most one applies to an item of a list.
    items: Vec<usize>,
    /// Subschemas that may all apply to an item of a list.
    any_item: Vec<usize>,
}

impl SchemaNode {
    /// Returns the maximum number of subschemas that apply to a part of the value. `above` has the number for each
    /// subschema.
    fn parts(&self, above: &[usize]) -> usize {
        let most = |of: &[usize]| of.iter().map(|index| above[*index]).max().unwrap_or(0);
        let all = |of: &[usize]| of.iter().fold(0_usize, |sum, index| sum.saturating_add(above[*index]));
        let member = most(&self.members).saturating_add(all(&self.any_member));
        let item = most(&self.items).saturating_add(all(&self.any_item));
        member.max(item)
    }
}

struct SchemaGraph<'a> {
    root: &'a Value,
    nodes: Vec<SchemaNode>,
    /// The indices of subschemas, by their addresses in memory.
    known: HashMap<*const Value, usize>,
}

impl<'a> SchemaGraph<'a> {
    /// Adds a subschema and all that it refers to. Returns its index.
    fn add(&mut self, schema: &'a Value) -> Result<usize, String> {
        if let Some(known) = self.known.get(&std::ptr::from_ref(schema)) {
            return Ok(*known);
        }
        let index = self.nodes.len();
        self.nodes.push(SchemaNode::default());
        self.known.insert(std::ptr::from_ref(schema), index);
        let Some(members) = schema.as_object() else { return Ok(index) };
        let mut node = SchemaNode::default();
        for (keyword, value) in members {
            let listed = || value.as_array().into_iter().flatten();
            let mapped = || value.as_object().into_iter().flat_map(|map| map.values());
            match keyword.as_str() {
                of if LISTS.contains(&of) => self.add_all(&mut node.same, listed())?,
                // The value of a dependency may also be a list of names.
                of if MAPS.contains(&of) => self.add_all(&mut node.same, mapped().filter(|one| !one.is_array()))?,
                of if SINGLE.contains(&of) => self.add_all(&mut node.same, [value])?,
                of if REFERENCES.contains(&of) => {
                    let target = self.target(value.as_str().unwrap_or_default())?;
                    self.add_all(&mut node.same, [target])?;
                }
                "properties" => self.add_all(&mut node.members, mapped())?,
                "additionalProperties" => self.add_all(&mut node.members, [value])?,
                "patternProperties" => self.add_all(&mut node.any_member, mapped())?,
                "unevaluatedProperties" | "propertyNames" => self.add_all(&mut node.any_member, [value])?,
                "items" if value.is_array() => self.add_all(&mut node.items, listed())?,
                "prefixItems" => self.add_all(&mut node.items, listed())?,
                "items" | "additionalItems" => self.add_all(&mut node.items, [value])?,
                "contains" | "unevaluatedItems" => self.add_all(&mut node.any_item, [value])?,
                _ => {}
            }
        }
        self.nodes[index] = node;
        Ok(index)
    }

    fn add_all(&mut self, to: &mut Vec<usize>, schemas: impl IntoIterator<Item = &'a Value>) -> Result<(), String> {
        for schema in schemas {
            to.push(self.add(schema)?);
        }
        Ok(())
    }

    /// Resolves a reference to the whole schema, a place in it, or an anchor.
    fn target(&self, reference: &str) -> Result<&'a Value, String> {
        let found = match reference.strip_prefix('#') {
            Some("") => Some(self.root),
            Some(place) if place.starts_with('/') => {
                let place = percent_encoding::percent_decode_str(place).decode_utf8().unwrap_or_default();
                self.root.pointer(&place)
            }
            Some(anchor) => anchored(self.root, anchor),
            None => None,
        };
        found.ok_or_else(|| format!("`{reference}` is not in this schema; write `#/$defs/…` and define it there"))
    }

    /// Returns the subschemas, each after those that apply to the same value. Fails if there is a cycle.
    fn in_order(&self) -> Result<Vec<usize>, String> {
        let mut order = Vec::with_capacity(self.nodes.len());
        // 0: not seen; 1: in progress; 2: done.
        let mut state = vec![0_u8; self.nodes.len()];
        for start in 0..self.nodes.len() {
            let mut stack = vec![(start, 0)];
            while let Some((index, next)) = stack.pop() {
                if next == 0 {
                    match state[index] {
                        2 => continue,
                        1 => {
                            return Err("a reference leads back to itself without checking a part of the value".into());
                        }
                        _ => state[index] = 1,
                    }
                }
                if let Some(of) = self.nodes[index].same.get(next) {
                    stack.push((index, next + 1));
                    stack.push((*of, 0));
                } else {
                    state[index] = 2;
                    order.push(index);
                }
            }
        }
        Ok(order)
    }
}

/// Finds the subschema with this anchor.
fn anchored<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    match schema {
        Value::Object(members) => {
            let is = |keyword| members.get(keyword).is_some_and(|own| own == name);
            if is("$anchor") || is("$dynamicAnchor") {
                return Some(schema);
            }
            members.values().find_map(|member| anchored(member, name))
        }
        Value::Array(items) => items.iter().find_map(|item| anchored(item, name)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_applies_more_often_than_it_is_long_is_refused() {
        // Each definition refers to the previous one twice.
        let mut defs = serde_json::Map::from_iter([("d0".to_owned(), json!({ "type": "string" }))]);
        for number in 1..=30 {
            let before = format!("#/$defs/d{}", number - 1);
            defs.insert(format!("d{number}"), json!({ "allOf": [{ "$ref": before }, { "$ref": before }] }));
        }
        let chain = json!({ "$ref": "#/$defs/d30", "$defs": defs });
        assert!(passes(&chain).unwrap_err().contains("100000 times"));
        // Twice per level of the value.
        let twice = json!({ "properties": { "a": { "$ref": "#" } } });
        let deep = json!({ "$defs": { "s": { "allOf": [
            { "properties": { "a": { "$ref": "#/$defs/s" } } }, { "properties": { "a": { "$ref": "#/$defs/s" } } },
        ] } }, "$ref": "#/$defs/s" });
        assert!(passes(&twice).is_ok() && passes(&deep).is_err());
        let round = json!({ "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "anyOf": [{ "$ref": "#/$defs/a" }] } }, "$ref": "#/$defs/a" });
        assert!(passes(&round).unwrap_err().contains("leads back to itself"));
        assert!(
            passes(&json!({ "$ref": "https://example.com/a.json" })).unwrap_err().contains("is not in this schema")
        );
    }

    #[test]
    fn trees_and_any_json_are_no_more_work_than_they_are_large() {
        let tree = json!({ "type": "object", "properties": {
            "left": { "$ref": "#" }, "right": { "$ref": "#" }, "items": { "type": "array", "items": { "$ref": "#" } },
        } });
        assert_eq!(passes(&tree), Ok(2));
        let any = json!({ "$anchor": "any", "type": ["object", "array", "string"],
            "additionalProperties": { "$ref": "#any" }, "items": { "$ref": "#any" } });
        assert_eq!(passes(&any), Ok(2));
        assert_eq!(passes(&json!({ "anyOf": [{ "type": "string" }, true] })), Ok(3));
    }
}
