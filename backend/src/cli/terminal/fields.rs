//! Asks for the values of an option's fields, as a JSON Schema describes them. A person is asked for each value
//! separately; a script gives all of them in one line, as a JSON object. The server validates them.

use std::fmt::Write as _;

use serde_json::Value;
use shared::JsonMap;
use shared::json_schema::resolve;

use super::{Prompter, text};
use crate::embed::Declined;

/// Asks for the values of the fields that the schema `root` describes.
pub(super) async fn ask(asking: &mut Prompter<'_>, root: &Value) -> Result<JsonMap, Declined> {
    let schema = resolve(root, root);
    match schema.get("properties").and_then(Value::as_object) {
        Some(properties) if !asking.is_scripted() => {
            let required = |name: &str| {
                let all = schema.get("required").and_then(Value::as_array);
                all.is_some_and(|all| all.iter().any(|one| one == name))
            };
            let mut fields = JsonMap::new();
            for (name, outer) in properties {
                let field = Field { name, outer, schema: resolve(root, outer), required: required(name) };
                if let Some(value) = one(asking, &field).await? {
                    fields.insert(name.clone(), value);
                }
            }
            Ok(fields)
        }
        _ => whole(asking).await,
    }
}

/// Asks for all values in one line, as a JSON object.
async fn whole(asking: &mut Prompter<'_>) -> Result<JsonMap, Declined> {
    loop {
        let said = asking.line(" the values of the option, as a JSON object: ").await?;
        match serde_json::from_str(&said) {
            Ok(fields) => return Ok(fields),
            Err(error) => asking.wrong(format!("expected a JSON object: {error}"))?,
        }
    }
}

struct Field<'a> {
    name: &'a str,
    /// The schema as it stands at the property, whose title and description come first.
    outer: &'a Value,
    /// The schema that it refers to, or itself.
    schema: &'a Value,
    required: bool,
}

impl Field<'_> {
    fn word(&self, key: &str) -> Option<&str> {
        self.outer.get(key).or_else(|| self.schema.get(key)).and_then(Value::as_str)
    }

    fn choices(&self) -> Option<&Vec<Value>> {
        self.schema.get("enum").and_then(Value::as_array)
    }

    /// Whether a typed value is taken as text and not parsed as JSON.
    fn takes_text(&self) -> bool {
        match self.choices() {
            Some(choices) => choices.iter().all(Value::is_string),
            None => self.word("type") == Some("string"),
        }
    }

    /// Returns the prompt, such as ` Agent (writer or editor; optional): `.
    fn prompt(&self) -> String {
        let name = self.word("title").unwrap_or(self.name);
        let mut about = Vec::new();
        about.extend(self.choices().map(|choices| choices.iter().map(display).collect::<Vec<_>>().join(" or ")));
        if !self.takes_text() {
            about.push(self.word("type").map_or("JSON".to_owned(), |what| format!("{}, as JSON", text::line(what))));
        }
        if !self.required {
            about.push("optional".to_owned());
        }
        let mut prompt = format!(" {}", text::line(name));
        if !about.is_empty() {
            let _ = write!(prompt, " ({})", about.join("; "));
        }
        prompt + ": "
    }

    fn read(&self, said: &str) -> Result<Value, String> {
        let value = if self.takes_text() {
            Value::from(said)
        } else {
            serde_json::from_str(said).map_err(|error| format!("expected JSON: {error}"))?
        };
        match self.choices() {
            Some(choices) if !choices.contains(&value) => {
                let choices = choices.iter().map(display).collect::<Vec<_>>().join(" or ");
                Err(format!("`{}` is not one of these: {choices}", text::line(said)))
            }
            _ => Ok(value),
        }
    }
}

fn display(value: &Value) -> String {
    text::line(&value.as_str().map_or_else(|| text::json_line(value), str::to_owned))
}

/// Asks for one value; `None` if it is optional and the person enters nothing.
async fn one(asking: &mut Prompter<'_>, field: &Field<'_>) -> Result<Option<Value>, Declined> {
    if let Some(description) = field.word("description") {
        asking.screen.say(text::barred(description).trim_end_matches('\n'));
    }
    loop {
        let said = asking.line(&field.prompt()).await?;
        match field.read(&said) {
            _ if said.is_empty() && !field.required => return Ok(None),
            _ if said.is_empty() => asking.wrong(format!("{} is required", text::line(field.name)))?,
            Ok(value) => return Ok(Some(value)),
            Err(why) => asking.wrong(why)?,
        }
    }
}
