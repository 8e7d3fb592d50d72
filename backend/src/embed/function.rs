//! Functions of the program as tools.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use serde_json::Value;
use shared::JsonMap;
use shared::definition::{Flow, ToolKind};
use shared::error::{FlowCode, Mistake, pointer};

use crate::engine::{TaskFailure, ToolRequest, ToolSpec};
use crate::tool::{Tool, Tools};

type Function = Arc<dyn Fn(JsonMap) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>;

/// The functions by the names of their tools.
#[derive(Clone, Default)]
pub(super) struct Functions(BTreeMap<String, Function>);

impl Functions {
    pub fn add<F, A, E>(&mut self, name: String, function: F)
    where
        F: Fn(JsonMap) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Value, E>> + Send + 'static,
        E: Display,
    {
        let call = move |arguments| -> BoxFuture<'static, Result<Value, String>> {
            let called = function(arguments);
            Box::pin(async move { called.await.map_err(|error| error.to_string()) })
        };
        self.0.insert(name, Arc::new(call));
    }

    /// Returns the function tools of a flow that this program lacks.
    pub fn missing(&self, flow: &Flow) -> Vec<Mistake> {
        let functions = flow.tools.iter().filter(|(_, tool)| tool.kind == ToolKind::Function);
        let missing = functions.filter(|(name, _)| !self.0.contains_key(*name));
        missing
            .map(|(name, _)| {
                let message = format!("the program has no function for the tool `{name}`; add it with `tool`");
                Mistake::new(pointer(["tools", name]), FlowCode::FlowInvalid.as_str(), message)
            })
            .collect()
    }
}

/// The program's functions, and all other tools.
pub(super) struct WithFunctions {
    pub functions: Functions,
    pub others: Tools,
}

#[async_trait]
impl Tool for WithFunctions {
    async fn call(&self, request: &ToolRequest) -> Result<Value, TaskFailure> {
        let function = self.functions.0.get(&request.name).filter(|_| request.tool.kind == ToolKind::Function);
        let Some(function) = function else { return self.others.call(request).await };
        let failed = |message: String, late| TaskFailure {
            retryable: late,
            uncertain: late,
            ..TaskFailure::new(FlowCode::ToolFailed, message)
        };
        let limit = request.tool.timeout();
        match tokio::time::timeout(limit.0, function(request.arguments.clone())).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(message)) => Err(failed(message, false)),
            Err(_) => Err(failed(format!("`{}` did not answer within {limit}", request.name), true)),
        }
    }

    async fn describe(&self, tools: &mut [ToolSpec]) {
        self.others.describe(tools).await;
    }

    async fn close(&self) {
        self.others.close().await;
    }
}
