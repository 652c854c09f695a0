// SPDX-License-Identifier: BSD-3-Clause
//! Macros for programs: each creates a static with its name, and records there.

#![forbid(unsafe_code)]

/// Marks this moment with a name, and optional fields: `mark!("reply", status = 200, path = path)`. Returns true if the
/// mark is in the trace.
#[macro_export]
macro_rules! mark {
    ($name:expr $(,)?) => {{
        static SITE: $crate::Site = $crate::Site::new($name);
        SITE.mark()
    }};
    ($name:expr, $($fields:tt)+) => {{
        static SITE: $crate::Site = $crate::Site::new($crate::field_names!($name, $($fields)+));
        // A conjunction would have to be used.
        if $crate::is_on() { SITE.mark_with(&$crate::field_values!($($fields)+)) } else { false }
    }};
}

/// This thread is in a part of the program until the [`Span`](crate::Span) is dropped: `let _find = span!("find", path
/// = path);`. Spans nest.
#[macro_export]
macro_rules! span {
    ($name:expr $(,)?) => {{
        static SITE: $crate::Site = $crate::Site::new($name);
        SITE.span()
    }};
    ($name:expr, $($fields:tt)+) => {{
        static SITE: $crate::Site = $crate::Site::new($crate::field_names!($name, $($fields)+));
        if $crate::is_on() { SITE.span_with(&$crate::field_values!($($fields)+)) } else { SITE.no_span() }
    }};
}

/// Records the current value of a counter, an integer: `counter!("queued", queue.len())`. Returns true if it is in the
/// trace.
#[macro_export]
macro_rules! counter {
    ($name:expr, $value:expr $(,)?) => {{
        static SITE: $crate::Site = $crate::Site::new($name);
        if $crate::is_on() {
            SITE.counter($value)
        } else {
            false
        }
    }};
}

/// Begins an activity that lasts until the [`AsyncSpan`](crate::AsyncSpan) is dropped, in any thread: `let upload =
/// async_span!("upload", id, size = n);`. At any time, no two of one name may have the same number, a `u64`.
#[macro_export]
macro_rules! async_span {
    ($name:expr, $id:expr $(,)?) => {{
        static SITE: $crate::Site = $crate::Site::new($name);
        if $crate::is_on() { SITE.async_span($id, &$crate::Typed::none()) } else { SITE.no_async_span() }
    }};
    ($name:expr, $id:expr, $($fields:tt)+) => {{
        static SITE: $crate::Site = $crate::Site::new($crate::field_names!($name, $($fields)+));
        if $crate::is_on() {
            SITE.async_span($id, &$crate::field_values!($($fields)+))
        } else {
            SITE.no_async_span()
        }
    }};
}

/// Records a log line, with the arguments of `format!`: `log!("disk {name} full")`. Returns true if it is in the trace.
/// It is a mark `log` with the module and the line, truncated to 118 bytes.
#[macro_export]
macro_rules! log {
    ($($line:tt)+) => {{
        static SITE: $crate::Site = $crate::Site::new(concat!("log\0=target=", module_path!(), "\0smessage"));
        if $crate::is_on() {
            SITE.mark_as_typed(&$crate::Fields::new().display(format_args!($($line)+)))
        } else {
            false
        }
    }};
}

/// The name of a place, followed by the names of its fields, each after a zero byte.
#[doc(hidden)]
#[macro_export]
macro_rules! field_names {
    ($name:expr, $($($text:literal)? $($first:ident $(. $more:ident)*)? = $value:expr),+ $(,)?) => {
        concat!($name $(, "\0" $(, $text)? $(, stringify!($first) $(, ".", stringify!($more))*)?)+)
    };
}

/// The values of the fields, with their types.
#[doc(hidden)]
#[macro_export]
macro_rules! field_values {
    ($($($text:literal)? $($first:ident $(. $more:ident)*)? = $value:expr),+ $(,)?) => {
        $crate::Typed::none()$(.with(&$value))+
    };
}
