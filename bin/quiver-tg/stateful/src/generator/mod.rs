//! A generator of transactions: an engine with one worker, its ports, and how it measures.

mod assembly;
mod measuring;
mod running;

pub use assembly::StatefulGenerator;
