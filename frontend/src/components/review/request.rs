//! The request of a call, exactly as it will be sent, with secrets by name.

use leptos::prelude::*;
use serde_json::Value;
use shared::JsonMap;
use shared::request::Request;

use super::value::json;

/// The request of a call with these arguments. Once its review is `over`, it is not described as a future one.
pub fn request(request: &Request, arguments: &Value, over: Signal<bool>) -> AnyView {
    let mut shown = JsonMap::new();
    let text = |text: &str| Value::String(text.to_owned());
    let mut body = None;
    match request {
        Request::Http(http) => {
            shown.insert("method".to_owned(), text(&http.method));
            shown.insert("url".to_owned(), text(&http.url));
            let headers: JsonMap = http.headers.iter().map(|(name, value)| (name.clone(), text(value))).collect();
            shown.insert("headers".to_owned(), Value::Object(headers));
            match &http.body {
                Some(own) if own == arguments => body = Some("The body is the arguments, as JSON."),
                Some(own) => {
                    shown.insert("body".to_owned(), own.clone());
                }
                None => body = Some("No body."),
            }
        }
        Request::Mcp { server, tool } => {
            shown.insert("mcp server".to_owned(), text(server));
            shown.insert("tool".to_owned(), text(tool));
        }
        Request::Builtin { builtin } => {
            shown.insert("builtin".to_owned(), text(builtin.as_str()));
        }
        Request::Agent { agent } => {
            shown.insert("agent".to_owned(), text(agent));
        }
        Request::Function => return ().into_any(),
    }
    let secrets = request.secrets().join(", ");
    let secrets =
        (!secrets.is_empty()).then(|| view! { <p class="describes">{format!("Secrets sent: {secrets}")}</p> });
    view! {
        <p class="describes"><b>{move || if over.get() { "Request" } else { "Request, as it will be sent" }}</b></p>
        <div class="json">{json(&Value::Object(shown))}</div>
        {body.map(|body| view! { <p class="describes">{body}</p> })}
        {secrets}
    }
    .into_any()
}
