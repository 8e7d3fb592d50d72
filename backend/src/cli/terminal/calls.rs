//! Asks about the actions that a gate holds back, one after the other. Each is approved, rejected, edited, or answered
//! with a text or an alternative.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;
use shared::decision::{ActionDecision, Verdict};
use shared::definition::ActionKind;
use shared::request::Request;
use shared::review::{Action, ActionType, Review};

use super::{Prompter, menu, text};
use crate::embed::{Choice, Declined};

/// Asks about each action, and returns the decision on all of them.
pub(super) async fn ask(asking: &mut Prompter<'_>, review: &Review) -> Result<Choice, Declined> {
    let mut decisions = BTreeMap::new();
    let mut instructions = None;
    for (index, action) in review.actions.iter().enumerate() {
        asking.screen.say(render(review, index, action).trim_end_matches('\n'));
        decisions.insert(action.id.clone(), decide(asking, review, action, &mut instructions).await?);
    }
    Ok(Choice::verdict(Verdict::Actions { decisions, instructions }))
}

async fn decide(
    asking: &mut Prompter<'_>,
    review: &Review,
    action: &Action,
    instructions: &mut Option<String>,
) -> Result<ActionDecision, Declined> {
    let mut arguments = action.arguments.clone();
    loop {
        let said = asking.line(&prompt(review, action)).await?;
        if let Some(pair) = said.strip_prefix("metadata ") {
            asking.metadata(pair)?;
            continue;
        }
        // Instructions go to the agent that made the call, or that is about to begin. A call of a tool node has none.
        let has_agent = action.agent.is_some() || action.action_type == ActionType::Agent;
        let instructions_given = said.strip_prefix("instructions:").filter(|_| has_agent);
        if let Some(instructions_given) = instructions_given {
            asking.screen.say(" the agent is told this together with the decision");
            *instructions = Some(instructions_given.trim().to_owned());
            continue;
        }
        let (word, rest) = said.split_once(char::is_whitespace).unwrap_or((&said, ""));
        let rest = rest.trim();
        let chosen = || review.choices_for(action).find(|choice| choice.id == rest);
        if let ("choose", Some(choice)) = (word.to_lowercase().as_str(), chosen()) {
            return Ok(ActionDecision::Choose { alternative: choice.id.clone(), message: None });
        }
        let kind = match word.to_lowercase().as_str() {
            // "yes, but …" is no approval.
            "y" | "yes" | "approve" if rest.is_empty() => ActionKind::Approve,
            "n" | "no" | "reject" => ActionKind::Reject,
            "e" | "edit" => ActionKind::Edit,
            "r" | "respond" => ActionKind::Respond,
            // A script cannot be asked again, so an unknown answer rejects the call, with the line as the message.
            _ if asking.is_scripted() => return Ok(ActionDecision::Reject { message: Some(said.trim().to_owned()) }),
            _ => {
                asking.wrong(format!(
                    "`{}` is not an answer to {}: {}",
                    text::line(&said),
                    action.name,
                    words(review, action)
                ))?;
                continue;
            }
        };
        if !action.allowed_decisions.contains(&kind) {
            asking.wrong(format!("`{word}` is not allowed for {}: {}", action.name, words(review, action)))?;
            continue;
        }
        match kind {
            ActionKind::Approve if arguments == action.arguments => return Ok(ActionDecision::APPROVE),
            ActionKind::Approve => return Ok(ActionDecision::Edit { arguments }),
            ActionKind::Reject => {
                return Ok(ActionDecision::Reject { message: Some(rest.to_owned()).filter(|why| !why.is_empty()) });
            }
            ActionKind::Respond if !rest.is_empty() => {
                return Ok(ActionDecision::Respond { message: rest.to_owned() });
            }
            ActionKind::Respond => {
                return Ok(ActionDecision::Respond { message: asking.line(" your message: ").await? });
            }
            ActionKind::Edit => {
                let (name, file) = rest.split_once(' ').unwrap_or((rest, ""));
                let Some(old) = action.arguments.get(name) else {
                    let names: Vec<String> = action.arguments.keys().map(|name| text::line(name)).collect();
                    asking.wrong(format!("say which argument: edit {}", names.join(", edit ")))?;
                    continue;
                };
                if let Some(value) = asking.value(old, old.is_string(), file.trim()).await? {
                    asking.screen.say(&format!(" {} is changed; `yes` approves the call with it", text::line(name)));
                    arguments.insert(name.to_owned(), value);
                }
            }
        }
    }
}

fn prompt(review: &Review, action: &Action) -> String {
    format!(" allow it? [{}]: ", words(review, action).replace(", ", "/"))
}

fn words(review: &Review, action: &Action) -> String {
    let word = |kind: &ActionKind| match kind {
        ActionKind::Approve => "yes",
        ActionKind::Reject => "no",
        ActionKind::Edit => "edit",
        ActionKind::Respond => "respond",
    };
    let order = [ActionKind::Approve, ActionKind::Reject, ActionKind::Edit, ActionKind::Respond];
    let allowed = order.iter().filter(|kind| action.allowed_decisions.contains(kind));
    let instead = review.choices_for(action).map(|choice| format!("choose {}", text::line(&choice.id)));
    allowed.map(word).map(str::to_owned).chain(instead).collect::<Vec<_>>().join(", ")
}

pub(super) fn render(review: &Review, index: usize, action: &Action) -> String {
    let what = match action.action_type {
        ActionType::Tool => "tool permission",
        ActionType::Agent => "agent permission",
        ActionType::Emergent => "specialist permission",
        ActionType::Output => "output permission",
        ActionType::StrategyOverride => "strategy permission",
    };
    let count = review.actions.len();
    let of = if count > 1 { format!(" ({} of {count})", index + 1) } else { String::new() };
    let took = if index == 0 { menu::took(review) } else { String::new() };
    let mut all = took + &menu::head(&format!("{what}: {}{of}", text::line(&action.name)), &review.prompt);
    if let Some(description) = &action.description {
        all.push_str(&text::barred(description));
    }
    all.push_str(&menu::about(review, action.stakes.as_deref().unwrap_or(&review.stakes)));
    for (name, value) in &action.arguments {
        let value = if value.is_null() { "null".to_owned() } else { text::value(value) };
        let _ = write!(all, "\n {}:\n{}", text::line(name), text::barred(&value));
    }
    if action.arguments == serde_json::Map::<String, Value>::new() {
        all.push_str(" (no arguments)\n");
    }
    if let Some(request) = action.request.as_ref().and_then(Request::text) {
        let _ = write!(all, "\n request:\n{}", text::barred(&request));
    }
    for warning in review.warnings.iter().filter(|warning| warning.action.as_ref() == Some(&action.id)) {
        let _ = writeln!(all, "\n ! {}", text::line(&warning.to_string()));
    }
    all + menu::RULE + "\n"
}
