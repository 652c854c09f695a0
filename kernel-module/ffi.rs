// SPDX-License-Identifier: GPL-2.0
//! The C side of the module, as Rust sees it: the table that a source calls, and the functions of source/, shim.c and
//! device.c.

use core::ffi::{c_char, c_int, c_long, c_uint, c_void};

use crate::abi::command::{Moment, Vector};
use crate::abi::landmark::{Landmark, Machine, Programs};
use crate::abi::packet::{self, Packet};
use crate::abi::user;
use kernel::bindings;

/// `struct kutrace_ops` of include/linux/kutrace.h.
#[repr(C)]
pub struct Ops {
    pub version: u32,
    pub event: unsafe extern "C" fn(u32),
    pub value: unsafe extern "C" fn(u32, u32),
    pub address: unsafe extern "C" fn(u32, u64),
    pub syscall: unsafe extern "C" fn(u64, u32),
    pub syscall_return: unsafe extern "C" fn(i64),
    pub switch_to: unsafe extern "C" fn(*mut bindings::task_struct),
    pub task: unsafe extern "C" fn(*mut bindings::task_struct),
    pub user: unsafe extern "C" fn(u64, *const [u64; user::WORDS]) -> i64,
    pub vector: unsafe extern "C" fn(u32, u32, *const c_char),
    pub cpu: unsafe extern "C" fn(u32),
}

/// `struct kutrace_table` of source/source.h.
#[repr(C)]
pub struct Table {
    pub ops: Ops,
    pub point: unsafe extern "C" fn(u32),
    pub rename: unsafe extern "C" fn(*mut bindings::task_struct, *const [u32; 4]),
    pub flow: unsafe extern "C" fn(bool, *const Packet, *const [u64; packet::WORDS]),
    pub record: unsafe extern "C" fn(u32, *const u32, u32),
}

/// `KUTRACE_OPS_VERSION`.
pub const OPS_VERSION: u32 = 0x20000 | core::mem::size_of::<Ops>() as u32;

/// `struct kutrace_counter` of shim.h.
#[repr(C)]
pub struct PerfCounter {
    pub event: *mut c_void,
    pub index: *const c_int,
}

// `task_struct` contains an empty struct; only pointers to it cross.
#[allow(improper_ctypes)]
unsafe extern "C" {
    // source/source.c

    /// Chooses a source.
    ///
    /// # Safety
    /// The module is being loaded.
    pub fn kutrace_source_choose() -> c_int;
    /// Connects the source to the recorder; it stays off.
    ///
    /// # Safety
    /// A source is chosen. The table and its functions stay until [`kutrace_source_disconnect`] returns. The caller may
    /// sleep.
    pub fn kutrace_source_connect(table: *const Table) -> c_int;
    /// Disconnects it: on return nothing calls the table's functions.
    ///
    /// # Safety
    /// The source is connected. The caller may sleep, and is not called by the source.
    pub fn kutrace_source_disconnect();
    /// Switches it on: on return it reports events of every online CPU, unless there is no memory for that.
    ///
    /// # Safety
    /// The source is connected, and the recorder's state is ready for calls on every CPU. The caller may sleep.
    pub fn kutrace_source_enable() -> c_int;
    /// Switches it off: on return no CPU is in a function of the table.
    ///
    /// # Safety
    /// See [`kutrace_source_disconnect`].
    pub fn kutrace_source_disable();
    /// Calls `each` for every vector of every CPU that is for a device.
    ///
    /// # Safety
    /// A source is chosen. `each` may be called with interrupts off and the interrupt's lock held, with a name that is
    /// gone when it returns. The caller may sleep.
    pub fn kutrace_source_each_vector(each: unsafe extern "C" fn(u32, u32, *const c_char));
    /// Returns the `SOURCE_*` of the chosen source.
    ///
    /// # Safety
    /// A source is chosen.
    pub fn kutrace_source_kind() -> u32;
    /// Returns the capabilities that it lacks.
    ///
    /// # Safety
    /// A source is chosen.
    pub fn kutrace_source_unseen() -> u64;

    // source/steal.c

    /// Returns whether the host reports the time that it takes from this machine; that does not change.
    ///
    /// # Safety
    /// A source is chosen.
    pub fn kutrace_steal_is_known() -> bool;
    /// Returns how many ns the host has taken from this CPU that were not reported before.
    ///
    /// # Safety
    /// Interrupts are off, and this is not an NMI.
    pub fn kutrace_steal_taken() -> u32;

    // source/packets.c

    /// Chooses the ports of the next trace.
    ///
    /// # Safety
    /// `ports` is valid for `count`, unless that is `PORTS_ALL`. The source is off, and the control lock is held or
    /// nothing else can get here yet.
    pub fn kutrace_packets_choose(count: u32, ports: *const u16) -> c_int;

    // source/records.c

    /// Chooses the tracepoints of the next trace.
    ///
    /// # Safety
    /// `ids` is valid for `count`, at most `RECORDS_MAX`. The source is off, and the control lock is held or nothing
    /// else can get here yet.
    pub fn kutrace_records_choose(count: u32, ids: *const u32);

    // kernel/smp.c

    /// Waits until every other online CPU has taken an interrupt.
    ///
    /// # Safety
    /// Interrupts are on.
    pub fn kick_all_cpus_sync();

    // user/programs.c

    /// Revokes all grants of programs; the next trace wraps, or is a stream, or neither.
    ///
    /// # Safety
    /// The control lock is held, or there is no device; the caller may sleep.
    pub fn kutrace_programs_reset(wrap: bool, stream: bool);
    /// Lets programs attach, and shows them that a trace is being recorded.
    ///
    /// # Safety
    /// The control lock is held; the caller may sleep.
    pub fn kutrace_programs_open();
    /// Ends that.
    ///
    /// # Safety
    /// As above.
    pub fn kutrace_programs_close();
    /// Executes a command of programs.rs.
    ///
    /// # Safety
    /// `argument` is valid for the structure of the command. The control lock is held, or there is no device.
    pub fn kutrace_programs_control(command: c_uint, argument: *mut c_void) -> c_long;
    /// Describes where a memory image has the data that programs record.
    ///
    /// # Safety
    /// `programs` can be written.
    pub fn kutrace_programs_layout(programs: *mut Programs);

    // user/rate.c

    /// Takes one of the insertions that the running process has left in this second; false, and counted, if none is
    /// left.
    ///
    /// # Safety
    /// A task calls, with preemption off.
    pub fn kutrace_rate_take_one() -> bool;
    /// Counts that the running process was refused by the limits of its CPU.
    ///
    /// # Safety
    /// As above.
    pub fn kutrace_rate_refused();

    // reserved.c

    /// Maps the range of memory that outlives a reboot: 1, or 0 if there is none, or an errno.
    ///
    /// # Safety
    /// The three can be written; the module is being loaded.
    pub fn kutrace_shim_reserved_find(memory: *mut *mut c_void, physical: *mut u64, bytes: *mut u64) -> c_int;
    /// Keeps a copy of its content.
    ///
    /// # Safety
    /// The range was found, and nothing is kept.
    pub fn kutrace_shim_reserved_keep() -> c_int;
    /// Returns the number of bytes that are kept; 0 for nothing.
    ///
    /// # Safety
    /// The control lock is held.
    pub fn kutrace_shim_reserved_kept() -> u64;
    /// Frees the kept copy.
    ///
    /// # Safety
    /// As above.
    pub fn kutrace_shim_reserved_forget();
    /// Releases the range, with the kept copy restored.
    ///
    /// # Safety
    /// The range is unused, and nothing else can get here any more.
    pub fn kutrace_shim_reserved_leave();
    /// Writes back the CPUs' cache lines of it.
    pub safe fn kutrace_shim_reserved_flush();
    /// Starts periodic calls of `kutrace_sight_cpus`.
    ///
    /// # Safety
    /// The control lock is held, or there is no device; the caller may sleep, and the calls were not started yet.
    pub fn kutrace_shim_reserved_watch() -> c_int;
    /// Stops the calls; harmless if they were not started.
    ///
    /// # Safety
    /// As above, and on return it is not called any more.
    pub fn kutrace_shim_reserved_unwatch();

    // shim.c, device.c, note.c
    pub fn kutrace_shim_note_clear();
    /// Returns the number of a grace period that begins now or later; in haste, busy CPUs take an interrupt for it.
    pub safe fn kutrace_shim_grace(in_haste: bool) -> core::ffi::c_ulong;
    /// Returns whether it is over.
    pub safe fn kutrace_shim_is_over(grace: core::ffi::c_ulong) -> bool;
    /// Returns whether to start when the module is loaded: 0 not, 1 in wrap mode, or an errno.
    pub safe fn kutrace_shim_go() -> c_int;

    /// Offsets of the fields of a `task_struct` from its start: numbers, not addresses.
    pub static kutrace_task_pid: u8;
    pub static kutrace_task_tgid: u8;
    pub static kutrace_task_born: u8;
    pub static kutrace_task_comm: u8;
    /// This CPU's state when reached through %gs; an offset, not an address.
    pub static kutrace_cpu: u8;
    /// Insertions that programs may make a second on a CPU, 0 without limit. Like all parameters of the module these
    /// have their values before it runs, and are never written.
    pub static kutrace_shim_namerate: c_uint;
    pub static kutrace_shim_markrate: c_uint;
    /// Returns whether the running program may insert anything.
    ///
    /// # Safety
    /// A task calls, not an interrupt.
    pub fn kutrace_shim_may_mark() -> bool;
    /// Returns the state of a CPU, which exists as long as the module.
    ///
    /// # Safety
    /// The CPU is possible.
    pub fn kutrace_shim_cpu(cpu: u32) -> *mut c_void;
    /// Returns one more than the highest number of a CPU.
    pub safe fn kutrace_shim_cpus() -> u32;
    /// Returns whether a CPU of this number may ever come online.
    ///
    /// # Safety
    /// The number is below [`kutrace_shim_cpus`].
    pub fn kutrace_shim_possible(cpu: u32) -> bool;
    /// Returns whether it is online; that holds only while the CPUs are held.
    ///
    /// # Safety
    /// See [`kutrace_shim_possible`].
    pub fn kutrace_shim_online(cpu: u32) -> bool;
    /// Has a CPU call `call` in an interrupt, with null, and does not wait; false if its previous interrupt is still
    /// pending, or if it is offline. A CPU that goes offline makes the call before that.
    ///
    /// # Safety
    /// The CPU is possible; one caller at a time. `call` stays until the CPU has made the call.
    pub fn kutrace_shim_call(cpu: u32, call: unsafe extern "C" fn(*mut c_void)) -> bool;
    /// Keeps CPUs from coming and going until [`kutrace_shim_release_cpus`]; false if one is about to.
    ///
    /// # Safety
    /// The caller releases the CPUs.
    pub fn kutrace_shim_try_hold_cpus() -> bool;
    /// Releases the CPUs.
    ///
    /// # Safety
    /// The caller holds the CPUs.
    pub fn kutrace_shim_release_cpus();
    /// Sleeps for a moment; false if the process is being killed.
    ///
    /// # Safety
    /// The caller may sleep.
    pub fn kutrace_shim_pause() -> bool;
    /// Returns whether the running process may have a pool of this size.
    ///
    /// # Safety
    /// A task calls.
    pub fn kutrace_shim_may_have(bytes: usize) -> bool;
    /// Returns the size of the pool at load.
    pub safe fn kutrace_shim_pool_bytes() -> usize;
    /// Returns zeroed memory, or null.
    ///
    /// # Safety
    /// The caller may sleep.
    pub fn kutrace_shim_alloc(bytes: usize) -> *mut c_void;
    /// Frees it.
    ///
    /// # Safety
    /// The memory is from [`kutrace_shim_alloc`] or null, and is unused. The caller may sleep.
    pub fn kutrace_shim_free(memory: *mut c_void);
    /// Takes the lock that keeps others from mapping the pool.
    ///
    /// # Safety
    /// The caller may sleep, does not hold the lock, and releases it.
    pub fn kutrace_shim_lock_mapping();
    /// Releases the lock.
    ///
    /// # Safety
    /// The caller holds the lock.
    pub fn kutrace_shim_unlock_mapping();
    /// Returns the calling process, referenced.
    ///
    /// # Safety
    /// A task calls.
    pub fn kutrace_shim_process() -> *mut c_void;
    /// Returns its number as the running task sees it, 0 for null.
    ///
    /// # Safety
    /// The process is null or referenced. A task calls.
    pub fn kutrace_shim_process_number(process: *mut c_void) -> u32;
    /// Drops the reference.
    ///
    /// # Safety
    /// The process is null, or the caller has a reference and does not use it any more.
    pub fn kutrace_shim_process_put(process: *mut c_void);
    /// Returns the system call that a task is in, in the form of its state.
    ///
    /// # Safety
    /// The caller holds the task. Its stack may be gone, unless interrupts are off: then it is the running task, the
    /// next to run, one that has not run yet, or an idle task.
    pub fn kutrace_shim_open_call(task: *mut bindings::task_struct) -> u16;
    /// Returns the number of the 64-bit system call that the running task returns from, or that of `OPEN_RETURN` less
    /// `SYSCALL_RETURN` if its registers do not have it: the call was 32-bit, or overwrote them.
    ///
    /// # Safety
    /// A task calls, in a system call.
    pub fn kutrace_shim_returning() -> u32;
    /// Returns the low half of the id of its control group.
    ///
    /// # Safety
    /// The caller holds the task. Preemption is off, and RCU watches or the task is an idle one, whose group exists for
    /// good.
    pub fn kutrace_shim_group(task: *mut bindings::task_struct) -> u16;
    /// Returns the low half of the id of its control group of version 2; 0 if there are none.
    ///
    /// # Safety
    /// The caller holds the task, and RCU watches.
    pub fn kutrace_shim_cgroup(task: *mut bindings::task_struct) -> u32;
    /// Reads three clocks at one moment.
    ///
    /// # Safety
    /// `moment` can be written.
    pub fn kutrace_shim_moment(moment: *mut Moment);
    /// Describes the machine for a reader that finds `page` in an image of its memory.
    ///
    /// # Safety
    /// `machine` can be written, and `page` is in the module's data.
    pub fn kutrace_shim_machine(machine: *mut Machine, page: *const Landmark);
    /// Opens a counter of a CPU; if the CPU is offline the counter stays closed, which is not an error.
    ///
    /// # Safety
    /// `counter` can be written, is closed, and is closed by [`kutrace_shim_counter_close`]. The caller may sleep, and
    /// does not hold the CPUs.
    pub fn kutrace_shim_counter_open(cpu: u32, config: u64, counter: *mut PerfCounter) -> c_int;
    /// Closes it.
    ///
    /// # Safety
    /// The counter is open or closed, and nothing reads its number any more. The caller may sleep.
    pub fn kutrace_shim_counter_close(counter: *mut PerfCounter);
    /// Finds the vector after `vector`, if there is one.
    ///
    /// # Safety
    /// `vector` can be read and written, and the control lock is held.
    pub fn kutrace_shim_next_vector(vector: *mut Vector);
    /// Prints the counts.
    #[cfg(kutrace_count)]
    pub safe fn kutrace_shim_print_counts(calls: u64, recorded: u64, lost: u64, overwritten: u64, outside: u64);
    /// Returns the rate of the TSC in kHz.
    pub safe fn kutrace_shim_tsc_khz() -> u32;
    /// Returns whether the kernel has found that the TSC cannot be trusted.
    pub safe fn kutrace_shim_tsc_unstable() -> bool;
    /// Adds the device: from now on there are commands, mappings and the sleep notifier.
    ///
    /// # Safety
    /// The pool and the states are ready for commands. The caller may sleep.
    pub fn kutrace_shim_device_add() -> c_int;
    /// Removes it: on return none of these runs.
    ///
    /// # Safety
    /// It was added. The caller may sleep.
    pub fn kutrace_shim_device_remove();
}
