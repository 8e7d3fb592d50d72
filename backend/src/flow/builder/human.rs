//! The human nodes of a flow that is built in Rust.

use shared::definition::{
    self, Alternative, AlternativeChoice, AutoHandler, ChoiceKind, CostSetting, EditKey, Handler, HumanOption,
    NodeKind, OnTimeout, Policy, ReviewKey, Severity, SlackHandler, Templated, Validator, WebhookHandler,
};
use shared::id::{NodeId, Username};
use shared::time::Span;

use super::NodeSpec;

/// A node at which a person is asked.
#[derive(Debug, Clone)]
pub struct Human(definition::Human);

impl Human {
    /// Creates a node with this question, a template.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self(definition::Human { prompt: Some(prompt.into()), ..definition::Human::default() })
    }

    /// Takes the question from a state key, or a key of `context.metadata`; otherwise, the prompt is used.
    pub fn prompt_key(mut self, key: impl Into<String>) -> Self {
        self.0.prompt_key = Some(key.into());
        self
    }

    /// Sets the headline, a template; default: the first sentence of the question.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.0.title = Some(title.into());
        self
    }

    /// Adds an option to choose. Without options, free text is the answer.
    pub fn option(mut self, option: HumanOption) -> Self {
        self.0.options.push(option);
        self
    }

    /// Shows the value of a state key.
    pub fn reviews(self, key: impl Into<String>) -> Self {
        self.shows(ReviewKey { key: key.into(), content_type: None, label: None })
    }

    /// Shows a state key with a label or a format.
    pub fn shows(mut self, key: ReviewKey) -> Self {
        self.0.review_keys.push(key);
        self
    }

    /// Makes a state key editable.
    pub fn edits(self, key: impl Into<String>) -> Self {
        self.changes(EditKey { key: key.into(), schema: None, content_type: None, label: None })
    }

    /// Makes a state key editable, with a JSON Schema, a label or a format.
    pub fn changes(mut self, key: EditKey) -> Self {
        self.0.edit_keys.push(key);
        self
    }

    /// Adds a role that may decide.
    pub fn role(mut self, role: impl Into<String>) -> Self {
        self.0.reviewers.roles.push(role.into());
        self
    }

    /// Adds a tag that those who are asked by role also need.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.0.reviewers.tags.push(tag.into());
        self
    }

    /// Adds a person who may decide.
    pub fn user(mut self, user: Username) -> Self {
        self.0.reviewers.users.push(user);
        self
    }

    /// Sets the timeout of the node, and what happens then.
    pub fn timeout(mut self, timeout: Span, then: OnTimeout) -> Self {
        (self.0.timeout, self.0.on_timeout) = (Some(timeout), Some(then));
        self
    }

    /// Approves or rejects at once, without asking people; after judges, if none of them was confident enough.
    pub fn auto(mut self, says: AutoHandler) -> Self {
        self.0.handlers.get_or_insert_default().push(Handler::Auto(says));
        self
    }

    /// Asks a model (`provider/model`) before people, which decides with at least this confidence (default 0.7). Of
    /// several judges, each is asked if those before it were not confident enough.
    pub fn judge(mut self, model: impl Into<String>, criteria: impl Into<String>, threshold: Option<f64>) -> Self {
        let judge = definition::Judge { model: model.into(), criteria: criteria.into(), threshold, timeout: None };
        self.0.handlers.get_or_insert_default().push(Handler::Judge(judge));
        self
    }
}

impl Human {
    /// Sets how much is at stake.
    pub fn severity(mut self, severity: impl Into<Templated<Severity>>) -> Self {
        self.0.severity = severity.into();
        self
    }

    /// Sets the category to sort reviews by, a template.
    pub fn category(mut self, category: impl Into<String>) -> Self {
        self.0.category = Some(category.into());
        self
    }

    /// Sets whether the consequences can be undone.
    pub fn reversible(mut self, reversible: bool) -> Self {
        self.0.reversible = Some(reversible);
        self
    }

    /// Sets the estimated cost, in a currency such as `EUR`.
    pub fn estimated_cost(mut self, amount: impl Into<Templated<f64>>, currency: impl Into<String>) -> Self {
        self.0.estimated_cost = Some(CostSetting { amount: amount.into(), currency: currency.into() });
        self
    }

    /// Adds an alternative: a sentence that people read, or an [`alternative`] that they can choose.
    ///
    /// ```
    /// use backend::flow::builder::{Flow, Human, Set, accept, alternative, stop};
    ///
    /// let flow = Flow::new("refund")
    ///     .human(
    ///         "ask",
    ///         Human::new("Pay the refund?")
    ///             .option(accept("pay", "Pay it"))
    ///             .option(stop("keep", "Pay nothing"))
    ///             .alternative(alternative("voucher", "Send a voucher").tradeoffs("Cheaper, and slower"))
    ///             .alternative("Or call the customer first."),
    ///     )
    ///     .delegates_to("note")
    ///     .node("note", Set::new().key("instead", "{{ decision.alternative }}"))
    ///     .build()?;
    /// assert_eq!(flow.nodes.len(), 2);
    /// # Ok::<(), backend::flow::builder::InvalidFlow>(())
    /// ```
    pub fn alternative(mut self, alternative: impl Into<Alternative>) -> Self {
        self.0.alternatives.push(alternative.into());
        self
    }

    /// Takes the options from a list under a state key.
    pub fn options_key(mut self, key: impl Into<String>) -> Self {
        self.0.options_key = Some(key.into());
        self
    }

    /// Allows only the options: free text is not an answer.
    pub fn options_only(mut self) -> Self {
        self.0.allow_free_text = Some(false);
        self
    }

    /// Turns guardrails off for what people enter here.
    pub fn unguarded(mut self) -> Self {
        self.0.guardrails = Some(false);
        self
    }

    /// Adds a consequence of an acceptance.
    pub fn consequence(mut self, consequence: impl Into<String>) -> Self {
        self.0.consequences.push(consequence.into());
        self
    }

    /// Excludes the person who launched the run.
    pub fn not_requester(mut self) -> Self {
        self.0.reviewers.not_requester = true;
        self
    }

    /// Excludes the people who decided at this node.
    pub fn not_same_as(mut self, node: NodeId) -> Self {
        self.0.reviewers.not_same_as = Some(node);
        self
    }

    /// Sets the policy by which several decisions become one.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.0.policy = policy;
        self
    }

    /// Sets the number of votes against that end it.
    pub fn deny(mut self, votes: u32) -> Self {
        self.0.deny = Some(votes);
        self
    }

    /// Keeps votes secret until the resolution.
    pub fn blind(mut self) -> Self {
        self.0.blind = true;
        self
    }

    /// Sets the step that a correction runs again, if it is not clear.
    pub fn corrects(mut self, node: NodeId) -> Self {
        self.0.corrects = Some(node);
        self
    }

    /// Sets a condition for free-text answers.
    pub fn validator(mut self, validator: Validator) -> Self {
        self.0.validator = Some(validator);
        self
    }

    /// Sets the node to which a stop leads, instead of ending the run.
    pub fn on_reject(mut self, node: NodeId) -> Self {
        self.0.on_reject = Some(node);
        self
    }

    /// Sets the handlers, in order, including whether people are asked.
    pub fn handlers(mut self, handlers: impl IntoIterator<Item = Handler>) -> Self {
        self.0.handlers.get_or_insert_default().extend(handlers);
        self
    }

    /// Also asks in a channel in Slack; with a time limit, the next handler is asked after it.
    pub fn slack(self, channel: impl Into<String>, timeout: Option<Span>) -> Self {
        self.handler_of(Handler::Slack(SlackHandler { channel: channel.into(), timeout, reactions: false }))
    }

    /// Asks a program at this URL before people. If it cannot be reached, the review is rejected.
    pub fn webhook(self, url: impl Into<String>) -> Self {
        self.handler_of(Handler::Webhook(WebhookHandler { url: url.into(), on_error: None, timeout: None }))
    }

    /// Asks a function of this program before people, by its name in `Options::handler`.
    pub fn handler(self, name: impl Into<String>) -> Self {
        self.handler_of(Handler::Function(name.into()))
    }

    fn handler_of(mut self, handler: Handler) -> Self {
        self.0.handlers.get_or_insert_default().push(handler);
        self
    }
}

impl From<Human> for NodeSpec {
    fn from(node: Human) -> Self {
        Self { kind: NodeKind::Human(Box::new(node.0)), agents: Vec::new(), tool: None }
    }
}

/// Creates an option with which the run continues.
pub fn accept(id: impl Into<String>, label: impl Into<String>) -> HumanOption {
    HumanOption { id: id.into(), kind: ChoiceKind::Accept, label: label.into(), message: None, description: None }
}

/// Creates an option that runs the previous step again, with this message.
pub fn correct(id: impl Into<String>, label: impl Into<String>, message: impl Into<String>) -> HumanOption {
    HumanOption { kind: ChoiceKind::Correct, message: Some(message.into()), ..accept(id, label) }
}

/// Creates an option that ends the run.
pub fn stop(id: impl Into<String>, label: impl Into<String>) -> HumanOption {
    HumanOption { kind: ChoiceKind::Stop, ..accept(id, label) }
}

/// Creates an alternative that can be chosen instead; flows see it as `decision.alternative`.
pub fn alternative(id: impl Into<String>, description: impl Into<String>) -> AlternativeChoice {
    AlternativeChoice { id: id.into(), description: description.into(), tradeoffs: None }
}
