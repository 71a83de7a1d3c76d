//! gatekey: one binary between an agent and its MCP servers.
