//! Builds clients and runs the controllers of the chosen roles.
