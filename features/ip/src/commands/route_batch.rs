//! Many routes in a row, as in a file: what is the same in their commands is worked out once, and
//! the FIB changes them together.

use quiver_control::{Args, Batch, BatchRefusal, Refusal, Value};
use quiver_core::Engine;
use quiver_forwarding::fib::{Change, Family, Fib, Path, RouteChange, SeriesRefused, Source};
use quiver_tables::prefix::IpPrefix;

use super::routes::{checked, depends_on_prefix, paths};
use super::table_of;

/// What the commands of one form come to, for prefixes of one family.
#[derive(Clone, Copy)]
enum Meaning {
    Change {
        table: u32,
        change: Change,
    },
    /// It is done by itself.
    Alone,
}

/// What is known of the forms of a batch, and the changes that wait to be made together.
struct Together<'b, 'a> {
    batch: &'b Batch<'a>,
    meanings: Vec<[Option<Meaning>; 2]>,
    path_sets: Vec<Vec<Path>>,
    /// Where the waiting changes go: family and table.
    place: (Family, u32),
    /// The row of the first of them.
    first: usize,
    ip4: Vec<RouteChange<u32>>,
    ip6: Vec<RouteChange<u128>>,
}

/// Do the commands of a batch. Returns how many were done: the next, if there is one, is not one
/// for a batch.
pub(super) fn change_many(engine: &mut Engine, batch: &Batch<'_>) -> Result<usize, BatchRefusal> {
    let mut together = Together {
        batch,
        meanings: vec![[None; 2]; batch.forms()],
        path_sets: Vec::new(),
        place: (Family::Ip4, 0),
        first: 0,
        ip4: Vec::new(),
        ip6: Vec::new(),
    };
    for (at, (form, value)) in batch.rows().enumerate() {
        match together.take(engine, at, form, value) {
            Ok(Some(())) => {}
            Ok(None) => {
                together.flush(engine, at)?;
                return Ok(at);
            }
            Err(Fault::Row(refusal)) => {
                together.flush(engine, at)?;
                return Err(BatchRefusal { applied: at, refusal });
            }
            Err(Fault::Earlier(refused)) => return Err(refused),
        }
    }
    together.flush(engine, batch.len())?;
    Ok(batch.len())
}

/// What is wrong: the row itself, or one of those that waited.
enum Fault {
    Row(Refusal),
    Earlier(BatchRefusal),
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Fault {
        Fault::Row(refusal)
    }
}

impl Together<'_, '_> {
    /// Let one more row wait. `None` if it is not one for a batch.
    #[inline]
    fn take(
        &mut self,
        engine: &mut Engine,
        at: usize,
        form: usize,
        value: Option<Value<'_>>,
    ) -> Result<Option<()>, Fault> {
        let Some(Value::Prefix(written)) = value else { return Ok(None) };
        let family = Family::of(written.address);
        let meaning = match self.meanings[form][family as usize] {
            Some(meaning) => meaning,
            None => self.meaning(engine, form, family)?,
        };
        let Meaning::Change { table, change } = meaning else { return Ok(None) };
        let prefix = match written.has_host_bits() {
            false => IpPrefix::new(written.address, written.length),
            true => self.batch.with(at, |args| checked(args, written))?,
        };
        if self.place != (family, table) {
            self.flush(engine, at).map_err(Fault::Earlier)?;
            self.place = (family, table);
        }
        match prefix {
            IpPrefix::V4(prefix) => self.ip4.push(RouteChange { prefix, change }),
            IpPrefix::V6(prefix) => self.ip6.push(RouteChange { prefix, change }),
        }
        Ok(Some(()))
    }

    /// Work out what a form means.
    fn meaning(
        &mut self,
        engine: &Engine,
        form: usize,
        family: Family,
    ) -> Result<Meaning, Refusal> {
        let args: Args<'_> = self.batch.form(form);
        let meaning = if args.has("count") {
            Meaning::Alone
        } else {
            let table = table_of(engine, &args, family, "table")?;
            let paths = paths(engine, &args)?;
            if depends_on_prefix(engine, &paths) {
                self.meanings[form][family as usize] = Some(Meaning::Alone);
                return Ok(Meaning::Alone);
            }
            let set = self.path_sets.len() as u32;
            let change = match (!args.has("del"), paths.is_empty()) {
                (true, _) if args.has("replace") => Change::Replace(set),
                (true, _) => Change::Add(set),
                (false, false) => Change::RemovePaths(set),
                (false, true) => Change::Remove,
            };
            self.path_sets.push(paths);
            Meaning::Change { table, change }
        };
        self.meanings[form][family as usize] = Some(meaning);
        Ok(meaning)
    }

    /// Make the waiting changes; those of row `next` and on are yet to come.
    fn flush(&mut self, engine: &mut Engine, next: usize) -> Result<(), BatchRefusal> {
        let first = std::mem::replace(&mut self.first, next);
        if self.ip4.is_empty() && self.ip6.is_empty() {
            return Ok(());
        }
        let Some(fib) = engine.get_mut::<Fib>() else {
            return Err(BatchRefusal { applied: first, refusal: super::busy() });
        };
        let (family, table) = self.place;
        let done = match family {
            Family::Ip4 => fib.change_ip4_routes(table, Source::Static, &self.path_sets, &self.ip4),
            Family::Ip6 => fib.change_ip6_routes(table, Source::Static, &self.path_sets, &self.ip6),
        };
        self.ip4.clear();
        self.ip6.clear();
        done.map_err(|SeriesRefused { at, error }| BatchRefusal {
            applied: first + at,
            refusal: Refusal::of_table(engine, error),
        })
    }
}
