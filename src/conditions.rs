//! Condition types and how sets of conditions are compared and merged.
