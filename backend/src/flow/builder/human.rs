//! Nodes at which a person is asked, of a flow that is written in Rust.

use shared::definition::{
    self, Alternative, AlternativeChoice, AutoHandler, Choice, ChoiceKind, CostSetting, EditKey, Handler, NodeKind,
    OnTimeout, Policy, ReviewKey, Severity, SlackHandler, Templated, Validator, WebhookHandler,
};
use shared::id::{NodeId, Username};
use shared::time::Span;

use super::NodeSpec;

/// A node at which a person is asked.
#[derive(Debug, Clone)]
pub struct Human(definition::Human);

impl Human {
    /// The question, a template.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self(definition::Human { prompt: Some(prompt.into()), ..definition::Human::default() })
    }

    /// The question is what a state key holds, or a key of `context.metadata`; the prompt counts where neither does.
    pub fn prompt_key(mut self, key: impl Into<String>) -> Self {
        self.0.prompt_key = Some(key.into());
        self
    }

    /// The headline, a template; without one, it is the question's first sentence.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.0.title = Some(title.into());
        self
    }

    /// Something that the person may choose. Without options, free text is the answer.
    pub fn option(mut self, option: Choice) -> Self {
        self.0.options.push(option);
        self
    }

    /// A state key that is shown.
    pub fn reviews(self, key: impl Into<String>) -> Self {
        self.shows(ReviewKey { key: key.into(), content_type: None, label: None })
    }

    /// The same with what people read instead of the key, or how its value is shown.
    pub fn shows(mut self, key: ReviewKey) -> Self {
        self.0.review_keys.push(key);
        self
    }

    /// A state key that may be changed.
    pub fn edits(self, key: impl Into<String>) -> Self {
        self.changes(EditKey { key: key.into(), schema: None, content_type: None, label: None })
    }

    /// The same with the JSON Schema of its value, what people read instead of the key, or how the value is shown.
    pub fn changes(mut self, key: EditKey) -> Self {
        self.0.edit_keys.push(key);
        self
    }

    /// A role that may decide.
    pub fn role(mut self, role: impl Into<String>) -> Self {
        self.0.reviewers.roles.push(role.into());
        self
    }

    /// A role that those who are asked by role must have besides.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.0.reviewers.tags.push(tag.into());
        self
    }

    /// A person who may decide.
    pub fn user(mut self, user: Username) -> Self {
        self.0.reviewers.users.push(user);
        self
    }

    /// How long it waits, and what happens then.
    pub fn timeout(mut self, timeout: Span, then: OnTimeout) -> Self {
        (self.0.timeout, self.0.on_timeout) = (Some(timeout), Some(then));
        self
    }

    /// Nobody is asked: it is approved, or rejected with a reason, at once; after judges, what none of them was sure of.
    pub fn auto(mut self, says: AutoHandler) -> Self {
        self.0.handlers.get_or_insert_default().push(Handler::Auto(says));
        self
    }

    /// A model (`provider/model`) is asked before people are, and decides where it is at least so sure (0.7 where nothing
    /// is said). Of several judges, each is asked where those before it were not sure.
    pub fn judge(mut self, model: impl Into<String>, criteria: impl Into<String>, threshold: Option<f64>) -> Self {
        let judge = definition::Judge { model: model.into(), criteria: criteria.into(), threshold, timeout: None };
        self.0.handlers.get_or_insert_default().push(Handler::Judge(judge));
        self
    }
}

impl Human {
    /// How much is at stake.
    pub fn severity(mut self, severity: impl Into<Templated<Severity>>) -> Self {
        self.0.severity = severity.into();
        self
    }

    /// A word to sort reviews by, a template.
    pub fn category(mut self, category: impl Into<String>) -> Self {
        self.0.category = Some(category.into());
        self
    }

    /// Whether what follows can be undone.
    pub fn reversible(mut self, reversible: bool) -> Self {
        self.0.reversible = Some(reversible);
        self
    }

    /// What it may cost, in a currency such as `EUR`.
    pub fn estimated_cost(mut self, amount: impl Into<Templated<f64>>, currency: impl Into<String>) -> Self {
        self.0.estimated_cost = Some(CostSetting { amount: amount.into(), currency: currency.into() });
        self
    }

    /// What could be done instead: a sentence that people read, or an [`alternative`] that they can choose.
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

    /// What can be chosen is a list under a state key.
    pub fn options_key(mut self, key: impl Into<String>) -> Self {
        self.0.options_key = Some(key.into());
        self
    }

    /// Only what is offered can be chosen: words of one's own are no answer.
    pub fn options_only(mut self) -> Self {
        self.0.allow_free_text = Some(false);
        self
    }

    /// No guardrail looks at what people put in here.
    pub fn unguarded(mut self) -> Self {
        self.0.guardrails = Some(false);
        self
    }

    /// What follows from an acceptance.
    pub fn consequence(mut self, consequence: impl Into<String>) -> Self {
        self.0.consequences.push(consequence.into());
        self
    }

    /// Whoever started the run may not decide.
    pub fn not_requester(mut self) -> Self {
        self.0.reviewers.not_requester = true;
        self
    }

    /// Whoever decided at this node may not decide here.
    pub fn not_same_as(mut self, node: NodeId) -> Self {
        self.0.reviewers.not_same_as = Some(node);
        self
    }

    /// How several decisions become one.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.0.policy = policy;
        self
    }

    /// So many votes against end it.
    pub fn deny(mut self, votes: u32) -> Self {
        self.0.deny = Some(votes);
        self
    }

    /// Votes are shown only when it is over.
    pub fn blind(mut self) -> Self {
        self.0.blind = true;
        self
    }

    /// The step that a correction runs again, where that is not plain.
    pub fn corrects(mut self, node: NodeId) -> Self {
        self.0.corrects = Some(node);
        self
    }

    /// What an answer in words must fulfil.
    pub fn validator(mut self, validator: Validator) -> Self {
        self.0.validator = Some(validator);
        self
    }

    /// Where a stop goes instead of ending the run.
    pub fn on_reject(mut self, node: NodeId) -> Self {
        self.0.on_reject = Some(node);
        self
    }

    /// Who is asked before people are, and whether people are, in this order.
    pub fn handlers(mut self, handlers: impl IntoIterator<Item = Handler>) -> Self {
        self.0.handlers.get_or_insert_default().extend(handlers);
        self
    }

    /// Whoever may decide is asked in a channel in Slack too; with a time limit, the next is asked after it.
    pub fn slack(self, channel: impl Into<String>, timeout: Option<Span>) -> Self {
        self.handler_of(Handler::Slack(SlackHandler { channel: channel.into(), timeout, reactions: false }))
    }

    /// The same, where reactions to the message decide too: :white_check_mark: accepts, :x: stops.
    pub fn slack_with_reactions(self, channel: impl Into<String>, timeout: Option<Span>) -> Self {
        self.handler_of(Handler::Slack(SlackHandler { channel: channel.into(), timeout, reactions: true }))
    }

    /// Another program is asked before people are, at this URL. Where it cannot be asked, what is asked is rejected.
    pub fn webhook(self, url: impl Into<String>) -> Self {
        self.handler_of(Handler::Webhook(WebhookHandler { url: url.into(), on_error: None, timeout: None }))
    }

    /// A function of this program is asked before people are, by the name under which `Options::handler` gives it.
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

/// An option that lets the run go on.
pub fn accept(id: impl Into<String>, label: impl Into<String>) -> Choice {
    Choice { id: id.into(), kind: ChoiceKind::Accept, label: label.into(), message: None, description: None }
}

/// An option that has the step before made again, with this message.
pub fn correct(id: impl Into<String>, label: impl Into<String>, message: impl Into<String>) -> Choice {
    Choice { kind: ChoiceKind::Correct, message: Some(message.into()), ..accept(id, label) }
}

/// An option that ends the run.
pub fn stop(id: impl Into<String>, label: impl Into<String>) -> Choice {
    Choice { kind: ChoiceKind::Stop, ..accept(id, label) }
}

/// Something else that can be chosen in place of what is asked; flows see it as `decision.alternative`.
pub fn alternative(id: impl Into<String>, description: impl Into<String>) -> AlternativeChoice {
    AlternativeChoice { id: id.into(), description: description.into(), tradeoffs: None }
}
