//! Every derived name of HyperShift and Azure objects.
