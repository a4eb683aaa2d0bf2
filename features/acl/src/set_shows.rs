//! `show acl-plugin sets`.

use quiver_control::{Cell, Column, Command, Listing, Output, Refusal, Registry, Table, Work};
use quiver_core::Engine;
use serde_json::json;

use crate::commands::GROUP;
use crate::config::Lists;
use crate::element::Element;
use crate::named_set::Kind;
use crate::set_config::no_set;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show acl-plugin sets [<set:word>]")
            .also("show acl sets [<set:word>]")
            .group(GROUP)
            .help("Show the named sets that rules ask and who uses them, or the elements of one")
            .example("show acl-plugin sets blocked")
            .run_or_begin(|engine: &mut Engine, args| match args.optional("set")? {
                Some(set) => elements(engine, set),
                None => sets(engine),
            }),
    );
}

fn sets(engine: &mut Engine) -> Result<Work<Engine>, Refusal> {
    let columns = [
        Column::left("Set"),
        Column::left("Of"),
        Column::right("Elements"),
        Column::left("Access lists"),
    ];
    let names = engine.get::<Lists>().map(|lists| lists.sets.names().map(str::to_owned).collect());
    let names: Vec<String> = names.unwrap_or_default();
    let add = |engine: &Engine, table: &mut Table, name: String| {
        let Some(lists) = engine.get::<Lists>() else { return };
        let Some(set) = lists.sets.get(&name) else { return };
        let count: usize = lists.sets.counts(&name).iter().sum();
        let users: Vec<u32> = lists.lists_with_set(&name).collect();
        let words: Vec<String> = users.iter().map(u32::to_string).collect();
        let users = Cell::new(words.join(" "), json!(users));
        table.row().cell(name.clone()).cell(set.kind().elements()).cell(count).cell(users);
    };
    Listing::over("sets", columns, names, add)
        .when_empty("no named sets; `set acl-plugin set` makes one")
        .begin(engine)
}

fn elements(engine: &mut Engine, name: &str) -> Result<Work<Engine>, Refusal> {
    let lists = engine.get::<Lists>().ok_or_else(|| Refusal::new("access lists are busy"))?;
    let kind = lists.sets.get(name).ok_or_else(|| no_set(None, name))?.kind();
    let [first, second] = lists.sets.counts(name);
    let users: Vec<u32> = lists.lists_with_set(name).collect();
    let words: Vec<String> = users.iter().map(u32::to_string).collect();
    let mut head = Output::none().field("Of", kind.elements());
    head = match kind {
        Kind::Addresses => head.field("IPv4 prefixes", first).field("IPv6 prefixes", second),
        _ => head.field("Count", first),
    };
    let head = head.field("Access lists", Cell::new(words.join(" "), json!(users)));
    let name = name.to_owned();
    let mut after: Option<Element> = None;
    let rows = move |engine: &mut Engine, table: &mut Table, most: usize| {
        let Some(lists) = engine.get::<Lists>() else { return Ok(Some(Output::none())) };
        let found = lists.sets.elements(&name, after, most);
        for element in &found {
            table.row().cell(element.words(engine));
        }
        after = found.last().copied().or(after);
        Ok((found.len() < most).then(Output::none))
    };
    Listing::new("elements", [Column::left("Element")], rows).head(head).begin(engine)
}
