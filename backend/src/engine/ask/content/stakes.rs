//! The stakes at human nodes and gates: templates are rendered once, when the question is asked.

use shared::definition::{
    Alternative, AlternativeChoice, Cost, Severity, Stakes, StakesSetting, TemplateText, read_twice,
};
use shared::error::{FlowCode, FlowError};
use shared::id::NodeId;
use shared::run::Step;

use crate::engine::builder::{Builder, failure, unevaluated};
use crate::engine::scope::{self, Visit};
use crate::flow::Scope;

impl Builder<'_> {
    /// Returns the stakes, with their templates rendered from what the gate or node sees.
    pub(in crate::engine::ask) fn stakes_of(
        &self,
        step: &Step,
        setting: StakesSetting<'_>,
        seen: Visit<'_>,
    ) -> Result<Stakes, FlowError> {
        let mut scope: Option<Scope> = None;
        let mut render = |text: &str| -> Result<String, FlowError> {
            if !TemplateText::is_one(text) {
                return Ok(text.to_owned());
            }
            let all = || scope::of(self.flow, &self.state, &step.node, Visit { number: step.visit, ..seen });
            let scope = scope.get_or_insert_with(all);
            self.flow.of(&step.node).render(text, scope).map_err(|error| unevaluated(&step.node, &error))
        };
        let wrong = |what: &str, said: &str| {
            failure(
                FlowCode::FlowCondition,
                &step.node,
                format!("`{what}` is rendered as `{said}`, which is not valid"),
            )
        };
        let severity = match setting.severity.template() {
            None => setting.severity.value().copied().unwrap_or_default(),
            Some(template) => {
                let said = render(template)?;
                let read: Result<Severity, _> = serde_json::from_value(said.trim().into());
                read.map_err(|_| wrong("severity", &said))?
            }
        };
        let estimated_cost = match setting.estimated_cost {
            None => None,
            Some(cost) => {
                let amount = match (cost.amount.value(), cost.amount.template()) {
                    (Some(amount), _) => Some(*amount),
                    (None, template) => {
                        let said = render(template.unwrap_or_default())?;
                        let read = said.trim().parse().ok().filter(|amount: &f64| amount.is_finite());
                        Some(read.ok_or_else(|| wrong("estimated_cost.amount", &said))?)
                    }
                };
                amount.map(|amount| Cost { amount, currency: cost.currency.clone() })
            }
        };
        let category = setting.category.map(&mut render).transpose()?;
        let consequences = setting.consequences.iter().map(|text| render(text)).collect::<Result<_, _>>()?;
        let alternative = |alternative: &Alternative| {
            Ok(match alternative {
                Alternative::Sentence(text) => Alternative::Sentence(render(text)?),
                Alternative::Choice(AlternativeChoice { id, description, tradeoffs }) => {
                    let tradeoffs = tradeoffs.as_deref().map(&mut render).transpose()?;
                    let description = render(description)?;
                    if description.trim().is_empty() {
                        return Err(wrong("description of an alternative", &description));
                    }
                    Alternative::Choice(AlternativeChoice { id: id.clone(), description, tradeoffs })
                }
            })
        };
        let alternatives: Vec<Alternative> = setting.alternatives.iter().map(alternative).collect::<Result<_, _>>()?;
        // Texts in the flow itself were checked when it was saved.
        let written = setting.alternatives.iter().filter_map(Alternative::choice);
        let is_made = written.into_iter().any(|choice| TemplateText::is_one(&choice.description));
        let choices = alternatives.iter().filter(|_| is_made).filter_map(Alternative::choice);
        if let Some(twice) = read_twice(choices.map(|choice| choice.description.as_str())) {
            return Err(alike(&step.node, twice));
        }
        Ok(Stakes { severity, category, reversible: setting.reversible, consequences, estimated_cost, alternatives })
    }
}

/// Makes the error for two choices that read the same.
pub(in crate::engine::ask) fn alike(node: &NodeId, label: &str) -> FlowError {
    let message = format!("two choices read `{label}`: people could not tell them apart");
    failure(FlowCode::FlowCondition, node, message)
}
