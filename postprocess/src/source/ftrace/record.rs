// SPDX-License-Identifier: BSD-3-Clause
//! A record of a tracepoint as the text after its name.

use super::format::Format;
use crate::source::tracepoint::line::{one_word, state};

/// Flag of a thread that begins: it is one of its parent's process.
const CLONE_THREAD: i64 = 1 << 16;

/// The name of the line: a thread that begins is named as if it was renamed.
pub fn event(format: &Format) -> &str {
    match format.name.as_str() {
        "task_newtask" => "task_rename",
        name => name,
    }
}

/// The new thread of a record, and true if it belongs to the process of the thread that starts it.
pub fn born(format: &Format, record: &[u8]) -> Option<(u32, bool)> {
    if format.name != "task_newtask" {
        return None;
    }
    let child = u32::try_from(format.number(record, "pid")?).ok()?;
    Some((child, format.number(record, "clone_flags")? & CLONE_THREAD != 0))
}

/// The fields of a record that a line has; empty for tracepoints that are not used, `None` if the record lacks one.
pub fn fields(format: &Format, record: &[u8]) -> Option<String> {
    let number = |name: &str| format.number(record, name);
    let word = |name: &str| Some(one_word(&format.text(record, name)?));
    Some(match format.name.as_str() {
        "sched_switch" => format!(
            "prev_comm={} prev_pid={} prev_state={} ==> next_comm={} next_pid={}",
            word("prev_comm")?,
            number("prev_pid")?,
            state(number("prev_state")?),
            word("next_comm")?,
            number("next_pid")?
        ),
        "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => {
            format!("comm={} pid={}", word("comm")?, number("pid")?)
        }
        "task_newtask" => format!("pid={} oldcomm= newcomm={}", number("pid")?, word("comm")?),
        "task_rename" => format!("pid={} oldcomm= newcomm={}", number("pid")?, word("newcomm")?),
        "sched_process_exec" => format!("filename= pid={} old_pid={}", number("pid")?, number("old_pid")?),
        "sys_enter" => format!("NR {} ({:x})", number("id")?, number("args")?),
        "sys_exit" => format!("NR {} = {}", number("id")?, number("ret")?),
        name if name.starts_with("sys_enter_") => match format.first_argument() {
            Some(field) => format!("{}: {:x}", field.name, field.number(record)?),
            None => String::new(),
        },
        name if name.starts_with("sys_exit_") => format!("{:x}", number("ret")?),
        "irq_handler_entry" => format!("irq={} name={}", number("irq")?, word("name")?),
        "irq_handler_exit" => format!("irq={}", number("irq")?),
        "softirq_entry" | "softirq_exit" => format!("vec={}", number("vec")?),
        "cpu_frequency" => format!("state={} cpu_id={}", number("state")?, number("cpu_id")?),
        "ipi_send_cpu" => format!("cpu={} callback={:x}", number("cpu")?, number("callback")?),
        "ipi_send_cpumask" => {
            format!("cpumask={} callback={:x}", cpus(format.field("cpumask")?.bytes(record)?), number("callback")?)
        }
        "print" => format.text(record, "buf")?.trim_end().to_string(),
        _ => number("vector").map_or_else(String::new, |vector| format!("vector={vector}")),
    })
}

/// The CPUs of a mask, separated by commas.
fn cpus(mask: &[u8]) -> String {
    let is_set = |cpu: &usize| mask[cpu / 8] >> (cpu % 8) & 1 != 0;
    (0..8 * mask.len()).filter(is_set).map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",")
}
