//! The server as rmcp wants it: lists, reads, subscriptions; tools, prompts and tasks are passed on.
//!
//! Owns [`Server`], one for each session or modern request, and [`Shared`], what outlives them.

#![expect(deprecated, reason = "logging is deprecated from 2026-07-28 on, and required before")]

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, GetPromptRequestParams, GetPromptResponse,
        GetTaskParams, GetTaskResult, Implementation, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, LoggingLevel, PaginatedRequestParams, Prompt, ProtocolVersion,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, RequestStateCodec, Resource,
        ResourceContents, ResourceTemplate, ServerCapabilities, ServerConfig, SetLevelRequestMethod,
        SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
        UpdateTaskParams,
    },
    service::{RequestContext, SubscriptionContext},
    task_manager::TaskManager,
};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;

use crate::{prompts, tools, tools::PICTURE};

/// Everything that is listed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Offers {
    tools: Vec<Tool>,
    prompts: Vec<Prompt>,
    resources: Vec<Resource>,
    resource_templates: Vec<ResourceTemplate>,
}

static OFFERS: LazyLock<Offers> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the file is part of the program, and every run reads it")]
    serde_json::from_str(include_str!("offers.json")).expect("offers.json holds lists of MCP")
});

/// What all sessions and requests have in common.
pub(crate) struct Shared {
    pub(crate) tasks: TaskManager,
    /// Seals the state that clients carry from round to round.
    pub(crate) states: RequestStateCodec,
    /// Whether the tool that comes and goes is there.
    pub(crate) extra_tool: watch::Sender<bool>,
    /// Whether the prompt that comes and goes is there.
    pub(crate) extra_prompt: watch::Sender<bool>,
}

impl Shared {
    pub(crate) fn try_new() -> Result<Self, Box<dyn std::error::Error>> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| error.to_string())?;
        Ok(Self {
            tasks: TaskManager::new(),
            states: RequestStateCodec::try_new(secret)?,
            extra_tool: watch::Sender::new(false),
            extra_prompt: watch::Sender::new(false),
        })
    }
}

/// The server towards one client.
pub(crate) struct Server {
    pub(crate) shared: Arc<Shared>,
    /// The least level that the session's client wants to hear; it hears nothing before it says so.
    log_level: Mutex<Option<LoggingLevel>>,
}

impl Server {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, log_level: Mutex::new(None) }
    }

    /// Whether the client wants to hear what is said at level `info`: by the request in the modern era, by the session before.
    pub(crate) fn logs_info(&self, context: &RequestContext<RoleServer>) -> bool {
        let of_session = *self.log_level.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(context.meta.log_level().or(of_session), Some(LoggingLevel::Debug | LoggingLevel::Info))
    }
}

/// Whether the request is of the era without sessions.
pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_completions()
            .enable_prompts()
            .enable_resources()
            .enable_tools()
            .enable_prompts_list_changed()
            .enable_resources_subscribe()
            .enable_tool_list_changed()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("conformance", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let all = *self.shared.extra_tool.borrow();
        let tools = OFFERS.tools.iter().filter(|tool| all || tool.name != "test_changing_tool");
        Ok(ListToolsResult::with_all_items(tools.cloned().collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        OFFERS.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tools::call(self, &request, &context).await
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let all = *self.shared.extra_prompt.borrow();
        let prompts = OFFERS.prompts.iter().filter(|prompt| all || prompt.name != "test_changing_prompt");
        Ok(ListPromptsResult::with_all_items(prompts.cloned().collect()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&self.shared.states, &request)
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(OFFERS.resources.clone()))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(OFFERS.resource_templates.clone()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let record = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let contents = match (uri, record) {
            ("test://static-text", _) => {
                ResourceContents::text("This is the content of the static text resource.", uri)
                    .with_mime_type("text/plain")
            }
            ("test://static-binary", _) => ResourceContents::blob(PICTURE, uri).with_mime_type("image/png"),
            ("test://watched-resource", _) => {
                ResourceContents::text("This text never changes.", uri).with_mime_type("text/plain")
            }
            (_, Some(id)) => {
                let record = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                ResourceContents::text(record.to_string(), uri).with_mime_type("application/json")
            }
            (_, None) => return Err(ErrorData::resource_not_found("resource not found", Some(json!({"uri": uri})))),
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let mut tool = self.shared.extra_tool.subscribe();
        let mut prompt = self.shared.extra_prompt.subscribe();
        loop {
            // What the client has not asked for, the sink refuses; that is no fault.
            tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                Ok(()) = tool.changed() => subscription.sink().notify_tool_list_changed().await.ok(),
                Ok(()) = prompt.changed() => subscription.sink().notify_prompt_list_changed().await.ok(),
            };
        }
    }

    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if is_modern(&context) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.level);
        Ok(())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.shared.tasks.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.shared.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.shared.tasks.cancel_task(&request.task_id)
    }
}
