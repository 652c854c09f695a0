// SPDX-License-Identifier: GPL-2.0
//! The parts of the `kernel` crate that the module uses, made of C functions and nothing else: for kernels that were
//! built without Rust, or whose headers come without the crate.

#![no_std]
#![allow(unreachable_pub)]

/// C types and functions, by the names that bindgen gives them.
pub mod bindings {
    #![allow(non_camel_case_types)]

    use core::ffi::{c_int, c_uint};

    /// `struct task_struct`, of which only addresses are used.
    #[repr(C)]
    pub struct task_struct([u8; 0]);

    /// The errno value.
    pub const ETIMEDOUT: c_uint = 110;

    extern "C" {
        #[link_name = "kutrace_stock_current"]
        pub fn get_current() -> *mut task_struct;
        /// Prints an error: `len` bytes of text.
        pub fn kutrace_stock_error(text: *const u8, len: c_int);
    }
}

/// Errno values as errors.
pub mod error {
    use core::ffi::c_int;

    /// A negative errno.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub struct Error(c_int);

    /// A result with such an error.
    pub type Result<T = (), E = Error> = core::result::Result<T, E>;

    impl Error {
        #[inline(always)]
        pub const fn from_errno(errno: c_int) -> Error {
            Error(errno)
        }

        #[inline(always)]
        pub const fn to_errno(self) -> c_int {
            self.0
        }
    }

    /// Converts the value that a C function returned: 0 or more, or a negative errno.
    #[inline(always)]
    pub fn to_result(returned: c_int) -> Result {
        if returned < 0 { Err(Error(returned)) } else { Ok(()) }
    }

    /// Errors by name.
    pub mod code {
        use super::Error;

        macro_rules! codes {
            ($($name:ident $errno:literal)*) => { $(pub const $name: Error = Error::from_errno(-$errno);)* };
        }

        codes! {
            EPERM 1 EINTR 4 EIO 5 E2BIG 7 ENOEXEC 8 EAGAIN 11 ENOMEM 12 EBUSY 16 EINVAL 22 ENOTTY 25 ENOSPC 28 EOPNOTSUPP 95
        }
    }
}

/// The loaded module, of which nothing is needed.
pub struct ThisModule(());

impl ThisModule {
    #[doc(hidden)]
    pub const THIS: &'static ThisModule = &ThisModule(());
}

/// The module's value; dropped when the module is unloaded.
pub trait Module: Sized {
    fn init(module: &'static ThisModule) -> error::Result<Self>;
}

/// Defines the functions that module.c calls, for this type. module.c has the other fields, too.
#[macro_export]
macro_rules! module {
    (type: $type:ident, $($field:ident: $value:literal,)*) => {
        const _: () = {
            // The module's value has no content: there is nothing to keep, and dropping one unloads the module.
            assert!(core::mem::size_of::<$type>() == 0);

            #[no_mangle]
            extern "C" fn kutrace_stock_load() -> core::ffi::c_int {
                match <$type as $crate::Module>::init($crate::ThisModule::THIS) {
                    Ok(module) => {
                        core::mem::forget(module);
                        0
                    }
                    Err(error) => error.to_errno(),
                }
            }

            #[no_mangle]
            extern "C" fn kutrace_stock_unload() {
                drop($type);
            }
        };
    };
}

/// Prints an error of the module.
#[macro_export]
macro_rules! pr_err {
    ($text:literal) => {
        // SAFETY: the pointer and the length are those of one text.
        unsafe { $crate::bindings::kutrace_stock_error($text.as_ptr(), $text.len() as core::ffi::c_int) }
    };
}

/// The names that the `kernel` crate has in its own prelude.
pub mod prelude {
    pub use crate::error::{code::*, Error, Result};
    pub use crate::{module, pr_err, ThisModule};
}
