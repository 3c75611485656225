//! Real clients and the conformance suite.
