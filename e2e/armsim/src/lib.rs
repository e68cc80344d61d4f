//! A simulated Azure Resource Manager.
