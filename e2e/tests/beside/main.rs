//! Hyperlink beside HyperShift's own controllers: clusters that one made and the other takes over, or that both serve.

mod adoption;
mod contradiction;
mod go_alone;
mod mixed;
mod mixed_env;
mod side_by_side;
mod way_back;
