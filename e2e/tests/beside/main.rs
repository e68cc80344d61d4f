//! Hyperlink beside HyperShift's own controllers: clusters that were made by one and go on with the other, or with both.

mod adoption;
mod contradiction;
mod go_alone;
mod going_back;
mod mixed;
mod mixed_env;
mod side_by_side;
