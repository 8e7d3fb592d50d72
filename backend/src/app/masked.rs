//! Models whose answers are masked: secrets are removed before anyone sees a piece of them, and before they are stored.

use async_trait::async_trait;
use parking_lot::Mutex;

use crate::agent::{Model, Models, OnText};
use crate::engine::{ModelAnswer, ModelRequest, ModelToolCall, TaskFailure};
use crate::tool::Secrets;

pub struct Masked {
    pub(super) models: Models,
    pub(super) secrets: Secrets,
}

#[async_trait]
impl Model for Masked {
    async fn call(&self, request: &ModelRequest, on_text: &OnText<'_>) -> Result<ModelAnswer, TaskFailure> {
        if self.secrets.is_empty() {
            return self.models.call(request, on_text).await;
        }
        let stream = Mutex::new(self.secrets.stream());
        let say = |text: String| {
            if !text.is_empty() {
                on_text(&text);
            }
        };
        let heard = |text: &str| say(stream.lock().push(text));
        let answer = self.models.call(request, &heard).await;
        say(stream.lock().finish());
        let mask = |call: ModelToolCall| ModelToolCall {
            tool: self.secrets.mask(&call.tool),
            arguments: self.secrets.mask_value(call.arguments),
            ..call
        };
        match answer {
            Ok(answer) => Ok(ModelAnswer {
                text: self.secrets.mask(&answer.text),
                calls: answer.calls.into_iter().map(mask).collect(),
                ..answer
            }),
            Err(failure) => Err(TaskFailure { message: self.secrets.mask(&failure.message), ..failure }),
        }
    }
}
