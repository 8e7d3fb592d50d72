//! Upgrades states of earlier versions to the current format. The formats are JSON: no current type has a member that
//! only old states have.

use serde_json::{Map, Value, json};

use super::state::RunState;

impl RunState {
    /// Whether a stored state certainly has the current format, which is written as its first member.
    pub fn is_current(stored: &str) -> bool {
        stored.strip_prefix(r#"{"format":"#).is_some_and(|rest| rest.starts_with(&format!("{},", Self::FORMAT)))
    }

    /// Upgrades a stored state of an earlier format. Its `format` does not change until the state is next written.
    pub fn upgrade(stored: &mut Value) {
        if stored["format"].as_u64().is_some_and(|format| format < 3) {
            separate_questions(stored);
        }
        if stored["format"].as_u64().is_some_and(|format| format < 5) {
            mark_pending(stored);
        }
        if stored["format"].as_u64().is_some_and(|format| format < 10) {
            count_apart(stored);
        }
    }
}

/// Counts usage per turn: until format 9, the conversation of a member of a team also counted the usage of its earlier
/// turns.
fn count_apart(state: &mut Value) {
    let branches = state["branches"].clone();
    for branch in state.get_mut("branches").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
        let Some(conversation) = branch.pointer_mut("/phase/conversation") else { continue };
        if conversation.as_object_mut().and_then(|own| own.remove("turns_before")).is_none() {
            continue;
        }
        let team = conversation["purpose"]["turn"]["team"].to_string();
        let agent = conversation["agent"].as_str().unwrap_or_default();
        let before = branches[&team]["phase"]["team"]["spent"][agent].clone();
        for name in ["asks", "tokens"] {
            if let (Some(both), Some(before)) = (conversation[name].as_u64(), before[name].as_u64()) {
                conversation[name] = both.saturating_sub(before).into();
            }
        }
        if let (Some(both), Some(before)) = (conversation["cost_usd"].as_f64(), before["cost_usd"].as_f64()) {
            conversation["cost_usd"] = (both - before).max(0.0).into();
        }
    }
}

/// Moves what is known of a pending review: until format 4, a review was pending exactly if people were asked, the
/// advice of handlers stood both on it and in its question, and the deadline of a handler stood beside `asked`.
fn mark_pending(state: &mut Value) {
    for question in state.get_mut("questions").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(question) = question.as_object_mut() else { continue };
        let until = question.remove("until");
        if question["asked"]["asked"] == "people" {
            question.insert("pending".to_owned(), true.into());
            question.remove("advice");
        } else if let (Some(until), Some(asked)) = (until, question["asked"].as_object_mut()) {
            asked.insert("until".to_owned(), until);
        }
    }
}

/// Separates questions from phases: until format 2, a review stood in the phase that waited for it, and the
/// conversation of a judge in the place of an agent's.
fn separate_questions(state: &mut Value) {
    let mut questions = Vec::new();
    for (number, branch) in state.get_mut("branches").and_then(Value::as_object_mut).into_iter().flatten() {
        let phase = branch.get_mut("phase").and_then(Value::as_object_mut);
        let (Ok(number), Some(phase)) = (number.parse::<u32>(), phase) else { continue };
        match phase.get("phase").and_then(Value::as_str) {
            Some("human") => {
                let subject = json!({ "about": "node", "branch": number });
                questions.extend(phase.remove("asked").map(|asked| pending(&asked, &subject)));
            }
            Some("tool") => {
                let subject = about(number, phase.get("call"));
                questions.extend(phase.remove("asked").map(|asked| pending(&asked, &subject)));
            }
            Some("agent") => questions.extend(of_agent(number, phase)),
            _ => {}
        }
    }
    if !questions.is_empty() {
        state["questions"] = Value::Array(questions);
    }
}

/// Converts the phase of an agent: a judge's conversation becomes the question of the human node that it is asked
/// about.
fn of_agent(number: u32, phase: &mut Map<String, Value>) -> Vec<Value> {
    let Some(mut conversation) = phase.remove("conversation") else { return Vec::new() };
    let Some(fields) = conversation.as_object_mut() else { return Vec::new() };
    let asked = fields.remove("asked").unwrap_or_default();
    let judging = fields.get("purpose").and_then(|purpose| purpose.get("verdict")).cloned();
    if let Some(judging) = judging {
        fields.remove("purpose");
        phase.insert("phase".to_owned(), "human".into());
        // Its review had no id yet. The id of its task is just as unique.
        return vec![json!({
            "review": fields.get("model_task"), "subject": { "about": "node", "branch": number },
            "handler": judging["handler"], "advice": judging.get("advice").unwrap_or(&json!([])),
            "asked": { "asked": "judge", "conversation": conversation, "digest": "" },
        })];
    }
    let subject = about(number, conversation["calls"].as_array().into_iter().flatten());
    phase.insert("conversation".to_owned(), conversation);
    asked.as_array().into_iter().flatten().map(|asked| pending(asked, &subject)).collect()
}

/// Returns a subject with all calls that wait for an answer: its review says which of them it is about.
fn about<'v>(branch: u32, calls: impl IntoIterator<Item = &'v Value>) -> Value {
    let waits = |call: &&Value| matches!(call["state"]["state"].as_str(), Some("gated" | "lost"));
    let calls: Vec<_> = calls.into_iter().filter(waits).map(|call| &call["id"]).collect();
    json!({ "about": "calls", "branch": branch, "calls": calls })
}

fn pending(asked: &Value, subject: &Value) -> Value {
    let mut question = json!({ "review": asked["review"], "subject": subject, "asked": { "asked": "people" } });
    if let Some(task) = asked.get("deadline").filter(|task| !task.is_null()) {
        question["timer"] = json!({ "task": task, "warn_at": asked["warn_at"] });
    }
    question
}
