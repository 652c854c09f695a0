// SPDX-License-Identifier: BSD-3-Clause
//! The functions of include/kutrace.h and include/kutrace_original.h, which describe each of them.

#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_long, CStr};

use kutrace_format::abi::programs::{BEGIN, END, MARK, VALUE};
use kutrace_format::abi::user::{TEST, VERSION};

use crate::fields::{Fields, Kinds};
use crate::original::event::{
    DEQUEUE, ENQUEUE, LOCK_ACQUIRED, LOCK_RELEASED, LOCK_TRY, MARK_A, MARK_B, MARK_C, MARK_D, RPC_MIDDLE, RPC_REQUEST,
    RPC_RESPONSE,
};
use crate::original::{insert_event, insert_name, name, rpc, text, Named};
use crate::site::Site;
use crate::{otel, state};

/// A string of C, or null.
#[repr(transparent)]
#[derive(Clone, Copy)]
struct Text(*const c_char);

impl Text {
    /// The bytes without the zero at the end; none for null.
    ///
    /// # Safety
    /// Unless null, it ends with a zero byte and is not changed while the result is used.
    unsafe fn bytes<'a>(self) -> &'a [u8] {
        match self.0.is_null() {
            true => &[],
            // SAFETY: the caller guarantees it.
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
            // SAFETY: required by kutrace.h.
            let $text = unsafe { $text.bytes() };
            $does
        }
    )*};
}

recording! {
    kutrace_mark_a(label) insert_event(MARK_A, text::base40(label));
    kutrace_mark_b(label) insert_event(MARK_B, text::base40(label));
    kutrace_mark_c(label) insert_event(MARK_C, text::base40(label));
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
        insert_event(MARK_D, number)
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
    // SAFETY: required by kutrace.h.
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
        insert_event(event, value)
    }
}

#[no_mangle]
unsafe extern "C" fn kutrace_addname(kind: u16, number: u32, name: Text) -> c_long {
    if state::trace() == 0 {
        return 0;
    }
    // SAFETY: required by kutrace.h.
    insert_name(kind.into(), number, unsafe { name.bytes() })
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

/// Defines functions of a place in the program.
macro_rules! of_site {
    ($($function:ident($site:ident $(, $argument:ident: $kind:ty)*) $does:expr;)*) => {$(
        #[no_mangle]
        unsafe extern "C" fn $function($site: *const Site $(, $argument: $kind)*) -> c_long {
            // SAFETY: kutrace.h requires a place that stays.
            let $site = unsafe { &*$site };
            $does.into()
        }
    )*};
}

of_site! {
    kutrace_site_mark(site) site.put(MARK, Kinds::KNOWN, &[]);
    kutrace_site_begin(site) site.put(BEGIN, Kinds::KNOWN, &[]);
    kutrace_site_end(site) site.put(END, Kinds::KNOWN, &[]);
    kutrace_site_counter(site, value: i64) site.put(VALUE, Kinds::KNOWN, &[value as u64]);
    kutrace_site_async_end(site, id: u64) site.async_end(id);
}

/// Fields with their types, as C adds them.
#[repr(C)]
struct Typed {
    fields: Fields,
    kinds: Kinds,
    count: u64,
}

/// Defines functions of a place and fields.
macro_rules! of_fields {
    ($($function:ident($site:ident, $typed:ident $(, $argument:ident: $kind:ty)*) $does:expr;)*) => {$(
        #[no_mangle]
        unsafe extern "C" fn $function($site: *const Site $(, $argument: $kind)*, typed: *const Typed) -> c_long {
            // SAFETY: kutrace.h requires a place that stays, and fields.
            let ($site, $typed) = unsafe { (&*$site, &*typed) };
            $does
        }
    )*};
}

of_fields! {
    kutrace_site_mark_with(site, typed) site.put(MARK, typed.kinds, typed.fields.words());
    kutrace_site_begin_with(site, typed) site.put(BEGIN, typed.kinds, typed.fields.words());
    kutrace_site_async_begin(site, typed, id: u64) site.put_numbered(id, typed.kinds, &typed.fields);
}

#[no_mangle]
extern "C" fn kutrace_trace_id(high: u64, low: u64, span: u64) -> c_long {
    otel::trace_id(u128::from(high) << 64 | u128::from(low), span).into()
}

/// Adds the words of a text to fields; kutrace.h counts the field and adds its type.
#[no_mangle]
unsafe extern "C" fn kutrace_fields_text(typed: *mut Typed, text: Text) {
    // SAFETY: kutrace.h requires both.
    let (typed, text) = unsafe { (&mut *typed, text.bytes()) };
    typed.fields = typed.fields.bytes(text, false);
}
