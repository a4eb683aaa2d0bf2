//! End.BM (RFC 8986 §4.15): to the next segment, through an SR-MPLS policy that its binding label
//! names. The labels are put in front by the nodes of the policy's paths; the packet's own part is
//! that of End.X.

use quiver_control::{Args, Refusal};
use quiver_core::Engine;
use quiver_forwarding::fib::{Family, Path, Target};
use quiver_tables::GroupId;

use super::end_x;
use super::sid_entry::SidEntry;
use crate::local_sids::{self, Behavior, Held, Kind, Names, Place, refusal};

/// The label table of binding labels: its number.
const TABLE: u32 = 0;

/// The control side.
#[derive(Debug)]
struct EndBm {
    bsid: u32,
    held: Option<GroupId>,
}

impl Behavior for EndBm {
    fn words(&self, _: &Names<'_>) -> String {
        format!("end.bm {}", self.bsid)
    }

    fn hold(&mut self, engine: &mut Engine, place: Place) -> Result<Held, Refusal> {
        let node = engine
            .node_id(end_x::NODE)
            .ok_or_else(|| Refusal::new("the node of End.BM is not built in"))?;
        let fib = local_sids::fib(engine)?;
        let table = fib.label_table_index(TABLE).ok_or_else(|| {
            Refusal::new(format!("there is no MPLS table {TABLE}, which binding labels are in"))
                .remedy(format!("mpls table add {TABLE}"))
        })?;
        // The policy may come later: until then its packets have no path.
        let path = Path::new(Target::ThroughLabel { label: self.bsid, table });
        let group = match fib.hold_paths(Family::Ip6, 0, &[path]) {
            Ok(group) => group,
            Err(error) => return Err(refusal(engine, place, error)),
        };
        self.held = Some(group);
        Ok(Held { node, words: SidEntry { six: group.0, ..SidEntry::default() }.words() })
    }

    fn release(&mut self, engine: &mut Engine) {
        if let Some(group) = self.held.take()
            && let Ok(fib) = local_sids::fib(engine)
        {
            fib.release_paths(group);
        }
    }
}

/// Of a command's words.
fn make(_: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Behavior>, Refusal> {
    Ok(Box::new(EndBm { bsid: args.get("bsid")?, held: None }))
}

/// What the command knows.
pub(crate) const KINDS: [Kind; 1] = [Kind {
    name: "end.bm",
    syntax: "<bsid:16-1048575>",
    help: "to the next segment, through the SR-MPLS policy with this binding label",
    words: &[("bsid", "the binding label of an SR-MPLS policy (`sr mpls policy add`)")],
    example: "end.bm 40001",
    make,
}];
