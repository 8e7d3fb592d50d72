//! The fields of bodies and answers, by the names under which operations speak of them.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;
use shared::JsonMap;
use shared::api::{
    Decided, Erasure, FlowVersion, Launch, LinkSecret, LoginRequest, NewComment, NewPassword, NewSecondFactor,
    NewToken, NewUser, Page, Reason, RecoveryCodes, SecondFactorCode, SecondFactorState, SessionInfo, Token, User,
    UserPatch, Validation,
};
use shared::decision::{DecisionRequest, ProgramAnswer};
use shared::definition::Flow;
use shared::deputy::{Delegate, Deputyship, NewDeputy};
use shared::error::Problem;
use shared::feedback::{Feedback, NewFeedback};
use shared::grant::Grant;
use shared::inbox::Facets;
use shared::log::Entry;
use shared::new_review::NewReview;
use shared::notification::{Delivery, Notifications, TestNotification};
use shared::protocol::{ClientMessage, ServerMessage};
use shared::review::{Checked, Review};
use shared::run::{Report, Run, RunSummary};
use shared::seal::{SealCheck, SealHead};
use shared::search::Found;
use shared::single_sign_on::LoginWays;
use shared::statistics::Statistics;

/// Collects schemas; what they have in common stands among the components once.
pub(super) struct Schemas(SchemaGenerator);

impl Schemas {
    pub fn new() -> Self {
        // OpenAPI 3.1 is JSON Schema 2020-12 with another place for definitions. What may be left out of a body is not
        // required: a type that is both body and answer has one schema.
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        Self(settings.into_generator())
    }

    /// The schema of a name; none where nothing is called so.
    pub fn of(&mut self, name: &str) -> Option<Value> {
        let schema = match name {
            "ClientMessage" => self.typed::<ClientMessage>(),
            "Checked" => self.typed::<Checked>(),
            "Decided" => self.typed::<Decided>(),
            "Erasure" => self.typed::<Erasure>(),
            "DecisionRequest" => self.typed::<DecisionRequest>(),
            "Delegate" => self.typed::<Delegate>(),
            "Deputyship" => self.typed::<Deputyship>(),
            "NewDeputy" => self.typed::<NewDeputy>(),
            "LinkSecret" => self.typed::<LinkSecret>(),
            "NewFeedback" => self.typed::<NewFeedback>(),
            "NewReview" => self.typed::<NewReview>(),
            "NewPassword" => self.typed::<NewPassword>(),
            "NewSecondFactor" => self.typed::<NewSecondFactor>(),
            "PageOfSessions" => self.typed::<Page<SessionInfo>>(),
            "RecoveryCodes" => self.typed::<RecoveryCodes>(),
            "SecondFactorCode" => self.typed::<SecondFactorCode>(),
            "SecondFactorState" => self.typed::<SecondFactorState>(),
            "PageOfGrants" => self.typed::<Page<Grant>>(),
            "PageOfDeputies" => self.typed::<Page<Deputyship>>(),
            "Facets" => self.typed::<Facets>(),
            "Feedback" => self.typed::<Feedback>(),
            "Flow" => self.typed::<Flow>(),
            "FlowVersion" => self.typed::<FlowVersion>(),
            "Launch" => self.typed::<Launch>(),
            "LoginWays" => self.typed::<LoginWays>(),
            "LoginRequest" => self.typed::<LoginRequest>(),
            "NewComment" => self.typed::<NewComment>(),
            "NewToken" => self.typed::<NewToken>(),
            "NewUser" => self.typed::<NewUser>(),
            "Notifications" => self.typed::<Notifications>(),
            "PageOfDeliveries" => self.typed::<Page<Delivery>>(),
            "FoundEntries" => self.typed::<Found<Entry>>(),
            "FoundReviews" => self.typed::<Found<Review>>(),
            "PageOfEntries" => self.typed::<Page<Entry>>(),
            "PageOfFeedback" => self.typed::<Page<Feedback>>(),
            "PageOfFlows" => self.typed::<Page<FlowVersion>>(),
            "PageOfReviews" => self.typed::<Page<Review>>(),
            "PageOfRuns" => self.typed::<Page<RunSummary>>(),
            "PageOfTokens" => self.typed::<Page<Token>>(),
            "PageOfUsers" => self.typed::<Page<User>>(),
            "Problem" => self.typed::<Problem>(),
            "ProgramAnswer" => self.typed::<ProgramAnswer>(),
            "Reason" => self.typed::<Reason>(),
            "Report" => self.typed::<Report>(),
            "Review" => self.typed::<Review>(),
            "Run" => self.typed::<Run>(),
            "SealCheck" => self.typed::<SealCheck>(),
            "SealHead" => self.typed::<SealHead>(),
            "ServerMessage" => self.typed::<ServerMessage>(),
            "Statistics" => self.typed::<Statistics>(),
            "TestNotification" => self.typed::<TestNotification>(),
            "Token" => self.typed::<Token>(),
            "User" => self.typed::<User>(),
            "UserPatch" => self.typed::<UserPatch>(),
            "Validation" => self.typed::<Validation>(),
            "Schema" | "OpenApi" => json_schema!({ "type": "object" }),
            "Status" => json_schema!({
                "type": "object",
                "required": ["status"],
                "properties": { "status": { "const": "ok" } }
            }),
            "SlackInteraction" => json_schema!({
                "type": "object",
                "required": ["payload"],
                "properties": { "payload": { "type": "string" } }
            }),
            "SlackEventAnswer" => json_schema!({
                "type": "object",
                "properties": { "challenge": { "type": "string" } }
            }),
            "SlackEvent" => json_schema!({
                "type": "object",
                "required": ["type"],
                "properties": {
                    "type": { "enum": ["url_verification", "event_callback"] },
                    "challenge": { "type": "string" },
                    "event": { "type": "object" }
                }
            }),
            "File" | "Text" => json_schema!({ "type": "string" }),
            _ => return None,
        };
        Some(schema.to_value())
    }

    fn typed<T: JsonSchema>(&mut self) -> Schema {
        self.0.subschema_for::<T>()
    }

    /// All that the schemas refer to.
    pub fn components(mut self) -> JsonMap {
        self.0.take_definitions(true)
    }
}
