// SPDX-License-Identifier: BSD-3-Clause
//! Ports of TCP and UDP in the notation of the command line: `all`, or `80,6379`.

use kutrace_format::abi::command::{Ports, PORTS_ALL, PORTS_MAX};

/// Parses a list of ports.
///
/// # Errors
/// A sentence; also for more than the maximum number of ports.
pub fn parse(text: &str) -> Result<Ports, String> {
    if text == "all" {
        return Ok(Ports { count: PORTS_ALL, ..Ports::default() });
    }
    let mut ports = Ports::default();
    for word in text.split(',') {
        let port = word.parse().ok().filter(|port| *port != 0);
        let port = port.ok_or_else(|| format!("invalid port '{word}': expected all, or numbers such as 80,6379"))?;
        let place = ports.port.get_mut(ports.count as usize);
        *place.ok_or_else(|| format!("at most {PORTS_MAX} ports can be listed; all is possible, too"))? = port;
        ports.count += 1;
    }
    Ok(ports)
}

/// The text from which [`parse`] makes these ports.
pub fn text(ports: &Ports) -> String {
    match ports.count {
        PORTS_ALL => "all".to_string(),
        count => ports.port.iter().take(count as usize).map(u16::to_string).collect::<Vec<_>>().join(","),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_ports_is_read_and_written() {
        for list in ["all", "80", "6379,53,65535"] {
            assert_eq!(text(&parse(list).unwrap()), list);
        }
        let most = vec!["1"; PORTS_MAX].join(",");
        assert_eq!(parse(&most).unwrap().count as usize, PORTS_MAX);
        assert_eq!(parse(&format!("{most},1")).unwrap_err(), "at most 62 ports can be listed; all is possible, too");
        for wrong in ["", "0", "65536", "80,", "80 81", "http"] {
            assert!(parse(wrong).unwrap_err().starts_with("invalid port '"), "{wrong}");
        }
    }
}
