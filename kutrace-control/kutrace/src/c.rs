// SPDX-License-Identifier: BSD-3-Clause
//! The functions of include/kutrace.h, where each is described.

#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_long, CStr, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use kutrace_format::abi::programs::{BEGIN, END, MARK, VALUE};
use kutrace_format::abi::user::{TEST, VERSION};
use rustix::io::Errno;

use crate::event::{
    DEQUEUE, ENQUEUE, LOCK_ACQUIRED, LOCK_RELEASED, LOCK_TRY, MARK_A, MARK_B, MARK_C, MARK_D, RPC_MIDDLE, RPC_REQUEST,
    RPC_RESPONSE,
};
use crate::fields::Fields;
use crate::insert::{self, Named};
use crate::site::Site;
use crate::{control, name, otel, rpc, state, text};

/// A text of C, or null.
#[repr(transparent)]
#[derive(Clone, Copy)]
struct Text(*const c_char);

impl Text {
    /// Its bytes without the zero at the end; none for null.
    ///
    /// # Safety
    /// Unless null, it ends with a zero byte and stays as it is while the answer is used.
    unsafe fn bytes<'a>(self) -> &'a [u8] {
        match self.0.is_null() {
            true => &[],
            // SAFETY: as the caller promises.
            false => unsafe { CStr::from_ptr(self.0) }.to_bytes(),
        }
    }
}

/// Defines functions of a text and other arguments, which do nothing while nothing is traced.
macro_rules! recording {
    ($($function:ident($text:ident $(, $argument:ident: $kind:ty)*) $does:expr;)*) => {$(
        #[no_mangle]
        unsafe extern "C" fn $function($text: Text $(, $argument: $kind)*) -> c_long {
            if state::trace() == 0 {
                return 0;
            }
            // SAFETY: kutrace.h asks for what is needed.
            let $text = unsafe { $text.bytes() };
            $does
        }
    )*};
}

recording! {
    kutrace_mark_a(label) insert::event(MARK_A, text::base40(label));
    kutrace_mark_b(label) insert::event(MARK_B, text::base40(label));
    kutrace_mark_c(label) insert::event(MARK_C, text::base40(label));
    kutrace_rpc_request(method, id: u16, bytes: u64) rpc::begin(RPC_REQUEST, method, id, bytes);
    kutrace_rpc_response(method, id: u16, bytes: u64) rpc::begin(RPC_RESPONSE, method, id, bytes);
    kutrace_rpc_resume(method, id: u16) rpc::begin(RPC_MIDDLE, method, id, 0);
    kutrace_lock_try(lock) name::event(LOCK_TRY, Named::Lock, lock);
    kutrace_lock_acquired(lock) name::event(LOCK_ACQUIRED, Named::Lock, lock);
    kutrace_lock_released(lock) name::event(LOCK_RELEASED, Named::Lock, lock);
    kutrace_enqueue(queue) name::event(ENQUEUE, Named::Queue, queue);
    kutrace_dequeue(queue) name::event(DEQUEUE, Named::Queue, queue);
    kutrace_keep(reason) name::ask_to_keep(reason);
}

#[no_mangle]
extern "C" fn kutrace_mark_d(number: u32) -> c_long {
    if state::trace() == 0 {
        0
    } else {
        insert::event(MARK_D, number)
    }
}

#[no_mangle]
extern "C" fn kutrace_rpc_end() -> c_long {
    if state::trace() == 0 {
        0
    } else {
        rpc::turn_to(0)
    }
}

#[no_mangle]
unsafe extern "C" fn kutrace_span_begin(name: Text) -> u64 {
    if state::trace() == 0 {
        return 0;
    }
    // SAFETY: kutrace.h asks for what is needed.
    rpc::begin_span(unsafe { name.bytes() })
}

#[no_mangle]
extern "C" fn kutrace_span_end(span: u64) {
    if span != 0 {
        rpc::end_span(span);
    }
}

#[no_mangle]
extern "C" fn kutrace_addevent(event: u16, value: u32) -> c_long {
    if state::trace() == 0 {
        0
    } else {
        insert::event(event, value)
    }
}

#[no_mangle]
unsafe extern "C" fn kutrace_addname(kind: u16, number: u32, name: Text) -> c_long {
    if state::trace() == 0 {
        return 0;
    }
    // SAFETY: kutrace.h asks for what is needed.
    insert::name(kind.into(), number, unsafe { name.bytes() })
}

#[no_mangle]
extern "C" fn kutrace_is_on() -> c_int {
    state::is_on().into()
}

#[no_mangle]
extern "C" fn kutrace_word(before: *const u32) -> *const u32 {
    state::known().map_or(before, |word| word.as_ptr().cast_const())
}

#[no_mangle]
extern "C" fn kutrace_attach() -> c_int {
    state::attach().into()
}

#[no_mangle]
extern "C" fn kutrace_test() -> c_long {
    state::call(TEST, 0)
}

#[no_mangle]
extern "C" fn kutrace_version() -> c_long {
    state::call(VERSION, 0)
}

#[no_mangle]
unsafe extern "C" fn kutrace_go(mode: Text) -> c_int {
    // SAFETY: kutrace.h asks for what is needed.
    let mode = unsafe { mode.bytes() };
    status(control::go(if mode.is_empty() { "go".as_ref() } else { OsStr::from_bytes(mode) }))
}

#[no_mangle]
unsafe extern "C" fn kutrace_stop(file: Text) -> c_int {
    // SAFETY: kutrace.h asks for what is needed.
    let file = unsafe { file.bytes() };
    status(control::stop((!file.is_empty()).then(|| Path::new(OsStr::from_bytes(file)))))
}

#[no_mangle]
unsafe extern "C" fn kutrace_control(words: Text) -> c_int {
    // SAFETY: kutrace.h asks for what is needed.
    status(control::control(unsafe { words.bytes() }))
}

/// How kutrace_control ended, or a negative errno.
fn status(ended: io::Result<i32>) -> c_int {
    ended.unwrap_or_else(|error| -error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()))
}

/// Defines functions of a place in the program.
macro_rules! of_site {
    ($($function:ident($site:ident $(, $argument:ident: $kind:ty)*) $does:expr;)*) => {$(
        #[no_mangle]
        unsafe extern "C" fn $function($site: *const Site $(, $argument: $kind)*) -> c_long {
            // SAFETY: kutrace.h asks for a place that stays.
            let $site = unsafe { &*$site };
            $does.into()
        }
    )*};
}

of_site! {
    kutrace_site_mark(site) site.put(MARK, &[]);
    kutrace_site_begin(site) site.put(BEGIN, &[]);
    kutrace_site_end(site) site.put(END, &[]);
    kutrace_site_value(site, value: i64) site.put(VALUE, &[value as u64]);
    kutrace_site_async_end(site, id: u64) site.async_end(id);
}

/// Defines functions of a place and fields.
macro_rules! of_fields {
    ($($function:ident($site:ident, $fields:ident $(, $argument:ident: $kind:ty)*) $does:expr;)*) => {$(
        #[no_mangle]
        unsafe extern "C" fn $function($site: *const Site $(, $argument: $kind)*, fields: *const Fields) -> c_long {
            // SAFETY: kutrace.h asks for a place that stays, and for fields or null.
            let ($site, $fields) = unsafe { (&*$site, fields.as_ref().unwrap_or(&Fields::NONE)) };
            $does.into()
        }
    )*};
}

of_fields! {
    kutrace_site_event(site, fields) site.event(fields);
    kutrace_site_begin_with(site, fields) site.begin_with(fields);
    kutrace_site_async_begin(site, fields, id: u64) site.async_begin(id, fields);
}

#[no_mangle]
extern "C" fn kutrace_trace_id(high: u64, low: u64, span: u64) -> c_long {
    otel::trace_id(u128::from(high) << 64 | u128::from(low), span).into()
}

/// Adds bytes, a text, to fields.
#[no_mangle]
unsafe extern "C" fn kutrace_fields_text(fields: *mut Fields, text: Text) {
    // SAFETY: kutrace.h asks for both.
    let (fields, text) = unsafe { (&mut *fields, text.bytes()) };
    *fields = fields.bytes(text, false);
}

/// Adds a number to fields.
#[no_mangle]
unsafe extern "C" fn kutrace_fields_word(fields: *mut Fields, word: u64) {
    // SAFETY: kutrace.h asks for them.
    let fields = unsafe { &mut *fields };
    *fields = fields.u64(word);
}
