//! Grants (remembered approvals), which also approve later calls. A grant is for one tool of one version of a flow, for
//! one run or for all runs; it is limited in time and, optionally, to some arguments.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::JsonMap;
use crate::id::{FlowId, GrantId, ReviewId, RunId, Username};
use crate::time::Timestamp;

/// The default lifetime of a grant, unless the settings allow less.
pub const DEFAULT_LIFETIME: Duration = Duration::from_hours(8);
/// The default limit for the lifetime of a grant.
pub const DEFAULT_MAX_LIFETIME: Duration = Duration::from_hours(24);

/// The scope of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum GrantScope {
    /// In this run.
    Run,
    /// In every run of this version of the flow.
    Flow,
}

/// A request, with an approval, to also approve later calls of the tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Remember {
    /// Whether it applies to this run or to this version of the flow.
    pub scope: GrantScope,
    /// The lifetime in milliseconds, limited by the settings; default: 8 hours, or the limit if that is less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<u64>,
    /// The arguments that must have the same values as in the approved call. None: calls with any arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(serialize_with = "crate::user_data::value")]
    pub arguments: Vec<String>,
}

impl Remember {
    /// Returns the lifetime of the grant.
    pub fn span(&self) -> Duration {
        self.for_ms.map_or(DEFAULT_LIFETIME, Duration::from_millis)
    }
}

/// A remembered approval for a tool.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Grant {
    /// A UUIDv7 that the server makes; `DELETE /api/v1/grants/{id}` revokes the grant.
    pub id: GrantId,
    /// The tool; in a called flow, the calls that lead to it come first: `check/publish`.
    pub tool: String,
    /// The agent whose calls it approves; none: calls of tool nodes.
    pub agent: Option<String>,
    /// The values that arguments of these names must have; empty: any.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    #[serde(serialize_with = "crate::user_data::value")]
    pub arguments: JsonMap,
    /// `sha256:` of the values that the tool's templates read in addition to arguments, settings and secrets: a call
    /// with other values would send something else. None if they read nothing else.
    pub reads: Option<String>,
    /// The index of the tool's gate that it opens.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub gate: usize,
    /// Where it holds.
    pub scope: GrantScope,
    /// The flow of the run in which it was given; with the scope `flow`, it applies to all runs of this version.
    pub flow: FlowId,
    /// The version of the flow: another version may do something else under the same name.
    pub version: u32,
    /// The run in which it was given.
    pub run_id: RunId,
    /// The review with which it was given.
    pub review_id: ReviewId,
    /// The person who gave it.
    pub given_by: Username,
    /// The time of the decision that gave it.
    pub given_at: Timestamp,
    /// The time at which it expires.
    pub expires_at: Timestamp,
}

/// A call that a grant may approve.
#[derive(Debug, Clone, Copy)]
pub struct GrantedCall<'a> {
    /// The tool, as [`Grant::tool`].
    pub tool: &'a str,
    /// The calling agent, as [`Grant::agent`].
    pub agent: Option<&'a str>,
    /// The arguments that the call would be made with, of which [`Grant::arguments`] names those that must match.
    pub arguments: &'a JsonMap,
    /// The digest of what its templates read, as [`Grant::reads`].
    pub reads: Option<&'a str>,
}

impl Grant {
    /// Whether the grant covers this call in `run` at `now`. Does not check the flow and its version, the gate, or
    /// whether the giver may still decide.
    pub fn allows(&self, run: RunId, call: &GrantedCall<'_>, now: Timestamp) -> bool {
        let GrantedCall { tool, agent, arguments, reads } = *call;
        self.tool == tool
            && self.agent.as_deref() == agent
            && self.reads.as_deref() == reads
            && now < self.expires_at
            && (self.scope == GrantScope::Flow || self.run_id == run)
            && self.arguments.iter().all(|(name, value)| arguments.get(name) == Some(value))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(arguments: &JsonMap) -> GrantedCall<'_> {
        GrantedCall { tool: "deploy", agent: None, arguments, reads: None }
    }

    #[test]
    fn a_grant_allows_what_it_names_and_nothing_else() {
        let id = "01900000-0000-7000-8000-000000000001";
        let mut grant: Grant = serde_json::from_value(json!({
            "id": id, "tool": "deploy", "arguments": {"to": "staging"}, "scope": "run", "flow": "f", "version": 1,
            "run_id": id, "review_id": id, "given_by": "ana", "given_at": "2026-01-01T00:00:00Z",
            "expires_at": "2026-01-01T08:00:00Z",
        }))
        .expect("a grant");
        let (here, there) = (RunId(uuid::Uuid::parse_str(id).expect("an id")), RunId(uuid::Uuid::nil()));
        let call = |value: serde_json::Value| value.as_object().cloned().unwrap_or_default();
        let staging = call(json!({"to": "staging", "what": "web"}));
        let before = Timestamp(grant.expires_at.0 - 1);
        let deploy = of(&staging);
        assert!(grant.allows(here, &deploy, before));
        assert!(!grant.allows(here, &deploy, grant.expires_at), "it is over");
        assert!(!grant.allows(there, &deploy, before), "another run");
        assert!(!grant.allows(here, &GrantedCall { tool: "delete", ..deploy }, before), "another tool");
        assert!(!grant.allows(here, &GrantedCall { agent: Some("ops"), ..deploy }, before), "no tool node makes it");
        for other in [json!({"to": "production"}), json!({"to": ["staging"]}), json!({})] {
            let arguments = call(other.clone());
            assert!(!grant.allows(here, &of(&arguments), before), "{other}");
        }
        assert!(
            !grant.allows(here, &GrantedCall { reads: Some("sha256:0"), ..deploy }, before),
            "what its templates read is not pinned"
        );
        grant.scope = GrantScope::Flow;
        assert!(grant.allows(there, &deploy, before));
    }
}
