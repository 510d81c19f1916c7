//! Notes that people write about rows: what limits one, and what was tried.

const NOTES: &str = include_str!("notes.md");

/// Each note: the row that it is about, and its text.
pub(crate) fn all() -> Vec<(&'static str, &'static str)> {
    parse(NOTES)
}

/// A note begins at a second-level heading, which names its row.
fn parse(text: &str) -> Vec<(&str, &str)> {
    let sections = text.split("\n## ").skip(1);
    sections.filter_map(|section| section.split_once('\n')).map(|(id, note)| (id.trim(), note.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_goes_from_its_heading_to_the_next() {
        let notes = parse("# Notes\n\nHow to.\n\n## one\n\nText\nof it.\n\n## two\nMore.\n");
        assert_eq!(notes, [("one", "Text\nof it."), ("two", "More.")]);
    }

    #[test]
    fn every_note_is_about_a_row() {
        let rows = crate::rows::all();
        for (id, note) in all() {
            assert!(rows.iter().any(|row| row.id == id), "there is no row {id}");
            assert!(!note.is_empty(), "the note about {id} says nothing");
        }
    }
}
