// SPDX-License-Identifier: BSD-3-Clause
//! Converts the locations of a probe's arguments, given in its note in assembler syntax, to the kernel's fetch
//! arguments for a uprobe event.
//!
//! ```text
//! -4@%edi            %di:s32              8@%rbp as a text   +0(%bp):string
//!  8@-16(%rbp)       -16(%bp):u64         -4@$7              \7:s32
//! ```

/// An argument that can be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// `arg1` and so on.
    pub name: String,
    /// The kernel's expression for the value.
    pub fetch: String,
    /// Its type.
    pub kind: &'static str,
}

/// The arguments of a note; those whose `texts` is true are addresses of texts. An argument that cannot be fetched is
/// returned as its text in the note.
pub fn read(note: &str, texts: &[bool]) -> Vec<Result<Argument, String>> {
    let one = |(n, text): (usize, &str)| {
        let is_text = texts.get(n).copied().unwrap_or_default();
        let (kind, fetch) = fetch(text).ok_or_else(|| text.to_string())?;
        let (kind, fetch) = if is_text { ("string", format!("+0({fetch})")) } else { (kind, fetch) };
        Ok(Argument { name: format!("arg{}", n + 1), fetch, kind })
    };
    note.split_ascii_whitespace().enumerate().map(one).collect()
}

fn fetch(text: &str) -> Option<(&'static str, String)> {
    let (size, place) = text.split_once('@')?;
    let kind = match size {
        "1" => "u8",
        "-1" => "s8",
        "2" => "u16",
        "-2" => "s16",
        "4" => "u32",
        "-4" => "s32",
        "8" => "u64",
        "-8" => "s64",
        _ => return None,
    };
    let fetch = if let Some(number) = place.strip_prefix('$') {
        format!("\\{}", number.parse::<i64>().ok()?)
    } else if let Some((offset, inner)) = place.strip_suffix(')').and_then(|place| place.split_once('(')) {
        let offset = if offset.is_empty() { 0 } else { offset.parse::<i32>().ok()? };
        format!("{offset:+}({})", register(inner)?)
    } else {
        register(place)?
    };
    Some((kind, fetch))
}

/// The kernel's name of the register that contains this one in its low bytes.
fn register(name: &str) -> Option<String> {
    let name = name.strip_prefix('%')?;
    let numbered = name.strip_prefix('r').map(|digits| digits.trim_end_matches(['d', 'w', 'b']));
    if let Some(number @ 8..=15) = numbered.and_then(|digits| digits.parse::<u8>().ok()) {
        return Some(format!("%r{number}"));
    }
    // ah and the like are not low bytes; ip is not the program's when a probe is hit.
    let long = match name {
        "al" => "ax",
        "bl" => "bx",
        "cl" => "cx",
        "dl" => "dx",
        "sil" => "si",
        "dil" => "di",
        "bpl" => "bp",
        "spl" => "sp",
        _ => name.strip_prefix(['r', 'e']).unwrap_or(name),
    };
    matches!(long, "ax" | "bx" | "cx" | "dx" | "si" | "di" | "bp" | "sp").then(|| format!("%{long}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(note: &str, texts: &[bool]) -> Vec<String> {
        let told = |one: Result<Argument, String>| match one {
            Ok(Argument { name, fetch, kind }) => format!("{name}={fetch}:{kind}"),
            Err(what) => format!("not {what}"),
        };
        read(note, texts).into_iter().map(told).collect()
    }

    #[test]
    fn registers_memory_and_numbers_are_fetched() {
        assert_eq!(
            told("-4@%edi 8@%rbp 1@%al 2@%r8w -8@%r12 1@%dil", &[]),
            ["arg1=%di:s32", "arg2=%bp:u64", "arg3=%ax:u8", "arg4=%r8:u16", "arg5=%r12:s64", "arg6=%di:u8"]
        );
        assert_eq!(
            told("8@-16(%rbp) 4@(%r12) -4@112(%rsp) -4@$1 8@$-5", &[]),
            ["arg1=-16(%bp):u64", "arg2=+0(%r12):u32", "arg3=+112(%sp):s32", "arg4=\\1:s32", "arg5=\\-5:u64"]
        );
    }

    #[test]
    fn texts_are_fetched_from_where_the_argument_points() {
        assert_eq!(
            told("8@%rbp 8@16(%rsp) 4@%eax", &[true, true]),
            ["arg1=+0(%bp):string", "arg2=+0(+16(%sp)):string", "arg3=%ax:u32"]
        );
    }

    #[test]
    fn what_cannot_be_fetched_is_told() {
        for text in
            ["1@%ah", "-4@NBuffers(%rip)", "8@(%rax,%rbx,8)", "8@%xmm0", "16@%rax", "%rax", "8@", "4@8(rax)", "8@%rip"]
        {
            assert_eq!(told(text, &[]), [format!("not {text}")], "{text}");
        }
    }
}
