// SPDX-License-Identifier: BSD-3-Clause
//! System calls, from the two tracepoints that all calls have and from those that each call has of its own.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use kutrace_format::file::NameKind;

use super::{Converter, Seen};
use crate::event::names::Names;
use crate::event::what::What;
use crate::event::{number, Event};
use crate::tables;

/// System calls by name.
static CALLS: LazyLock<BTreeMap<&str, u32>> =
    LazyLock::new(|| tables::of(NameKind::Syscall).map(|(number, name)| (name, number)).collect());

impl Converter {
    pub(super) fn enter(&mut self, here: Event, fields: &str, names: &mut Names) -> Option<()> {
        let (number, arguments) = fields.strip_prefix("NR ")?.split_once(" (")?;
        self.call(here, number.parse().ok()?, arguments, names)
    }

    /// A call by its number, with its arguments in hexadecimal; the table has the low half of the first argument's
    /// word.
    fn call(&mut self, here: Event, number: i64, arguments: &str, names: &mut Names) -> Option<()> {
        self.see(Seen::Call, true);
        let first = arguments.split([',', ')']).next()?.trim();
        let arg = u64::from_str_radix(first.trim_start_matches("0x"), 16).unwrap_or(0) & 0xffff;
        let event = match u32::try_from(number) {
            Ok(number @ ..=511) => number::SYSCALL + number,
            _ => number::UNKNOWN_CALL,
        };
        self.plain(Event { what: What::of(event), arg: arg as u32, ..here }, names);
        Some(())
    }

    pub(super) fn exit(&mut self, here: Event, fields: &str, names: &mut Names) -> Option<()> {
        let (number, value) = fields.strip_prefix("NR ")?.split_once(" = ")?;
        self.returned(here, number.parse().ok()?, value.trim().parse().ok()?, names)
    }

    /// A call's return; the kernel has forgotten the number of `rt_sigreturn`.
    fn returned(&mut self, here: Event, number: i64, value: i64, names: &mut Names) -> Option<()> {
        self.see(Seen::Call, true);
        let event = match u32::try_from(number) {
            Ok(number @ ..=511) => number::SYSCALL_RETURN + number,
            _ => number::UNKNOWN_RETURN,
        };
        self.plain(Event { what: What::of(event.min(number::UNKNOWN_RETURN)), ret: value as i32, ..here }, names);
        Some(())
    }

    /// A call that has events of its own: `sys_enter_read: fd: 0x3, ...`, `sys_exit_read: 0x3`, or in ftrace's form.
    pub(super) fn named_call(&mut self, here: Event, event: &str, fields: &str, names: &mut Names) -> Option<()> {
        let (name, enters) = match (event.strip_prefix("sys_enter_"), event.strip_prefix("sys_exit_")) {
            (Some(name), _) => (name, true),
            (_, Some(name)) => (name, false),
            _ => (event.strip_prefix("sys_")?, fields.starts_with('(')),
        };
        let known = |name: &str| CALLS.get(name).copied().map(i64::from);
        let number =
            known(name).or_else(|| known(name.strip_prefix("new")?)).or_else(|| known(name.strip_suffix("64")?));
        match enters {
            true => {
                let first = fields.split(',').next().unwrap_or_default();
                let value = first.rsplit(": ").next().unwrap_or_default().trim_end_matches(')');
                self.call(here, number.unwrap_or(-1), value, names)
            }
            false => {
                let value = fields.trim_start_matches("->").trim().trim_start_matches("0x");
                self.returned(here, number.unwrap_or(-1), u64::from_str_radix(value, 16).ok()? as i64, names)
            }
        }
    }
}
