//! Cursor agent.
