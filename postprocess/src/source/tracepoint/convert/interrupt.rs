// SPDX-License-Identifier: BSD-3-Clause
//! Interrupts of devices, of the machine itself by vector, between CPUs, and softirqs.

use kutrace_format::x86::vector::{CALL_FUNCTION, CALL_FUNCTION_SINGLE, DEVICES, IRQ_WORK, RESCHEDULE};

use super::{field, Converter, Line, Seen};
use crate::event::names::{clean, Names};
use crate::event::what::What;
use crate::event::{number, Event, CPUS_MAX};
use crate::time::Time;

impl Converter {
    /// An interrupt of a device begins, with its name, or ends.
    pub(super) fn device(&mut self, here: Event, line: &Line, names: &mut Names) -> Option<()> {
        let irq: u32 = field(line.fields, " irq=")?.parse().ok()?;
        let vector = DEVICES.start() + irq % 0xc0;
        if line.event == "irq_handler_entry" {
            let name = names.id(&clean(line.fields.split_once(" name=")?.1.as_bytes()));
            if self.devices.insert(vector, name) != Some(name) {
                let event = number::IRQ_NAME;
                self.events.push(Event {
                    ts: here.ts,
                    dur: Time::UNIT,
                    what: What::of(event),
                    arg: vector,
                    name,
                    ..Event::default()
                });
            }
            self.events.push(Event { what: What::of(number::IRQ + vector), name, ..here });
            return Some(());
        }
        let event = number::IRQ_RETURN + vector;
        match self.devices.get(&vector) {
            Some(&name) => {
                let name = names.id(&format!("/{}", names.text(name)));
                self.events.push(Event { what: What::of(event), name, ..here });
            }
            None => self.plain(Event { what: What::of(event), ..here }, names),
        }
        Some(())
    }

    pub(super) fn vector(&mut self, here: Event, edge: &str, vector: &str, names: &mut Names) -> Option<()> {
        let vector: u32 = vector.parse().ok().filter(|&vector| vector < 0xff)?;
        self.see(Seen::Vector, true);
        let first = if edge == "entry" { number::IRQ } else { number::IRQ_RETURN };
        self.plain(Event { what: What::of(first + vector), ..here }, names);
        Some(())
    }

    pub(super) fn softirq(&mut self, here: Event, line: &Line, names: &mut Names) -> Option<()> {
        let arg: u32 = field(line.fields, " vec=")?.parse().ok().filter(|&vec| vec < 16)?;
        self.see(Seen::Softirq, true);
        let event = if line.event == "softirq_entry" { number::SOFTIRQ } else { number::SOFTIRQ_RETURN };
        let name = self.event_names.softirq(event, arg, names);
        self.events.push(Event { what: What::of(event), arg, name, ..here });
        Some(())
    }

    /// An interrupt is sent to one CPU or several; its kind follows from the function to be called, as in our module.
    pub(super) fn send(&mut self, here: Event, line: &Line, names: &mut Names) -> Option<()> {
        self.see(Seen::Ipi, true);
        let none = field(line.fields, " callback=").is_none_or(|callback| matches!(callback, "0" | "0x0" | "(nil)"));
        let (list, vector) = match (line.event, none) {
            ("ipi_send_cpumask", _) => (field(line.fields, " cpumask=")?, CALL_FUNCTION),
            (_, true) => (field(line.fields, " cpu=")?, RESCHEDULE),
            (_, false) => (field(line.fields, " cpu=")?, CALL_FUNCTION_SINGLE),
        };
        for range in list.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            for cpu in first..=last.min(CPUS_MAX - 1) {
                let own = vector == CALL_FUNCTION_SINGLE && cpu == line.cpu;
                let ret = if own { IRQ_WORK } else { vector } as i32;
                let name = self.event_names.point(number::IPI, cpu, names);
                self.events.push(Event { dur: Time::UNIT, what: What::of(number::IPI), arg: cpu, ret, name, ..here });
            }
        }
        Some(())
    }
}
