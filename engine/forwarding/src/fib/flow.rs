//! What makes a flow, where the routes of a table have several paths.

use quiver_wire::flow::FlowFields;

use super::link::Link;
use super::path::Family;
use super::{Fib, FibError, path_list};

impl Fib {
    /// What makes a flow where routes of this table have several paths.
    pub fn flow_fields(&self, family: Family, table: u32) -> FlowFields {
        self.flow_fields.get(&(family, table)).copied().unwrap_or_default()
    }

    /// Let these fields make a flow, from now on: one store for each group of the table.
    ///
    /// # Errors
    /// The table does not exist, or there is no memory for its groups.
    pub fn set_flow_fields(
        &mut self,
        family: Family,
        table: u32,
        fields: FlowFields,
    ) -> Result<(), FibError> {
        if !self.families.exists(family, table) {
            return Err(FibError::NoTableIndex { family, index: table });
        }
        match fields.is_default() {
            true => self.flow_fields.remove(&(family, table)),
            false => self.flow_fields.insert((family, table), fields),
        };
        let link = Link::from(family);
        let fields = self.group_fields(link, table);
        let here = |list: &path_list::PathList| (list.key.payload, list.key.table) == (link, table);
        for (group, _) in self.lists.iter().filter(|(_, list)| here(list)) {
            self.groups.set_fields(group, fields);
        }
        Ok(())
    }

    /// What the router mixes into flow hashes; 0 for nothing.
    pub fn flow_seed(&self) -> u32 {
        self.groups.table().seed()
    }

    /// Mix this into flow hashes of all tables from now on; 0 for nothing.
    pub fn set_flow_seed(&mut self, seed: u32) {
        self.groups.set_seed(seed);
        let all = self.lists.iter();
        let all: Vec<_> =
            all.map(|(group, list)| (group, list.key.payload, list.key.table)).collect();
        for (group, family, table) in all {
            let fields = self.group_fields(family, table);
            self.groups.set_fields(group, fields);
        }
    }

    /// The fields of a table's groups, as workers read them.
    pub(super) fn group_fields(&self, link: Link, table: u32) -> FlowFields {
        let fields =
            link.family().map_or_else(FlowFields::default, |of| self.flow_fields(of, table));
        if self.flow_seed() == 0 { fields } else { fields.and(FlowFields::SEEDED) }
    }
}
