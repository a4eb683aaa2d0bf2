//! `quiver-bench`: clocks per packet of the graph, beside a bare loop over the same packets.

mod bare;
mod forms;
mod population;

fn main() {
    forms::run();
}
