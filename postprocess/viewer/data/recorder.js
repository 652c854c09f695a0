// SPDX-License-Identifier: BSD-3-Clause
// The threads of the recorder itself: lists leave their work out, as `kutrace_control why` does.

import { threadText } from "./format.js";
import { staysOnCpu } from "./kind.js";
/** @import {Store} from "./decode.js" */

/** The program that records. */
const RECORDER = "kutrace_control";

/** By place in the list of threads, 1 for those of the recorder. @param {Store} store */
export const recorderThreads = (store) => Uint8Array.from(store.pids, (pid) => Number(pid > 0 && threadText(store, pid).startsWith(RECORDER)));

/** True for a span of the recorder's own work; an interrupt that cut into it is not. @param {Store} store @param {Uint8Array} threads @param {number} i */
export const isOfRecorder = ({ pid, kind }, threads, i) => threads[pid[i]] === 1 && !staysOnCpu(kind[i]);
