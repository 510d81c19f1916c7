//! Files that are too much for a search.

use bytes::Bytes;
use vfs_core::GrepRequest;

use super::*;

struct Collected(Vec<Item>);

impl Outlet for Collected {
    fn put(&mut self, item: Item) -> std::ops::ControlFlow<()> {
        self.0.push(item);
        std::ops::ControlFlow::Continue(())
    }
}

/// The same line again and again.
struct Again {
    line: Vec<u8>,
    at: usize,
}

impl Read for Again {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(self.line.len() - self.at);
        buffer[..length].copy_from_slice(&self.line[self.at..self.at + length]);
        self.at = (self.at + length) % self.line.len();
        Ok(length)
    }
}

fn search(req: &GrepRequest, opened: Opened) -> Vec<Item> {
    let plan = Plan::new(req).expect("a valid request");
    let mut items = Collected(Vec::new());
    let mut searcher = FileSearcher::new(&plan);
    searcher.search(&plan, Ok(opened), &|| VfsPath::parse("/f"), &mut items, &|| false);
    items.0
}

fn problem(items: &[Item]) -> Option<ErrorKind> {
    items.iter().find_map(|item| if let Item::Problem(problem) = item { Some(problem.code) } else { None })
}

#[test]
fn a_file_that_has_far_more_than_it_claims_is_left() {
    let mut line = vec![b'x'; 64 << 10];
    line.push(b'\n');
    let more = MOST_UNCLAIMED * 2;
    for (size, expected) in [(0, Some(ErrorKind::TooLarge)), (more, None)] {
        let again = Again { line: line.clone(), at: 0 };
        let reader = again.take(more);
        assert_eq!(problem(&search(&GrepRequest::literal("hit"), Opened::reader(reader, size))), expected);
    }
}

#[test]
fn a_line_that_is_too_long_for_a_heavy_expression_is_a_problem_however_it_is_lent() {
    let text = [vec![b'a'; 200 << 10], b"\n".to_vec()].concat();
    for (regex, expected) in [("b{10000}", Some(ErrorKind::TooLarge)), ("b{100}", None)] {
        for req in [GrepRequest::regex(regex), GrepRequest::regex(regex).multiline()] {
            let (bytes, size) = (Bytes::from(text.clone()), text.len() as u64);
            let reader = io::Cursor::new(text.clone());
            for opened in [Opened::from(bytes), Opened::reader(reader, size)] {
                assert_eq!(problem(&search(&req, opened)), expected, "{regex}");
            }
        }
    }
}
