//! The Agent Client Protocol.
