//! The neighbours that End.X, End.DX4 and End.DX6 send to: paths in the FIB, so that they follow
//! interfaces and neighbours. Several share the packets by their flows.

use std::net::IpAddr;

use quiver_control::{Args, Refusal};
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib, Path, Target};
use quiver_tables::GroupId;

use crate::local_sids::{self, Names, Place, refusal};

/// Neighbours, and the groups held of them.
#[derive(Debug)]
pub(crate) struct Adjacent {
    paths: Vec<Path>,
    held: Vec<GroupId>,
}

impl Adjacent {
    /// Of the words `IF NEXT-HOP …`.
    pub fn of(engine: &Engine, args: &Args<'_>) -> Result<Adjacent, Refusal> {
        let path = |to: Args<'_>| {
            let interface = to.interface(engine, "interface")?;
            Ok(Path::via(to.get::<IpAddr>("next-hop")?, Some(interface)))
        };
        let paths = args.groups("interface").map(path).collect::<Result<Vec<_>, Refusal>>()?;
        Ok(Adjacent { paths, held: Vec::new() })
    }

    /// One, or none.
    pub fn to(neighbour: Option<(IpAddr, InterfaceId)>) -> Adjacent {
        let path = neighbour.map(|(next_hop, interface)| Path::via(next_hop, Some(interface)));
        Adjacent { paths: path.into_iter().collect(), held: Vec::new() }
    }

    /// As they stand in the command.
    pub fn words(&self, names: &Names<'_>) -> String {
        let word = |path: &Path| match path.target {
            Target::Via { next_hop, interface: Some(interface) } => {
                format!(" {} {next_hop}", names.engine.interface_name(interface))
            }
            _ => String::new(),
        };
        self.paths.iter().map(word).collect()
    }

    /// Hold the group of these neighbours for packets of a family.
    pub fn hold(
        &mut self,
        engine: &mut Engine,
        place: Place,
        family: Family,
    ) -> Result<u32, Refusal> {
        let held = local_sids::fib(engine)?.hold_paths(family, 0, &self.paths);
        match held {
            Ok(group) => {
                self.held.push(group);
                Ok(group.0)
            }
            Err(error) => {
                self.release(engine);
                Err(refusal(engine, place, error))
            }
        }
    }

    /// Let go of all groups.
    pub fn release(&mut self, engine: &mut Engine) {
        let held = std::mem::take(&mut self.held);
        if let Some(fib) = engine.get_mut::<Fib>() {
            held.into_iter().for_each(|group| fib.release_paths(group));
        }
    }

    /// Is one of them behind this interface?
    pub fn names(&self, interface: InterfaceId) -> bool {
        let on = |path: &Path| {
            matches!(
                path.target, Target::Via { interface: Some(on), .. } if on == interface
            )
        };
        self.paths.iter().any(on)
    }
}
