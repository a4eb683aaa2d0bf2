//! The screen: ASCII, bold and reverse only, so that any terminal can show it.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Clear, Paragraph, Row, Table};

use crate::View;
use crate::app::App;
use crate::table::{Column, Value, clean, rows, scaled};

/// Lines of the plot, its heading among them; below this many rows of the table there is none.
const PLOT_LINES: u16 = 7;
const PLOT_FROM_LINES: u16 = 16;

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
pub fn draw<V: View>(frame: &mut Frame, app: &mut App<V>) {
    let plot_lines = if has_plot(frame, app) { PLOT_LINES } else { 0 };
    let [title, sums, alert, tabs, body, plot, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(2),
        Constraint::Length(plot_lines),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let pause = if app.is_paused { "  PAUSED" } else { "" };
    let every = app.interval.as_millis() as f64 / 1000.0;
    let heading =
        format!("{}  every {every} s{pause}  {}", V::PROGRAM, clean(&app.place, app.utf8));
    frame.render_widget(Paragraph::new(Span::styled(heading, bold())), title);
    let line = app.picture.as_ref().map_or_else(|| "measuring".to_owned(), View::totals);
    frame.render_widget(Paragraph::new(line), sums);
    frame.render_widget(Paragraph::new(Span::styled(warning(app), reversed())), alert);
    frame.render_widget(Paragraph::new(tab_line(app)), tabs);
    draw_table(frame, app, body);
    if plot_lines > 0 {
        draw_plot(frame, app, plot);
    }
    let foot = if app.types_filter {
        Line::from(format!("filter: {}_", clean(&app.choice.filter, app.utf8)))
    } else {
        Line::from(V::KEYS)
    };
    frame.render_widget(Paragraph::new(foot), keys);
    if app.shows_help {
        draw_help(frame, V::HELP);
    }
}

fn has_plot<V: View>(frame: &Frame, app: &App<V>) -> bool {
    !V::PLOT.is_empty()
        && !app.history.is_empty()
        && frame.area().height >= PLOT_FROM_LINES + PLOT_LINES
}

/// Columns of marks, the newest at the right; the smaller rate stands in the larger one.
fn draw_plot<V: View>(frame: &mut Frame, app: &App<V>, area: Rect) {
    let lines = usize::from(area.height.saturating_sub(1));
    let shown = app.history.iter().rev().take(usize::from(area.width)).rev();
    let points: Vec<(f64, f64)> = shown.copied().collect();
    let most = points.iter().map(|(whole, _)| *whole).fold(0.0, f64::max);
    let mut text = vec![Line::from(format!("{}, up to {}", V::PLOT, scaled(most)))];
    for line in (0..lines).rev() {
        let floor = most * (line as f64 + 0.5) / lines as f64;
        let mark = |(whole, part): &(f64, f64)| match (*part >= floor, *whole >= floor) {
            _ if most == 0.0 => ' ',
            (true, _) => '#',
            (false, true) => '.',
            (false, false) => ' ',
        };
        text.push(Line::from(points.iter().map(mark).collect::<String>()));
    }
    frame.render_widget(Paragraph::new(text), area);
}

/// What is wrong, worst first.
fn warning<V: View>(app: &App<V>) -> String {
    if let Some(why) = &app.lost {
        return format!(" The {} is gone; trying again. {} ", V::PEER, clean(why, app.utf8));
    }
    match app.picture.as_ref().and_then(View::alert) {
        Some(alert) => format!(" {} ", clean(&alert, app.utf8)),
        None if app.returned => format!(" The {} was gone and is there again. ", V::PEER),
        None => String::new(),
    }
}

fn tab_line<V: View>(app: &App<V>) -> Line<'static> {
    let mut spans = Vec::new();
    let is_there = |index: usize| app.picture.as_ref().is_none_or(|picture| picture.has(index));
    for (index, pane) in V::PANES.iter().enumerate().filter(|(index, _)| is_there(*index)) {
        let style =
            if index == app.pane { reversed().add_modifier(Modifier::BOLD) } else { plain() };
        spans.push(Span::styled(format!(" {} {} ", index + 1, pane.title), style));
    }
    if let (0, Some(part)) = (app.pane, app.choice.part) {
        spans.push(Span::raw(format!("  worker {part}")));
    }
    if !app.choice.filter.is_empty() {
        spans.push(Span::raw(format!("  filter: {}", clean(&app.choice.filter, app.utf8))));
    }
    Line::from(spans)
}

fn draw_table<V: View>(frame: &mut Frame, app: &mut App<V>, area: Rect) {
    let columns = V::PANES[app.pane].columns;
    let rows = app
        .picture
        .as_ref()
        .map(|picture| rows(app.pane, picture, &app.choice))
        .unwrap_or_default();
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
    let widest =
        columns.iter().enumerate().max_by_key(|(_, column)| column.width).map(|(index, _)| index);
    let width = |(index, column): (usize, &Column)| {
        if Some(index) == widest {
            Constraint::Min(column.width)
        } else {
            Constraint::Length(column.width)
        }
    };
    columns.iter().enumerate().map(width).collect()
}

/// Numbers to the right, text to the left, and a space between the two.
fn aligned(columns: &[Column], index: usize, text: String) -> Cell<'static> {
    let is_number = columns[index].is_number;
    let follows_number = index > 0 && columns[index - 1].is_number;
    let text = if is_number || follows_number { format!(" {text}") } else { text };
    Cell::from(Line::from(text).alignment(if is_number {
        Alignment::Right
    } else {
        Alignment::Left
    }))
}

fn table_row(columns: &'static [Column], row: &[Value], utf8: bool) -> Row<'static> {
    let cells = row.iter().take(columns.len()).enumerate();
    let cells = cells.map(|(index, value)| aligned(columns, index, clean(&value.show(), utf8)));
    let stalls =
        row.iter().any(|value| matches!(value, Value::Text(text) if text.starts_with("STALLED")));
    Row::new(cells).style(if stalls { reversed() } else { plain() })
}

fn draw_help(frame: &mut Frame, help: &[&str]) {
    let area = frame.area();
    let lines: Vec<Line> = help.iter().map(|line| Line::from(format!("| {line:<53}|"))).collect();
    let (width, height) = (56.min(area.width), (lines.len() as u16 + 2).min(area.height));
    let rule = Line::from(format!("+{}+", "-".repeat(54)));
    let all: Vec<Line> = std::iter::once(rule.clone()).chain(lines).chain([rule]).collect();
    let place = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(all), place);
}
