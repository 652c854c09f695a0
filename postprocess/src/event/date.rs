// SPDX-License-Identifier: BSD-3-Clause
//! Dates of the proleptic Gregorian calendar from seconds since 1970, UTC.

/// `YYYY-MM-DD_hh:mm:ss`.
pub fn utc(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}_{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60)
}

/// The seconds of a date as [`utc`] writes it.
pub fn seconds(utc: &str) -> Option<i64> {
    let (date, time) = utc.split_once('_')?;
    let numbers = |text: &str, sign| -> Option<[i64; 3]> {
        let numbers: Option<Vec<i64>> = text.split(sign).map(|n| n.parse::<u32>().ok().map(i64::from)).collect();
        numbers?.try_into().ok()
    };
    let ([year, month, day], [hour, minute, second]) = (numbers(date, '-')?, numbers(time, ':')?);
    let possible = year <= 9999 && (1..=12).contains(&month) && (1..=31).contains(&day);
    // The years of the calendar's eras start in March.
    let (year, from_march) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * from_march + 2) / 5 + day - 1;
    let days = era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468;
    (possible && hour < 24 && minute < 60 && second < 60).then_some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Year, month and day of a day number: counted in 400-year eras of years that start in March, so that the leap day
/// comes last.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day_of_year - (153 * from_march + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::{seconds, utc};

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01_00:00:00");
        assert_eq!(utc(951_782_399), "2000-02-28_23:59:59");
        assert_eq!(utc(951_782_400), "2000-02-29_00:00:00");
        assert_eq!(utc(1_795_187_664), "2026-11-20_15:14:24");
    }
    #[test]
    fn seconds_are_those_of_the_date() {
        for at in (-9..40).map(|n| n * 54_321_987) {
            assert_eq!(seconds(&utc(at)), Some(at), "{}", utc(at));
        }
        for text in ["", "2026", "2026-11-20", "2026-13-20_00:00:00", "2026-11-20_24:00:00", "x-1-1_0:0:0"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
