//! The lines of a file that an edit changed, from its diff.

/// A changed place of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChangedPlace {
    /// Number of the first line.
    pub(super) first: u64,
    /// The lines as they are now, with those around them.
    pub(super) lines: Vec<String>,
    /// Numbers of the first and the last line that changed; of a removal, that of the line after it.
    changed: (u64, u64),
}

impl ChangedPlace {
    /// Returns the numbers of the first line that changed and the last.
    pub(super) fn range(&self) -> String {
        let (first, last) = self.changed;
        if last <= first { first.to_string() } else { format!("{first}-{last}") }
    }

    fn add_change(&mut self, line: u64) {
        let (first, last) = self.changed;
        self.changed = (if first == 0 { line } else { first }, last.max(line));
    }
}

/// Returns the changed places in a unified diff.
pub(super) fn changed_places(diff: &str) -> Vec<ChangedPlace> {
    let mut places: Vec<ChangedPlace> = Vec::new();
    for line in diff.lines() {
        if let Some(header) = line.strip_prefix("@@ ") {
            places.push(ChangedPlace { first: first_line(header), lines: Vec::new(), changed: (0, 0) });
        } else if let Some(place) = places.last_mut() {
            let next = place.first + place.lines.len() as u64;
            if line.starts_with(['+', '-']) {
                place.add_change(next);
            }
            if let Some(text) = line.strip_prefix([' ', '+']) {
                place.lines.push(text.trim_end_matches('\r').to_owned());
            }
        }
    }
    places
}

/// Returns the first line of the new side in the header of a hunk, such as `-20,7 +20,9 @@`.
fn first_line(header: &str) -> u64 {
    let new = header.split(' ').find_map(|range| range.strip_prefix('+'));
    new.and_then(|range| range.split(',').next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_the_new_lines() {
        let diff = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b\n+c\r\n d\n@@ -20,2 +20,1 @@\n e\n-f\n\\ No newline at end of file\n";
        let place = |first, lines: &[&str], changed| ChangedPlace {
            first,
            lines: lines.iter().map(|&line| line.into()).collect(),
            changed,
        };
        let places = changed_places(diff);
        assert_eq!(places, [place(1, &["a", "c", "d"], (2, 2)), place(20, &["e"], (21, 21))]);
        assert_eq!(places.iter().map(ChangedPlace::range).collect::<Vec<_>>(), ["2", "21"]);
        let diff = "@@ -1,2 +1,4 @@\n-a\n+b\n+c\n+d\n e\n";
        assert_eq!(changed_places(diff), [place(1, &["b", "c", "d", "e"], (1, 3))]);
        assert_eq!(changed_places("Binary files a/x and b/x differ\n"), []);
    }
}
