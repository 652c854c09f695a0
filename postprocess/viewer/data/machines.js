// SPDX-License-Identifier: BSD-3-Clause
// Several machines in one trace: finds the machine of a CPU or a thread.

/** Bits of a thread's own number; the bits above them are the machine's place among all. */
const PID_BITS = 22;

/** The host of a guest: its place among all machines and, by CPU of the guest, the host's thread that runs it, 0 if unknown. @typedef {{host: number, threads: number[]}} Inside */
/** One of several machines; its CPUs are numbered from `first_cpu` on. @typedef {{name: string, first_cpu: number, clock: string, within: number | null, inside?: Inside}} Machine */
/** @typedef {{machines?: Machine[]}} Machines */

/** The machine of a CPU, undefined if there is only one. @param {Machines} meta @param {number} cpu */
export const machineOfCpu = ({ machines = [] }, cpu) => machines.findLast((machine) => machine.first_cpu <= cpu);

/** The machine of a thread, undefined if there is only one. @param {Machines} meta @param {number} pid */
export const machineOfThread = ({ machines = [] }, pid) => (pid < 0 ? undefined : machines[pid >>> PID_BITS]);

/** The number of a thread on its machine. @param {number} pid */
export const ownNumber = (pid) => pid % 2 ** PID_BITS;

/**
 * The CPUs of guests whose hosts are in the trace, too, each with the host's thread that runs it.
 * @param {Machines} meta
 */
export function virtualCpus({ machines = [] }) {
  const of = (/** @type {Machine} */ { first_cpu: first, inside }) => inside?.threads.map((thread, n) => ({ thread, cpu: first + n })) ?? [];
  return machines.flatMap(of).filter(({ thread }) => thread > 0);
}
