//! The MCP server, the same over stdio and HTTP. Over HTTP each request brings its own account.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use crate::account::Account;
use crate::documentation::NAME;
use crate::tools::{self, Caller, TOOLS};
use crate::wait::{Progress, Waits};

/// The server.
#[derive(Debug, Clone)]
pub struct Server {
    /// Whose it is; over HTTP that of the request.
    account: Option<Arc<Account>>,
    waits: Waits,
}

impl Server {
    /// A server for this account, or for that of each request.
    pub fn new(account: Option<Arc<Account>>, waits: Waits) -> Self {
        Self { account, waits }
    }

    fn account(&self, context: &RequestContext<RoleServer>) -> Option<Arc<Account>> {
        self.account.clone().or_else(|| {
            let parts = context.extensions.get::<axum::http::request::Parts>()?;
            parts.extensions.get::<Arc<Account>>().cloned()
        })
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(
                Implementation::new(NAME, env!("CARGO_PKG_VERSION"))
                    .with_title("Cursor cloud agents"),
            )
            .with_instructions(
                "Delegates work to Cursor's cloud agents: createAgent starts one on a repository, getAgent shows its progress, \
                 addFollowup sends it further instructions. Agents cost money, push branches and may open pull requests.",
            )
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = TOOLS.iter().map(tools::Tool::listed).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<rmcp::model::Tool> {
        TOOLS
            .iter()
            .find(|tool| tool.name == name)
            .map(tools::Tool::listed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(account) = self.account(&context) else {
            return Err(ErrorData::internal_error(
                "the request has no account",
                None,
            ));
        };
        let caller = Caller {
            account: &account,
            waits: &self.waits,
            cancelled: &context.ct,
            progress: Progress {
                token: context.meta.get_progress_token(),
                peer: context.peer.clone(),
            },
        };
        let arguments = request.arguments.unwrap_or_default();
        match tools::call(&caller, &request.name, arguments).await {
            Some(result) => Ok(result.into()),
            None => {
                let name: String = request.name.chars().take(64).collect();
                Err(ErrorData::invalid_params(
                    format!("Unknown tool: {name}"),
                    None,
                ))
            }
        }
    }
}
