//! The screen: ASCII, bold and reverse only, so that any terminal can show it.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Clear, Paragraph, Row, Table};

use super::app::App;
use super::grid::{Column, Pane, Value, clean, rows};
use super::plain::totals;

const KEYS: &str = "? help  Tab pane  s sort  / filter  w worker  p pause  +- interval  q quit";
const HELP: [&str; 14] = [
    "Tab, 1-4     next pane, or this one",
    "s, r         sort by the next column; reverse",
    "/            filter by name (Enter keeps, Esc clears)",
    "w            nodes of all workers, or of one",
    "a            also what stands still",
    "e            also events, which no packet died of",
    "p, Space     let the picture stand still",
    "+ -          longer or shorter interval",
    "j k, arrows  scroll; PgUp, PgDn, Home, End too",
    "q, Ctrl-C    leave",
    "",
    "Share: of a worker's time. Busy: of it, what was not",
    "spent on asking empty queues. Bits: of layer 2,",
    "without FCS.",
];

fn plain() -> Style {
    Style::new()
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn reversed() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}

/// Draw everything.
pub fn draw(frame: &mut Frame, app: &mut App) {
    let [title, sums, alert, tabs, body, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(2),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let pause = if app.is_paused { "  PAUSED" } else { "" };
    let every = app.interval.as_millis() as f64 / 1000.0;
    let heading = format!("quiverctl top  every {every} s{pause}  {}", clean(&app.socket, app.utf8));
    frame.render_widget(Paragraph::new(Span::styled(heading, bold())), title);
    let line = app.picture.as_ref().map_or_else(|| "measuring".to_owned(), totals);
    frame.render_widget(Paragraph::new(line), sums);
    frame.render_widget(Paragraph::new(Span::styled(warning(app), reversed())), alert);
    frame.render_widget(Paragraph::new(tab_line(app)), tabs);
    draw_table(frame, app, body);
    let foot = if app.types_filter {
        Line::from(format!("filter: {}_", clean(&app.choice.filter, app.utf8)))
    } else {
        Line::from(KEYS)
    };
    frame.render_widget(Paragraph::new(foot), keys);
    if app.shows_help {
        draw_help(frame);
    }
}

/// What is wrong, worst first.
fn warning(app: &App) -> String {
    if let Some(why) = &app.lost {
        return format!(" The router is gone; trying again. {} ", clean(why, app.utf8));
    }
    let workers = app.picture.iter().flat_map(|picture| &picture.workers);
    let stalled: Vec<String> = workers
        .filter_map(|w| {
            Some(format!("worker {} STALLS for {:.0} s {}", w.worker, w.stalled_s?, clean(&w.at, app.utf8)))
        })
        .collect();
    match stalled.is_empty() {
        false => format!(" {} ", stalled.join(", ")),
        true if app.returned => " The router was gone and is there again. ".to_owned(),
        true => String::new(),
    }
}

fn tab_line(app: &App) -> Line<'static> {
    let mut spans = Vec::new();
    for (index, pane) in Pane::ALL.into_iter().enumerate() {
        let style = if pane == app.pane { reversed().add_modifier(Modifier::BOLD) } else { plain() };
        spans.push(Span::styled(format!(" {} {} ", index + 1, pane.title()), style));
    }
    if let (Pane::Nodes, Some(worker)) = (app.pane, app.choice.worker) {
        spans.push(Span::raw(format!("  worker {worker}")));
    }
    if !app.choice.filter.is_empty() {
        spans.push(Span::raw(format!("  filter: {}", clean(&app.choice.filter, app.utf8))));
    }
    Line::from(spans)
}

fn draw_table(frame: &mut Frame, app: &mut App, area: Rect) {
    let columns = app.pane.columns();
    let rows = app.picture.as_ref().map(|picture| rows(app.pane, picture, &app.choice)).unwrap_or_default();
    let height = usize::from(area.height.saturating_sub(1));
    app.rows_shown = height;
    app.top_row = app.top_row.min(rows.len().saturating_sub(height));
    let utf8 = app.utf8;
    let shown = rows.iter().skip(app.top_row).take(height);
    let shown = shown.map(|row| table_row(columns, row, utf8));
    let (sorted, backwards) = app.order();
    let titles = columns.iter().enumerate().map(|(index, column)| {
        let mark = match (index == sorted, backwards) {
            (false, _) => "",
            (true, false) => "*",
            (true, true) => "^",
        };
        aligned(columns, index, format!("{mark}{}", column.title))
    });
    let header = Row::new(titles).style(bold().add_modifier(Modifier::UNDERLINED));
    let table = Table::new(shown, widths(columns)).header(header).column_spacing(0);
    frame.render_widget(table, area);
    if rows.is_empty() && area.height > 2 {
        let text = match (app.picture.is_some(), app.choice.filter.is_empty()) {
            (false, _) => "",
            (true, true) => "nothing moves (a shows what stands still)",
            (true, false) => "nothing fits the filter",
        };
        frame.render_widget(Paragraph::new(text), Rect { y: area.y + 1, height: 1, ..area });
    }
}

/// The first column takes what is left; among drops it is the last, which tells the reason.
fn widths(columns: &[Column]) -> Vec<Constraint> {
    let widest = columns.iter().enumerate().max_by_key(|(_, column)| column.width).map(|(index, _)| index);
    let width = |(index, column): (usize, &Column)| {
        if Some(index) == widest { Constraint::Min(column.width) } else { Constraint::Length(column.width) }
    };
    columns.iter().enumerate().map(width).collect()
}

/// Numbers to the right, text to the left, and a space between the two.
fn aligned(columns: &[Column], index: usize, text: String) -> Cell<'static> {
    let is_number = columns[index].is_number;
    let follows_number = index > 0 && columns[index - 1].is_number;
    let text = if is_number || follows_number { format!(" {text}") } else { text };
    Cell::from(Line::from(text).alignment(if is_number { Alignment::Right } else { Alignment::Left }))
}

fn table_row(columns: &'static [Column], row: &[Value], utf8: bool) -> Row<'static> {
    let cells = row.iter().take(columns.len()).enumerate();
    let cells = cells.map(|(index, value)| aligned(columns, index, clean(&value.show(), utf8)));
    let stalls = row.iter().any(|value| matches!(value, Value::Text(text) if text.starts_with("STALLED")));
    Row::new(cells).style(if stalls { reversed() } else { plain() })
}

fn draw_help(frame: &mut Frame) {
    let area = frame.area();
    let lines: Vec<Line> = HELP.iter().map(|line| Line::from(format!("| {line:<53}|"))).collect();
    let (width, height) = (56.min(area.width), (lines.len() as u16 + 2).min(area.height));
    let rule = Line::from(format!("+{}+", "-".repeat(54)));
    let all: Vec<Line> = std::iter::once(rule.clone()).chain(lines).chain([rule]).collect();
    let place = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(all), place);
}
