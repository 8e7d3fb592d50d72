//! The input and the context of a run on the command line, for runs in this process and on a server.

use clap::Args;
use serde::de::DeserializeOwned;
use serde_json::Value;
use shared::JsonMap;
use shared::run::Context;

use super::exit::{Exit, Quit};

/// The arguments of every command that starts a run.
#[derive(Debug, Args)]
pub struct LaunchArgs {
    /// Input value as key=value; may be repeated. Text if the flow says `type: string` or it is not valid JSON
    #[arg(long = "input", short, value_name = "KEY=VALUE")]
    inputs: Vec<String>,
    /// Input as one JSON object, or @FILE; `--input` overrides single values
    #[arg(long, value_name = "JSON")]
    input_json: Option<String>,
    /// Context of the run (user, tenant, session, metadata) as a JSON object, or @FILE
    #[arg(long, value_name = "JSON")]
    context: Option<String>,
}

impl LaunchArgs {
    /// Returns the input: the values of `--input-json`, overridden by those of `--input`. `schema` is the JSON Schema of
    /// the flow's input.
    pub fn input(&self, schema: Option<&Value>) -> Result<JsonMap, Quit> {
        let mut input = match &self.input_json {
            None => JsonMap::new(),
            Some(json) => object("--input-json", json)?,
        };
        for value in &self.inputs {
            let Some((key, value)) = value.split_once('=') else {
                return Err(Quit::new(Exit::Invalid, format!("--input {value}: expected KEY=VALUE")));
            };
            input.insert(key.to_owned(), read_value(schema, key, value));
        }
        Ok(input)
    }

    /// Returns the context; empty if none is given.
    pub fn context(&self) -> Result<Context, Quit> {
        self.context.as_deref().map_or_else(|| Ok(Context::default()), |json| object("--context", json))
    }
}

/// Parses the JSON object of a flag, or of the file that it names as `@FILE`.
fn object<T: DeserializeOwned>(flag: &str, json: &str) -> Result<T, Quit> {
    let text = match json.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).map_err(|error| Quit::unread(file, &error))?,
        None => json.to_owned(),
    };
    let invalid = |error| Quit::new(Exit::Invalid, format!("{flag} must be a JSON object of the right form: {error}"));
    serde_json::from_str(&text).map_err(invalid)
}

/// Parses the value of an input. It is text if the flow declares it as `string` or if it is not valid JSON.
fn read_value(schema: Option<&Value>, key: &str, value: &str) -> Value {
    let declared = schema.and_then(|input| input.get("properties")?.get(key)?.get("type"));
    let is_text = declared.and_then(Value::as_str) == Some("string");
    let read = if is_text { None } else { serde_json::from_str(value).ok() };
    read.unwrap_or_else(|| Value::from(value))
}
