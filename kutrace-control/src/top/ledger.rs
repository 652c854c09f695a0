// SPDX-License-Identifier: BSD-3-Clause
//! Turns points ordered by time into windows: the current activity of each CPU, and the owner of its time.
//!
//! Does the work of the span builder without spans and names: for each thread a stack of its nested activities, by the
//! same nesting rules, and for each CPU an open piece of time that belongs to the top of the stack. A call whose return
//! is missing ends where a later event proves that it ended; past windows are never corrected. [`super::sleep`] has the
//! waits of threads.
//!
//! Invariants: memory is bounded, whatever threads do; the pieces of a CPU cover its time.

use std::collections::VecDeque;

use foldhash::HashMap;
use kutrace_format::abi::command::Vector as Device;
use kutrace_format::abi::event::{
    self, line, Vector, EXIT_WORK, EXIT_WORK_RETURN, GUEST_ENTER, GUEST_EXIT, IRQ, IRQ_LAST, IRQ_RETURN, NAME_VECTOR,
    NOP, OPEN_RETURN, SCHED, SCHED_RETURN, SMALL_RETURN, SMALL_RETURN_LAST, SOFTIRQ, SOFTIRQ_LAST, SOFTIRQ_RETURN,
    SOFTIRQ_RETURN_LAST, SYSCALL, SYSCALL32, SYSCALL32_LAST, SYSCALL_RETURN, TRAP, TRAP_RETURN, UNKNOWN_CALL,
};
use kutrace_format::abi::guest::GuestExit;
use kutrace_format::abi::word;
use kutrace_format::capability::{Capability, Unseen};
use kutrace_format::file::Name;
use postprocess::event::names::{clean, NameId, Names};
use postprocess::event::number::{self, Level};
use postprocess::event::point::Point as Happening;
use postprocess::event::what::What;
use postprocess::event::work::Work;
use postprocess::id::CpuId;
use postprocess::raw::name::EventNames;
use postprocess::span::abi::TracedAbi;
use postprocess::span::stack::{self, Nesting, DEPTH_MAX};
use postprocess::span::wait::{By, Reason};
use postprocess::tables;

use super::sleep::Thread;
use super::window::{Part, Run, Use, Window};
use crate::skim::{Named, Point, Skim, GAP, RUNS};

/// Vectors of interrupts: each CPU has its own names for them.
const VECTORS: usize = 256;
/// Number of interrupts that are remembered for an idle CPU.
const INTERRUPTS: usize = 64;
/// Maximum number of CPUs.
const CPUS: u32 = postprocess::event::CPUS_MAX;

/// Effect of an event.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// An activity of the kernel begins.
    Call(Work),
    /// The activity that began with this number ends.
    Return(u16, Level),
    /// The system call of the thread returns.
    ReturnAny,
    /// Switch to another thread.
    Switch,
    /// Something at a point in time.
    Point(Happening),
    /// No event.
    Nothing,
}

/// An activity of the kernel that has not ended.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The activity.
    pub work: Work,
    /// Number of its event.
    pub event: u16,
    start: u64,
    on_cpu: u64,
}

impl Frame {
    /// A frame for an activity that begins at `start`.
    pub fn new(work: Work, event: u16, start: u64) -> Frame {
        Frame { work, event, start, on_cpu: 0 }
    }
}

/// State of one CPU.
#[derive(Debug)]
pub struct Cpu {
    /// True if the activity of the CPU is known.
    pub known: bool,
    /// True if the CPU has had an event.
    seen: bool,
    /// Start of the open piece of time.
    since: u64,
    /// The thread on the CPU.
    pub pid: u32,
    /// True if `pid` is a thread of the kernel.
    pub kernel: bool,
    /// True if `pid` has announced its exit.
    pub ended: bool,
    /// Nested activities of the thread; on an idle CPU, those of the idle task.
    pub stack: Vec<Frame>,
    /// Owner of the open piece: the scheduler's time belongs to the thread that called it.
    owner: u32,
    /// Time of the owner that is not in the window yet, and the start of its run.
    run: Run,
    run_from: u64,
    is_counted: bool,
    /// In the scheduler: the thread that it switched from.
    pub switched: Option<u32>,
    /// True if the CPU's thread may have been woken for the run that begins.
    pub pending: bool,
    /// Last idle period, up to the switch away from idle.
    pub idle: (u64, u64),
    /// The last interrupts and softirqs during the idle period, newest first: start and end.
    pub interrupts: VecDeque<(u64, u64)>,
    /// Time of the last switch.
    pub last_switch: u64,
    /// Reason of the wait that the thread announced last.
    pub told: Option<Reason>,
    /// Sender of the last interrupt.
    pub remote: By,
    offline: bool,
    /// Totals that are not in the window yet: the CPU's time by owner, and its interrupts by vector.
    part: Part,
    irqs: Vec<Use>,
}

/// State of all CPUs and threads.
#[derive(Debug)]
pub struct Ledger {
    steps: Vec<Step>,
    nesting: Nesting,
    pub(super) abi: TracedAbi,
    labels: EventNames,
    /// Names of kernel activities.
    pub names: Names,
    pub(super) cpus: Vec<Cpu>,
    pub(super) threads: HashMap<u32, Thread>,
    /// By number of the event, without interrupts.
    uses: Vec<Use>,
    pub(super) window: Window,
}

impl Ledger {
    /// For a recorder that does not see `unseen`, with these vectors for devices.
    pub fn new(unseen: Unseen, devices: &[Device]) -> Ledger {
        let mut names = Names::default();
        let table =
            |(kind, number, text): (u16, u32, &'static str)| Name { kind, number, second: 0, text: text.as_bytes() };
        let known: Vec<Name> = tables::TABLES
            .iter()
            .flat_map(|(kind, text)| tables::entries(text).map(|(number, name)| (*kind as u16, number, name)))
            .map(table)
            .collect();
        let (labels, _) = EventNames::new(&known, &mut names);
        let (returns, points) = (!unseen.has(Capability::Returns), unseen.has(Capability::KernelFaults));
        let mut ledger = Ledger {
            steps: (0..1 << word::EVENT_BITS).map(step).collect(),
            nesting: Nesting { returns, points, realtime: false },
            abi: TracedAbi::default(),
            labels,
            names,
            cpus: Vec::new(),
            threads: HashMap::default(),
            uses: vec![Use::default(); 1 << word::EVENT_BITS],
            window: Window::default(),
        };
        for device in devices {
            ledger.device(Vector(device.which), device.name.split(|byte| *byte == 0).next().unwrap_or_default());
        }
        ledger
    }

    /// Takes names that the kernel has assigned since the last call.
    pub fn names(&mut self, named: Vec<Named>) {
        for Named { number, text, .. } in named.into_iter().filter(|named| named.kind == NAME_VECTOR) {
            self.device(Vector(number), text.as_bytes());
        }
    }

    /// Counts under a name that changes are attributed to the old name.
    fn device(&mut self, which: Vector, text: &[u8]) {
        if let Some(cpu) = which.cpu() {
            self.settle_irqs(cpu as usize);
        }
        let text = clean(text);
        self.labels.learn_vector(which, &text, &mut self.names);
        self.abi.learn(line::IRQ_NAME, which.vector(), &text);
    }

    /// Takes the next points.
    pub fn take(&mut self, points: &[Point], known: &Skim) {
        for point in points {
            self.point(point, known);
        }
    }

    /// Ends the window at this counter; the next one begins there.
    pub fn cut(&mut self, to: u64) -> Window {
        for c in 0..self.cpus.len() {
            if self.cpus[c].seen {
                self.close(c, to);
                self.end_run(c, to);
                self.window.cpus.insert(c as u32, std::mem::take(&mut self.cpus[c].part));
            }
            self.settle_irqs(c);
        }
        for event in 0..self.uses.len() {
            let of = std::mem::take(&mut self.uses[event]);
            if of != Use::default() {
                let (level, name) = self.named(event as u16);
                self.window.uses.entry((level, name)).or_default().add(&of);
            }
        }
        self.window.to = to;
        let window = std::mem::take(&mut self.window);
        self.window.from = to;
        window
    }

    fn settle_irqs(&mut self, c: usize) {
        let Some(cpu) = self.cpus.get_mut(c) else { return };
        for (vector, of) in cpu.irqs.iter_mut().enumerate() {
            if *of != Use::default() {
                let event = number::IRQ + vector as u32;
                let name = self.labels.interrupt(event, CpuId::new(c as u32), &mut self.names);
                self.window.uses.entry((Level::Irq, name)).or_default().add(&std::mem::take(of));
            }
        }
    }

    fn named(&mut self, event: u16) -> (Level, NameId) {
        let (labels, names) = (&mut self.labels, &mut self.names);
        match event {
            SOFTIRQ..=SOFTIRQ_LAST => {
                (Level::Softirq, labels.softirq(number::SOFTIRQ, (event - SOFTIRQ).into(), names))
            }
            SYSCALL32..=SYSCALL32_LAST => {
                (Level::Syscall, labels.event(number::SYSCALL32 + u32::from(event - SYSCALL32), names))
            }
            _ => (number::level(event.into()).max(Level::Syscall), labels.event(event.into(), names)),
        }
    }

    fn use_of(&mut self, c: usize, event: u16) -> &mut Use {
        match event {
            IRQ..=IRQ_LAST => &mut self.cpus[c].irqs[usize::from(event - IRQ)],
            _ => &mut self.uses[usize::from(event)],
        }
    }

    fn point(&mut self, point: &Point, known: &Skim) {
        let Point { at, cpu, event, argument } = *point;
        if cpu >= CPUS {
            return;
        }
        let c = cpu as usize;
        while self.cpus.len() <= c {
            self.cpus.push(Cpu::new());
        }
        let t = at.max(self.cpus[c].since);
        match event {
            GAP => return self.lose(c, t),
            RUNS => {
                if !self.cpus[c].known || self.cpus[c].pid != argument {
                    self.place(c, argument, t, known);
                }
                return;
            }
            _ if !self.cpus[c].known => return,
            _ => {}
        }
        let step = self.steps[usize::from(event)];
        self.window.events += u64::from(!matches!(step, Step::Nothing));
        match step {
            Step::Call(work) => self.call(c, t, event, work, argument),
            Step::Return(call, level) => {
                self.returned(c, t, Some(call), level);
                if call == GUEST_ENTER && GuestExit(argument).is_halt() {
                    self.cpus[c].told = Some(Reason::Guest);
                }
            }
            Step::ReturnAny => self.returned(c, t, None, Level::Syscall),
            Step::Switch => self.switch(c, t, argument, known),
            Step::Point(happening) => self.happening(c, t, happening, argument, known),
            Step::Nothing => {}
        }
    }

    fn call(&mut self, c: usize, t: u64, event: u16, work: Work, argument: u32) {
        self.unwind(c, t, work);
        self.close(c, t);
        self.arrive(c, t);
        let level = work.level();
        if matches!(level, Level::Syscall | Level::Trap) {
            self.cpus[c].told = None;
        }
        // Spans do not count work on the way out, since its event is a point.
        self.use_of(c, event).count += u64::from(event != EXIT_WORK);
        self.cpus[c].stack.push(Frame::new(work, event, t));
        if level == Level::Syscall && event != EXIT_WORK {
            if let Some((dur, _)) = word::Call::decode(argument).folded {
                self.end_top(c, t + u64::from(dur));
            }
        }
    }

    fn returned(&mut self, c: usize, t: u64, call: Option<u16>, level: Level) {
        let ends = |frame: &Frame| match call {
            Some(call) => frame.event == call,
            None => frame.work.is_call(),
        };
        match self.cpus[c].stack.iter().rposition(ends) {
            Some(at) => {
                while self.cpus[c].stack.len() > at + 1 {
                    self.end_top(c, t);
                }
            }
            None => {
                // The start was not seen: the call covers the whole open piece.
                let event = call.unwrap_or(UNKNOWN_CALL);
                let since = self.cpus[c].since;
                let Step::Call(work) = self.steps[usize::from(event)] else { return };
                self.unwind(c, since, work);
                self.cpus[c].stack.push(Frame::new(work, event, since));
            }
        }
        self.end_top(c, t);
        self.arrive(c, t);
        if level == Level::Syscall {
            self.cpus[c].told = None;
        }
    }

    /// Ends the frames that cannot be running when `inner` starts: their returns are missing.
    fn unwind(&mut self, c: usize, t: u64, inner: Work) {
        while let Some(top) = self.cpus[c].stack.last() {
            let outer = stack::Frame::call(top.work, 0, NameId::EMPTY);
            if self.nesting.allows(outer, inner) && self.cpus[c].stack.len() < DEPTH_MAX {
                break;
            }
            self.end_top(c, t);
        }
    }

    /// Ends the top of the stack.
    fn end_top(&mut self, c: usize, t: u64) {
        self.close(c, t);
        let Some(top) = self.cpus[c].stack.pop() else { return };
        self.ends(c, t, &top);
        if top.event == SCHED {
            self.scheduled(c, t);
        }
    }

    fn ends(&mut self, c: usize, t: u64, frame: &Frame) {
        let of = self.use_of(c, frame.event);
        of.longest = of.longest.max(frame.on_cpu);
        of.slowest = of.slowest.max(t.saturating_sub(frame.start));
    }

    /// Ends the open piece; the next one begins there.
    pub(super) fn close(&mut self, c: usize, t: u64) {
        let cpu = &mut self.cpus[c];
        let dur = t.saturating_sub(cpu.since);
        let top = cpu.stack.last_mut();
        let level = top.as_ref().map_or(Level::User, |frame| frame.work.level());
        let part = &mut cpu.part;
        cpu.since = t.max(cpu.since);
        cpu.run.on_cpu += dur;
        let is_idle = cpu.pid == 0 && level == Level::User;
        match level {
            _ if !cpu.known => part.lost += dur,
            _ if is_idle && cpu.offline => part.offline += dur,
            _ if is_idle => part.idle += dur,
            Level::Irq | Level::Softirq => {
                part.interrupts += dur;
                if cpu.pid == 0 {
                    cpu.interrupts.truncate(INTERRUPTS - 1);
                    cpu.interrupts.push_front((cpu.since - dur, cpu.since));
                }
            }
            Level::User if !cpu.kernel => {
                part.user += dur;
                cpu.run.user += dur;
            }
            _ => {
                part.kernel += dur;
                cpu.run.kernel += dur;
            }
        }
        if let Some(frame) = top {
            frame.on_cpu += dur;
            let event = frame.event;
            self.use_of(c, event).total += dur;
        }
        if self.cpus[c].owner != self.cpus[c].pid || !self.cpus[c].known {
            self.end_run(c, t);
            let cpu = &mut self.cpus[c];
            (cpu.owner, cpu.run_from, cpu.is_counted) = (cpu.pid, t, false);
        }
    }

    /// Adds the time of the CPU's owner to the window. A run counts once, in its first window.
    fn end_run(&mut self, c: usize, t: u64) {
        let cpu = &mut self.cpus[c];
        let run = std::mem::take(&mut cpu.run);
        if cpu.owner != 0 && cpu.known && run.on_cpu > 0 {
            let begins = u64::from(!std::mem::replace(&mut cpu.is_counted, true));
            let longest = t.saturating_sub(cpu.run_from);
            self.window.runs.entry(cpu.owner).or_default().add(&Run { runs: begins, longest, ..run });
        }
    }

    fn switch(&mut self, c: usize, t: u64, to: u32, known: &Skim) {
        let from = self.cpus[c].pid;
        if from == to {
            return;
        }
        let scheduler = self.cpus[c].stack.iter().rposition(|frame| frame.event == SCHED);
        match scheduler {
            Some(at) => {
                while self.cpus[c].stack.len() > at + 1 {
                    self.end_top(c, t);
                }
            }
            // If the scheduler is not seen it has no time.
            None => {
                self.unwind(c, t, Work::Sched);
                self.close(c, t);
            }
        }
        self.scheduled(c, t);
        let frame = self.cpus[c].stack.pop_if(|frame| frame.event == SCHED);
        if self.cpus[c].ended {
            let left = std::mem::take(&mut self.cpus[c].stack);
            left.iter().for_each(|frame| self.ends(c, t, frame));
        }
        self.exchange(c, t, to, known);
        self.cpus[c].stack.extend(frame);
        if scheduler.is_none() {
            self.close(c, t);
            self.scheduled(c, t);
        }
    }

    /// Sets the thread that a CPU runs, independent of the one before.
    fn place(&mut self, c: usize, pid: u32, t: u64, known: &Skim) {
        // A fact about the running thread counts as an event, as in the text.
        self.window.events += 1;
        if !self.cpus[c].seen {
            // The CPU has no time before its first event.
            (self.cpus[c].seen, self.cpus[c].since) = (true, t);
        }
        self.close(c, t);
        self.cpus[c].stack.clear();
        self.scheduled(c, t);
        // Their earlier activity was not seen.
        for pid in [self.cpus[c].pid, pid] {
            self.threads.remove(&pid);
        }
        self.exchange(c, t, pid, known);
        self.cpus[c].known = true;
        self.close(c, t);
        self.threads.remove(&self.cpus[c].switched.unwrap_or_default());
        self.scheduled(c, t);
    }

    /// Marks a CPU as unknown since its last event, and with it the threads that may have run there.
    fn lose(&mut self, c: usize, t: u64) {
        if self.cpus[c].known {
            self.end_run(c, self.cpus[c].since);
            self.cpus[c].known = false;
            self.close(c, t);
            self.cpus[c].stack.clear();
            self.cpus[c].switched = None;
            self.forget();
        }
    }

    fn happening(&mut self, c: usize, t: u64, happening: Happening, argument: u32, known: &Skim) {
        match happening {
            Happening::Runnable => self.runnable(c, t, argument, known),
            Happening::Ipi => {
                let by = self.by(c, known);
                if let Some(target) = self.cpus.get_mut(event::Ipi(argument).cpu() as usize) {
                    target.remote = by;
                }
            }
            Happening::Exit => self.cpus[c].ended = true,
            Happening::Wait => self.cpus[c].told = Reason::told(argument),
            Happening::Offline | Happening::Online => {
                self.close(c, t);
                self.cpus[c].offline = happening == Happening::Offline;
            }
            _ => {}
        }
    }
}

impl Cpu {
    fn new() -> Cpu {
        Cpu {
            known: false,
            seen: false,
            since: 0,
            pid: 0,
            kernel: false,
            ended: false,
            stack: Vec::new(),
            owner: 0,
            run: Run::default(),
            run_from: 0,
            is_counted: false,
            switched: None,
            pending: false,
            idle: (u64::MAX, 0),
            interrupts: VecDeque::new(),
            last_switch: 0,
            told: None,
            remote: By::Unknown,
            offline: false,
            part: Part::default(),
            irqs: vec![Use::default(); VECTORS],
        }
    }
}

/// Effect of an event with this number.
fn step(event: u16) -> Step {
    match event {
        SOFTIRQ..=SOFTIRQ_LAST => Step::Call(Work::Softirq),
        SOFTIRQ_RETURN..=SOFTIRQ_RETURN_LAST => Step::Return(event - SOFTIRQ_RETURN + SOFTIRQ, Level::Softirq),
        SYSCALL32..=SYSCALL32_LAST => Step::Call(Work::Syscall32(event - SYSCALL32)),
        OPEN_RETURN | SMALL_RETURN..=SMALL_RETURN_LAST => Step::ReturnAny,
        EXIT_WORK => Step::Call(Work::ExitWork),
        EXIT_WORK_RETURN => Step::Return(EXIT_WORK, Level::Syscall),
        GUEST_ENTER => Step::Call(Work::Guest),
        GUEST_EXIT => Step::Return(GUEST_ENTER, Level::Trap),
        IRQ..=IRQ_LAST => Step::Call(Work::Irq((event - IRQ) as u8)),
        NOP => Step::Nothing,
        _ => match What::of(event.into()) {
            What::Call(work) => Step::Call(work),
            What::Return(Work::Irq(vector)) => Step::Return(IRQ + u16::from(vector), Level::Irq),
            What::Return(_) => Step::Return(begin_of(event), number::level(event.into())),
            What::Switch => Step::Switch,
            What::Point(happening) => Step::Point(happening),
            What::Fact(_) | What::Lost | What::Other(_) => Step::Nothing,
        },
    }
}

/// Number of the event that starts the activity which `event` ends.
fn begin_of(event: u16) -> u16 {
    match event {
        SCHED_RETURN => SCHED,
        SYSCALL_RETURN.. => event - SYSCALL_RETURN + SYSCALL,
        IRQ_RETURN.. => event - IRQ_RETURN + IRQ,
        _ => event - TRAP_RETURN + TRAP,
    }
}

#[cfg(test)]
mod tests;
