//! strftime for chat templates, in the C locale, on a date that the caller injects.

use crate::ffi::Outcome;

const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A moment of the proleptic Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Date {
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
}

impl Date {
    /// "2024-07-26" or "2024-07-26T12:34:56" (what follows the seconds is ignored).
    pub fn parse(text: &str) -> Outcome<Self> {
        let wrong = || format!("'{text}' is not a date like 2024-07-26 or 2024-07-26T12:34:56");
        let (date, time) = match text.split_once('T') {
            Some((date, time)) => (date, time),
            None => (text, "00:00:00"),
        };
        let [year, month, day] = fields(date, '-').ok_or_else(wrong)?;
        let [hour, minute, second] =
            fields(time.get(..8).ok_or_else(wrong)?, ':').ok_or_else(wrong)?;
        let date = Self { year, month, day, hour, minute, second };
        let sound = (1..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        sound.then_some(date).ok_or_else(wrong)
    }

    fn day_of_year(&self) -> u32 {
        (1..self.month).map(|month| days_in_month(self.year, month)).sum::<u32>() + self.day
    }

    /// 0 = Sunday. Day 1 of year 1 was a Monday; a year moves the weekday by 365 mod 7 = 1, a leap
    /// year by one more. Example: 2024-07-26 has 2023 years with 490 leap days before it and is day
    /// 208: (2023 + 490 + 208) mod 7 = 5, Friday.
    fn weekday(&self) -> u32 {
        let past = self.year - 1;
        let leap_days = past / 4 - past / 100 + past / 400;
        (past + leap_days + self.day_of_year()) % 7
    }

    pub fn format(&self, format: &str) -> Outcome<String> {
        let mut out = String::new();
        let mut rest = format.chars();
        while let Some(c) = rest.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            let mut code = rest.next();
            let padded = code != Some('-');
            if !padded {
                code = rest.next();
            }
            out.push_str(&self.field(code, padded).ok_or_else(|| {
                let code = code.map(String::from).unwrap_or_default();
                format!("strftime_now does not know '%{code}' of '{format}'")
            })?);
        }
        Ok(out)
    }

    fn field(&self, code: Option<char>, padded: bool) -> Option<String> {
        let number = |value: u32, width: usize| match padded {
            true => format!("{value:0width$}"),
            false => value.to_string(),
        };
        let month = MONTHS[self.month as usize - 1];
        let day = DAYS[self.weekday() as usize];
        Some(match code? {
            'Y' => self.year.to_string(),
            'y' => number(self.year % 100, 2),
            'm' => number(self.month, 2),
            'B' => month.to_string(),
            'b' | 'h' => month[..3].to_string(),
            'd' => number(self.day, 2),
            'e' => format!("{:2}", self.day),
            'j' => number(self.day_of_year(), 3),
            'A' => day.to_string(),
            'a' => day[..3].to_string(),
            'w' => self.weekday().to_string(),
            'H' => number(self.hour, 2),
            'I' => number((self.hour + 11) % 12 + 1, 2),
            'M' => number(self.minute, 2),
            'S' => number(self.second, 2),
            'p' => if self.hour < 12 { "AM" } else { "PM" }.to_string(),
            'F' => self.format("%Y-%m-%d").ok()?,
            'T' => self.format("%H:%M:%S").ok()?,
            '%' => "%".to_string(),
            _ => return None,
        })
    }
}

fn fields(text: &str, separator: char) -> Option<[u32; 3]> {
    let digits = |part: &str| {
        let sound = !part.is_empty() && part.len() <= 4 && part.bytes().all(|b| b.is_ascii_digit());
        sound.then(|| part.parse().ok()).flatten()
    };
    let parts: Option<Vec<u32>> = text.split(separator).map(digits).collect();
    parts?.try_into().ok()
}

fn days_in_month(year: u32, month: u32) -> u32 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
