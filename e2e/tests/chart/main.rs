//! The chart by the real helm: what it renders, what it refuses, what the API server accepts, and what runs with it.

mod admission;
mod capz;
mod life;
mod life_of_capz;
mod life_on_aws;
mod monitors;
mod program;
mod release;
mod render;
mod values;
mod waits;
