// SPDX-License-Identifier: BSD-3-Clause
//! The kernel's functions by address, as `/proc/kallsyms` lists them.

use std::fmt;

/// Functions by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    /// Start and name, ascending.
    list: Vec<(u64, String)>,
}

/// Reason why a list holds no functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSymbols {
    /// No line is an address, a type and a name of a function.
    None,
    /// Every address is 0: the kernel hides them.
    Hidden,
}

impl fmt::Display for NoSymbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "no kernel symbols; expected lines like those of /proc/kallsyms",
            Self::Hidden => "every address is 0, because the kernel hides them; copy /proc/kallsyms as root",
        })
    }
}

impl std::error::Error for NoSymbols {}

impl Symbols {
    /// Reads a copy of `/proc/kallsyms`, sorted or not.
    ///
    /// # Errors
    /// If it names no function.
    pub fn parse(text: &str) -> Result<Symbols, NoSymbols> {
        let mut list: Vec<(u64, String)> = text.lines().filter_map(function).collect();
        if list.is_empty() {
            return Err(NoSymbols::None);
        }
        list.retain(|(start, _)| *start != 0);
        if list.is_empty() {
            return Err(NoSymbols::Hidden);
        }
        list.sort_by_key(|(start, _)| *start);
        list.dedup_by_key(|(start, _)| *start);
        Ok(Symbols { list })
    }

    /// The function that an address lies in: the last that starts at it or before.
    pub fn find(&self, address: u64) -> Option<&str> {
        self.function(address).map(|(_, name)| name)
    }

    /// The function that an address lies in, and its start.
    pub fn function(&self, address: u64) -> Option<(u64, &str)> {
        let after = self.list.partition_point(|(start, _)| *start <= address);
        self.list.get(after.checked_sub(1)?).map(|(start, name)| (*start, name.as_str()))
    }
}

/// Start and name of a function, from a line `address type name [module]`.
fn function(line: &str) -> Option<(u64, String)> {
    let mut fields = line.split_ascii_whitespace();
    let start = u64::from_str_radix(fields.next()?, 16).ok()?;
    let is_code = matches!(fields.next()?, "t" | "T" | "w" | "W");
    is_code.then_some((start, fields.next()?.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "ffffffff81000200 T second\nffffffff81000000 T first\nffffffff81000100 d data\n\
                        ffffffff81000200 t alias\nffffffffc0000000 t inside\t[module]\n";

    #[test]
    fn an_address_lies_in_the_function_that_starts_last_before_it() {
        let symbols = Symbols::parse(LIST).unwrap();
        let found = [0xffffffff81000000, 0xffffffff810001ff, 0xffffffff81000200, 0xffffffffc0000010, 5];
        let names = [Some("first"), Some("first"), Some("second"), Some("inside"), None];
        assert_eq!(found.map(|address| symbols.find(address)), names);
    }

    #[test]
    fn a_list_without_functions_or_with_hidden_ones_is_refused() {
        assert_eq!(Symbols::parse("something else\n\n"), Err(NoSymbols::None));
        assert_eq!(Symbols::parse("0000000000000000 T first\n"), Err(NoSymbols::Hidden));
    }
}
