//! Node by node and in one pass, on every variant of the processor, packets meet the same fate.

mod bridge;
mod fixture;
mod forms;
mod functions;
mod golden;
mod labels;
mod local_sids;
mod malformed;
mod malformed_headend;
mod order;
