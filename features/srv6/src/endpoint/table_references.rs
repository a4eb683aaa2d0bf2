//! The tables that End.T and End.DT… look up in, by the operator's number: held, so that they are
//! not deleted.

use quiver_control::Refusal;
use quiver_core::Engine;
use quiver_forwarding::fib::{Family, Fib, FibError};

use crate::local_sids;

/// Who holds them, in the refusal to delete one.
const HOLDER: &str = "a local SID (`show sr localsids`)";

/// Tables by their small numbers.
#[derive(Debug, Default)]
pub(crate) struct TableReferences(Vec<(Family, u32)>);

impl TableReferences {
    /// Hold the table `id` of a family; its small number.
    pub fn hold(&mut self, engine: &mut Engine, family: Family, id: u32) -> Result<u32, Refusal> {
        let fib = local_sids::fib(engine)?;
        let Some(table) = fib.table_index(family, id) else {
            self.release(engine);
            return Err(Refusal::new(FibError::NoTable { family, id }.to_string()));
        };
        fib.hold_table(family, table, HOLDER);
        self.0.push((family, table));
        Ok(table)
    }

    /// Let go of all.
    pub fn release(&mut self, engine: &mut Engine) {
        let held = std::mem::take(&mut self.0);
        if let Some(fib) = engine.get_mut::<Fib>() {
            held.into_iter().for_each(|(family, table)| fib.release_table(family, table, HOLDER));
        }
    }
}
