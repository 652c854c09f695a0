// SPDX-License-Identifier: BSD-3-Clause
//! The picture on a terminal, and the keys that change it.

use std::io;
use std::time::Duration;

use anyhow::{Context, Result};
use postprocess::readable::{average, count, percent, time};
use postprocess::sink::summary::Summary;
use postprocess::time::Time;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::style::Stylize;
use ratatui::text::{Line, Text};
use ratatui::DefaultTerminal;

use super::Picture;

/// Number of CPUs with lines of their own, if lists are shown.
const CPUS: usize = 8;
/// Number of lists, selected by the keys from 1 on.
const LISTS: usize = 7;
/// Help text for the keys.
const KEYS: &str = "q quit  m second/minute  t time  c count  l longest  n name  1-7 one list  0 all  space hold";

/// Order of the rows of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    #[default]
    Time,
    Count,
    Longest,
    Name,
}

/// View selected by the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct View {
    minute: bool,
    order: Order,
    /// The list that is shown alone.
    list: Option<usize>,
    hold: bool,
}

/// A terminal that is restored once this is dropped.
#[derive(Debug)]
pub struct Screen {
    terminal: DefaultTerminal,
    view: View,
    picture: Option<Picture>,
}

impl Screen {
    /// Takes over the terminal.
    ///
    /// # Errors
    /// If the terminal cannot show this.
    pub fn open() -> Result<Screen> {
        let terminal = ratatui::try_init().context("terminal")?;
        let mut screen = Screen { terminal, view: View::default(), picture: None };
        screen.draw()?;
        Ok(screen)
    }

    /// Waits for this time, or for keys. Returns whether a key requests the end.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn wait(&mut self, time: Duration) -> Result<bool> {
        if !event::poll(time).or_else(unless_interrupted).context("terminal")? {
            return Ok(false);
        }
        let mut ended = false;
        while event::poll(Duration::ZERO).or_else(unless_interrupted).context("terminal")? {
            if let Event::Key(key) = event::read().context("terminal")? {
                let control = key.modifiers.contains(KeyModifiers::CONTROL);
                ended |= key.kind == KeyEventKind::Press && self.view.key(key.code, control);
            }
        }
        self.draw()?;
        Ok(ended)
    }

    /// Shows a picture.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn show(&mut self, picture: Picture) -> Result<()> {
        if !self.view.hold {
            self.picture = Some(picture);
        }
        self.draw()
    }

    fn draw(&mut self) -> Result<()> {
        let (picture, view) = (self.picture.as_ref(), self.view);
        let drawn = self.terminal.draw(|frame| {
            let area = frame.area();
            let lines = match picture {
                Some(picture) => lines(picture, view, area.height.into()),
                None => vec![Line::from("waiting for the first second")],
            };
            frame.render_widget(Text::from(lines), area);
        });
        drawn.context("terminal").map(|_| ())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// An interrupting signal is noted elsewhere.
fn unless_interrupted(error: io::Error) -> io::Result<bool> {
    match error.kind() {
        io::ErrorKind::Interrupted => Ok(false),
        _ => Err(error),
    }
}

impl View {
    /// Handles a key. Returns whether it requests the end.
    fn key(&mut self, key: KeyCode, control: bool) -> bool {
        match key {
            KeyCode::Char('c') if control => return true,
            KeyCode::Char('q') | KeyCode::Esc => return true,
            KeyCode::Char('m') => self.minute = !self.minute,
            KeyCode::Char('t') => self.order = Order::Time,
            KeyCode::Char('c') => self.order = Order::Count,
            KeyCode::Char('l') => self.order = Order::Longest,
            KeyCode::Char('n') => self.order = Order::Name,
            KeyCode::Char(' ') => self.hold = !self.hold,
            KeyCode::Char('0') => self.list = None,
            KeyCode::Char(digit) => {
                let list = digit.to_digit(10).map(|digit| digit as usize);
                self.list = list.filter(|list| (1..=LISTS).contains(list)).map(|list| list - 1).or(self.list);
            }
            _ => {}
        }
        false
    }
}

/// A row of a list: its sort keys, and its text.
struct Row {
    time: Time,
    count: u64,
    longest: Time,
    name: String,
    text: String,
}

/// A list with the names of its columns.
struct List {
    title: String,
    rows: Vec<Row>,
}

/// All lines of the screen.
fn lines(picture: &Picture, view: View, height: usize) -> Vec<Line<'static>> {
    let (shown, other, interrupts) = match view.minute {
        false => (&picture.second, &picture.minute, &picture.interrupts[0]),
        true => (&picture.minute, &picture.second, &picture.interrupts[1]),
    };
    let mut lines = vec![head(shown, picture.missed, view)];
    lines.extend(cpus(shown, interrupts));
    let room = height.saturating_sub(lines.len() + 1);
    let mut lists = lists(shown, other, view.minute);
    for list in &mut lists {
        list.rows.sort_by(|a, b| match view.order {
            Order::Time => b.time.cmp(&a.time),
            Order::Count => b.count.cmp(&a.count),
            Order::Longest => b.longest.cmp(&a.longest),
            Order::Name => a.name.cmp(&b.name),
        });
    }
    let sizes: Vec<usize> = lists.iter().map(|list| list.rows.len() + 1).collect();
    let rooms = match view.list {
        Some(one) => (0..lists.len()).map(|n| if n == one { room } else { 0 }).collect(),
        None => divide(room, &sizes),
    };
    for (list, room) in lists.into_iter().zip(rooms).filter(|(_, room)| *room > 0) {
        lines.push(Line::from(list.title).bold());
        lines.extend(list.rows.into_iter().take(room - 1).map(|row| Line::from(row.text)));
    }
    lines.resize(height.saturating_sub(1), Line::default());
    lines.push(Line::from(KEYS).dim());
    lines
}

/// Gives each list a fair share of the room, in lines: up to its size, while the other lists have less.
fn divide(room: usize, sizes: &[usize]) -> Vec<usize> {
    let mut rooms = vec![0; sizes.len()];
    for _ in 0..room {
        let wanting = (0..sizes.len()).filter(|&n| rooms[n] < sizes[n] && sizes[n] > 1);
        let Some(next) = wanting.min_by_key(|&n| rooms[n]) else { break };
        rooms[next] += 1;
    }
    // A title alone is useless.
    rooms.into_iter().map(|room| if room == 1 { 0 } else { room }).collect()
}

fn head(shown: &Summary, missed: u64, view: View) -> Line<'static> {
    let length = (shown.extent.1 - shown.extent.0).seconds().max(0.001);
    let per_second = (shown.events as f64 / length).round() as u64;
    let mut text = format!("kutrace {}  last {length:.1} s  {per_second} events/s", shown.meta.host);
    if shown.meta.lost > 0 {
        text += &format!("  {} LOST while recording", count(shown.meta.lost, "event", "events"));
    }
    if missed > 0 {
        text += &format!("  {} OVERWRITTEN before they were read", count(missed, "block", "blocks"));
    }
    if view.hold {
        text += "  HELD";
    }
    Line::from(text).reversed()
}

/// The time of the CPUs by kind; if there are many, of the busiest CPUs, and of all in one line.
fn cpus(shown: &Summary, interrupts: &[f64]) -> Vec<Line<'static>> {
    let row = |name: &str, share: postprocess::sink::summary::share::Share, interrupts: f64| {
        let all = share.total();
        let of = |part: Time| percent(part, all);
        let within = Time((interrupts * all.0 as f64) as i64);
        let columns = [of(share.user), of(share.kernel - within), of(within), of(share.idle), of(share.lost)];
        let columns: String = columns.iter().map(|column| format!("{column:>11}")).collect();
        Line::from(format!("{name:>5}{columns}"))
    };
    let mut all = postprocess::sink::summary::share::Share::default();
    shown.cpus.iter().for_each(|(_, share)| all += *share);
    let titles: String =
        ["user", "kernel", "interrupts", "idle", "not known"].map(|title| format!("{title:>11}")).concat();
    let mut lines = vec![Line::from(format!("{:>5}{titles}", "CPU")).bold()];
    let part = |n: usize| interrupts.get(n).copied().unwrap_or_default();
    lines.push(row("all", all, part(0)));
    let mut busiest: Vec<usize> = (0..shown.cpus.len()).collect();
    busiest.sort_by_key(|&n| (shown.cpus[n].1.idle, n));
    busiest.truncate(CPUS);
    busiest.sort_unstable();
    lines.extend(busiest.into_iter().map(|n| row(&shown.cpus[n].0.to_string(), shown.cpus[n].1, part(n + 1))));
    lines
}

/// The lists, with the CPU share of the other period in a column.
fn lists(shown: &Summary, other: &Summary, minute: bool) -> [List; LISTS] {
    let whole = |summary: &Summary| summary.cpus.iter().map(|(_, share)| share.total()).sum::<Time>();
    let (all, others) = (whole(shown), whole(other));
    let titles = if minute { ["1 min", "1 s"] } else { ["1 s", "1 min"] };
    let program = |p: &postprocess::sink::summary::work::Program| {
        let total = p.user + p.kernel;
        let beside = other.programs.iter().find(|o| o.name == p.name).map_or(Time::ZERO, |o| o.user + o.kernel);
        let columns = [
            time(total),
            percent(total, all),
            percent(beside, others),
            time(p.user),
            time(p.kernel),
            p.runs.to_string(),
            time(p.longest),
        ];
        Row { time: total, count: p.runs, longest: p.longest, text: text(&columns, &p.name), name: p.name.clone() }
    };
    let sums = |title: &str,
                shown: &[postprocess::sink::summary::work::Sum],
                other: &[postprocess::sink::summary::work::Sum]| {
        let row = |s: &postprocess::sink::summary::work::Sum| {
            let beside = other.iter().find(|o| o.name == s.name).map_or(Time::ZERO, |o| o.total);
            let columns = [
                time(s.total),
                percent(s.total, all),
                percent(beside, others),
                s.count.to_string(),
                time(average(s.total, s.count)),
                time(s.longest),
                time(s.slowest),
            ];
            Row {
                time: s.total,
                count: s.count,
                longest: s.slowest,
                text: text(&columns, &s.name),
                name: s.name.clone(),
            }
        };
        let columns = ["CPU time", titles[0], titles[1], "count", "average", "longest", "slowest"];
        List { title: text(&columns.map(str::to_string), title), rows: shown.iter().map(row).collect() }
    };
    let wait = |w: &postprocess::sink::summary::wait::Wait| {
        let columns = [time(w.total), w.count.to_string(), time(average(w.total, w.count)), time(w.longest)];
        let name = format!("{} {}", w.name, w.thread);
        Row { time: w.total, count: w.count, longest: w.longest, text: text(&columns, &name), name: w.name.clone() }
    };
    let heads = |columns: &[&str], last: &str| text(&columns.iter().map(|c| c.to_string()).collect::<Vec<_>>(), last);
    [
        List {
            title: heads(&["CPU time", titles[0], titles[1], "user", "kernel", "runs", "longest"], "1 PROGRAM"),
            rows: shown.programs.iter().map(program).collect(),
        },
        sums("2 SYSTEM CALL", &shown.calls, &other.calls),
        sums("3 INTERRUPT", &shown.interrupts, &other.interrupts),
        sums("4 FAULT", &shown.faults, &other.faults),
        List {
            title: heads(&["total", "count", "average", "longest"], "5 WAIT, and who waited longest"),
            rows: shown.waits.iter().map(wait).collect(),
        },
        latency(shown),
        List {
            title: heads(&["total", "count", "average", "longest"], "7 SPAN, and whose was longest"),
            rows: shown.spans.iter().map(wait).collect(),
        },
    ]
}

/// Times that threads waited for a CPU, and the threads that waited longest.
fn latency(shown: &Summary) -> List {
    let mut rows = Vec::new();
    for (latency, name) in [(&shown.woken, "woken"), (&shown.preempted, "preempted")] {
        let [median, _, most, _, longest] = latency.percentiles;
        if let Some(worst) = latency.worst.first() {
            let columns = [latency.count.to_string(), time(median), time(most), time(longest)];
            let name = format!("{name}; {}", worst.thread);
            rows.push(Row { time: longest, count: latency.count, longest, text: text(&columns, &name), name });
        }
    }
    let title = ["count", "median", "99 %", "longest"].map(str::to_string);
    List { title: text(&title, "6 WAIT FOR A CPU, and who waited longest"), rows }
}

fn text(columns: &[String], last: &str) -> String {
    columns.iter().map(|column| format!("{column:>9} ")).collect::<String>() + " " + last
}
