//! Definitions in source text, found by the shape of lines and not by a parser.
//!
//! A definition begins at a line that its language's pattern matches, as in the hunk headers of `git diff`, and ends by indentation or
//! by the closing brace at its own indentation. Code that is indented in an unusual way can be misread.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use regex::Regex;

/// Maximum number of lines of a definition. A longer one ends there.
const MAX_LINES: usize = 5_000;

/// Maximum number of definitions of a text.
const MAX_DEFINITIONS: usize = 5_000;

/// A definition, such as a function, a type or a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SymbolDefinition<'a> {
    pub(super) name: &'a str,
    /// Its first line, without what is around it.
    pub(super) text: &'a str,
    /// Number of columns before it.
    pub(super) indent: usize,
    /// Its lines, from the one with its name to its end; the number of the first line of a text is 1.
    pub(super) lines: RangeInclusive<u64>,
}

/// How a definition ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DefinitionEnd {
    /// With a `}` or `end` at its own indentation.
    Closing,
    /// Before the next line that is indented no more.
    Indentation,
    /// Before the next definition that is indented no more, such as a section.
    NextDefinition,
}

struct Syntax {
    extensions: &'static [&'static str],
    pattern: &'static str,
    end: DefinitionEnd,
}

const SYNTAXES: [Syntax; 11] = [
    Syntax {
        extensions: &["rs"],
        pattern: r#"^\s*(?:(?:pub(?:\([^)]*\))?|default|async|const|unsafe|extern(?:\s+"[^"]*")?)\s+)*(?:(?:fn|struct|enum|union|trait|mod|type|macro_rules!)\s+(?P<name>\w+)|(?:const|static)\s+(?:mut\s+)?(?P<value>[A-Z_][A-Z0-9_]*)\s*:|(?P<impl>impl\b[^{;]*))"#,
        end: DefinitionEnd::Closing,
    },
    Syntax {
        extensions: &["py", "pyi"],
        pattern: r"^\s*(?:async\s+def|def|class)\s+(?P<name>\w+)",
        end: DefinitionEnd::Indentation,
    },
    Syntax {
        extensions: &["js", "jsx", "mjs", "cjs", "ts", "tsx", "mts"],
        pattern: r"^\s*(?:(?:export|default|declare|abstract|async|public|private|protected|static|readonly|override|get|set)\s+)*(?:(?:function\*?|class|interface|enum|namespace)\s+(?P<name>[\w$]+)|(?:const|let|var)\s+(?P<value>[\w$]+)\s*(?::[^=]+)?=\s*(?:async\s+)?(?:function\b|\([^)]*\)[^=]*=>|[\w$]+\s*=>)|(?P<method>[\w$]+)\s*(?:<[^>]*>)?\([^;]*\)\s*(?::[^{;]+)?\{\s*$)",
        end: DefinitionEnd::Closing,
    },
    Syntax {
        extensions: &["go"],
        pattern: r"^(?:func\s+(?:\([^)]*\)\s*)?|type\s+)(?P<name>\w+)",
        end: DefinitionEnd::Closing,
    },
    Syntax {
        extensions: &["java", "kt", "kts", "cs", "scala", "swift", "php", "dart"],
        pattern: r"^\s*(?:(?:@\w+|public|private|protected|internal|open|override|static|final|abstract|sealed|async|virtual|inline|suspend|data|partial|native|synchronized|fileprivate|implicit|case)\s+)*(?:(?:class|interface|enum|record|struct|object|trait|protocol|extension|namespace|fun|func|function|def)\s+(?P<name>\w+)|[\w<>\[\],.?]+\s+(?P<method>\w+)\s*\([^;]*$)",
        end: DefinitionEnd::Closing,
    },
    Syntax {
        extensions: &["c", "h", "cc", "cpp", "cxx", "hh", "hpp", "hxx", "m", "mm", "cu"],
        pattern: r"^(?:(?:typedef|static|extern|inline|template\s*<[^>]*>)\s+)*(?:(?:struct|enum|union|class|namespace)\s+(?P<name>\w+)[^;()=]*$|(?:[A-Za-z_][\w\s*&:<>,~\[\]]*?[\s*&])?(?P<method>[A-Za-z_][\w:~]*)\s*\([^;]*$)",
        end: DefinitionEnd::Closing,
    },
    Syntax {
        extensions: &["rb"],
        pattern: r"^\s*(?:def|class|module)\s+(?P<name>[\w.?!:]+)",
        end: DefinitionEnd::Closing,
    },
    Syntax {
        extensions: &["lua"],
        pattern: r"^\s*(?:local\s+)?function\s+(?P<name>[\w.:]+)",
        end: DefinitionEnd::Closing,
    },
    Syntax {
        extensions: &["sh", "bash", "zsh"],
        pattern: r"^\s*(?:function\s+(?P<name>[\w-]+)|(?P<method>[\w-]+)\s*\(\))",
        end: DefinitionEnd::Closing,
    },
    Syntax {
        extensions: &["md", "markdown"],
        pattern: r"^(?P<level>#{1,6})\s+(?P<name>.+?)\s*$",
        end: DefinitionEnd::NextDefinition,
    },
    Syntax {
        extensions: &["toml", "ini", "cfg"],
        pattern: r"^\[+(?P<name>[^\]]+)\]",
        end: DefinitionEnd::NextDefinition,
    },
];

static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    // A test compiles every pattern.
    SYNTAXES.iter().filter_map(|syntax| Regex::new(syntax.pattern).ok()).collect()
});

/// Words that begin a statement and no method, although a parenthesis follows.
const KEYWORDS: [&str; 13] =
    ["if", "for", "while", "switch", "catch", "return", "else", "do", "sizeof", "new", "throw", "await", "yield"];

/// Returns the definitions in `text`, in the order of their lines, or none if the extension of `name` is of no known language.
pub(super) fn definitions<'a>(name: &str, text: &'a str) -> Vec<SymbolDefinition<'a>> {
    let Some((syntax, pattern)) = syntax_of(name) else { return Vec::new() };
    let lines: Vec<&str> = text.lines().collect();
    let mut starts: Vec<(usize, usize, &'a str)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if starts.len() == MAX_DEFINITIONS {
            break;
        }
        let Some(found) = pattern.captures(line) else { continue };
        if found.name("method").is_some_and(|method| is_statement(line, method.as_str())) {
            continue;
        }
        let named = ["name", "value", "method", "impl"].into_iter().find_map(|group| found.name(group));
        let Some(named) = named.map(|named| named.as_str().trim()) else { continue };
        let indent = found.name("level").map_or_else(|| indent_of(line), |level| level.len());
        starts.push((at, indent, named));
    }
    let indented: Vec<(usize, &str)> = lines.iter().map(|line| (indent_of(line), line.trim())).collect();
    let mut definitions = Vec::with_capacity(starts.len());
    for (number, &(at, indent, name)) in starts.iter().enumerate() {
        let last = match syntax.end {
            DefinitionEnd::NextDefinition => {
                let next = starts[number + 1..].iter().find(|(_, other, _)| *other <= indent);
                next.map_or(lines.len(), |(next, ..)| *next) - 1
            }
            DefinitionEnd::Closing => closing(&indented, at, indent),
            DefinitionEnd::Indentation => dedent(&indented, at, indent),
        };
        let text = lines[at].trim().trim_end_matches(['{', ':', ' ']);
        definitions.push(SymbolDefinition { name, text, indent, lines: at as u64 + 1..=last as u64 + 1 });
    }
    definitions
}

/// Returns whether a line that looks like the beginning of `method` is a statement.
fn is_statement(line: &str, method: &str) -> bool {
    let first = line.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    KEYWORDS.contains(&first) || KEYWORDS[..6].contains(&method)
}

/// Returns the innermost definition around `line`, which is not its first.
pub(super) fn enclosing<'a, 'b>(
    definitions: &'b [SymbolDefinition<'a>],
    line: u64,
) -> Option<&'b SymbolDefinition<'a>> {
    let before = definitions.partition_point(|definition| *definition.lines.start() < line);
    definitions[..before].iter().rev().find(|definition| definition.lines.contains(&line))
}

/// Returns the number of the first line of the comment and of the attributes above the line `at`.
pub(super) fn first_comment_line(lines: &[&str], at: u64) -> u64 {
    let is_comment = |line: &&&str| {
        let line = line.trim_start();
        ["//", "/*", "*", "#", "@", "--"].iter().any(|mark| line.starts_with(mark)) && !line.starts_with("#include")
    };
    at - lines[..at as usize - 1].iter().rev().take_while(is_comment).count() as u64
}

/// Returns whether definitions are found in a file of this name.
pub(super) fn has_definitions(name: &str) -> bool {
    syntax_of(name).is_some()
}

fn syntax_of(name: &str) -> Option<(&'static Syntax, &'static Regex)> {
    let extension = name.rsplit_once('.')?.1.to_ascii_lowercase();
    let at = SYNTAXES.iter().position(|syntax| syntax.extensions.contains(&extension.as_str()))?;
    Some((&SYNTAXES[at], PATTERNS.get(at)?))
}

/// Returns the number of columns before the text of a line; a tab has eight.
fn indent_of(line: &str) -> usize {
    line.bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).map(|byte| if byte == b'\t' { 8 } else { 1 }).sum()
}

/// Returns the last line of a definition that a `}` or `end` closes, or its only line. A line is its indentation and its text.
fn closing(lines: &[(usize, &str)], at: usize, indent: usize) -> usize {
    if lines[at].1.ends_with([';', '}']) {
        return at;
    }
    let last = lines.len().min(at + MAX_LINES);
    for (number, &(column, text)) in lines.iter().enumerate().take(last).skip(at + 1) {
        if text.is_empty() || column > indent {
            continue;
        }
        let is_end = text.starts_with('}') || text == "end" || text.starts_with("end ");
        // A constant whose value is a list.
        if is_end || column == indent && text.starts_with([']', ')']) && text.ends_with(';') {
            return number;
        }
        // What may follow the first line at its indentation: the rest of a signature.
        if column < indent || !text.starts_with(['{', ')', '>', ':', '-']) && !text.starts_with("where") {
            return number - 1;
        }
    }
    last - 1
}

/// Returns the last line of a definition whose lines are indented more.
fn dedent(lines: &[(usize, &str)], at: usize, indent: usize) -> usize {
    let last = lines.len().min(at + MAX_LINES);
    let mut end = at;
    for (number, &(column, text)) in lines.iter().enumerate().take(last).skip(at + 1) {
        if text.is_empty() {
            continue;
        }
        // A closing parenthesis ends the list of parameters, and not the definition.
        if column <= indent && !text.starts_with([')', ']', '#']) {
            break;
        }
        end = number;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(PATTERNS.len(), SYNTAXES.len());
    }

    fn found(name: &str, text: &str) -> Vec<(String, u64, u64)> {
        let definitions = definitions(name, text);
        definitions.iter().map(|it| (it.name.to_owned(), *it.lines.start(), *it.lines.end())).collect()
    }

    #[test]
    fn definitions_have_a_name_and_an_end() {
        for (name, text, expected) in [
            (
                "a.rs",
                "use x;\n\n/// Doc.\npub(crate) async fn f<T>(\n    a: T,\n) -> u8\nwhere\n    T: X,\n{\n    g()\n}\n\nimpl<T> A for B {\n    fn m(&self) {}\n\n    fn n() {\n        1\n    }\n}\nstruct U;\n",
                &[("f", 4, 11), ("impl<T> A for B", 13, 19), ("m", 14, 14), ("n", 16, 18), ("U", 20, 20)][..],
            ),
            (
                "a.py",
                "import x\n\nclass A:\n    def f(\n        self,\n    ):\n        pass\n\n    x = 1\n\nasync def g(): return 1\nprint(1)\n",
                &[("A", 3, 9), ("f", 4, 7), ("g", 11, 11)],
            ),
            (
                "a.go",
                "type T struct {\n\ta int\n}\n\nfunc (t *T) M() int {\n\treturn 1\n}\n",
                &[("T", 1, 3), ("M", 5, 7)],
            ),
            (
                "a.c",
                "#include <x>\nstatic int x;\n\nstatic int\nf(int a)\n{\n\tif (a) {\n\t}\n\treturn g(a);\n}\n\nstruct s {\n\tint a;\n};\nint h(void) {\n}\nDEFINE(x);\n",
                &[("f", 5, 10), ("s", 12, 14), ("h", 15, 16)],
            ),
            (
                "a.ts",
                "export class A {\n  constructor(x: number) {\n    if (x) {\n    }\n  }\n}\nexport const f = async (a: string) => {\n  return a;\n};\nfunction g() {\n}\n",
                &[("A", 1, 6), ("constructor", 2, 5), ("f", 7, 9), ("g", 10, 11)],
            ),
            (
                "A.java",
                "public class A {\n    private static int f(int a) {\n        return g(a);\n    }\n}\n",
                &[("A", 1, 5), ("f", 2, 4)],
            ),
            ("a.rb", "class A\n  def f\n    1\n  end\nend\n", &[("A", 1, 5), ("f", 2, 4)]),
            ("a.sh", "f() {\n  x\n}\nx\n", &[("f", 1, 3)]),
            ("a.md", "# A\ntext\n## B\ntext\n# C\n", &[("A", 1, 4), ("B", 3, 4), ("C", 5, 5)]),
            ("a.toml", "[a]\nx = 1\n[b.c]\n", &[("a", 1, 2), ("b.c", 3, 3)]),
            (
                "b.rs",
                "pub const A: &[u8] = &[\n    1,\n];\nstatic mut B_C: u8 = 1;\nimpl X {\n    const fn new() -> Self {\n        f()\n    }\n    fn lock(&self) {\n    }\n}\n",
                &[("A", 1, 3), ("B_C", 4, 4), ("impl X", 5, 11), ("new", 6, 8), ("lock", 9, 10)],
            ),
            (
                "B.java",
                "class B {\n    void lock() {\n        return g(\n            new A(\n                1));\n    }\n}\n",
                &[("B", 1, 7), ("lock", 2, 6)],
            ),
            ("a.txt", "fn f() {}\n", &[]),
        ] {
            let expected: Vec<_> = expected.iter().map(|&(name, first, last)| (name.to_owned(), first, last)).collect();
            assert_eq!(found(name, text), expected, "{name}");
        }
    }

    #[test]
    fn a_line_is_in_the_innermost_definition_that_has_not_ended() {
        let definitions = definitions("a.rs", "mod a {\n    fn f() {\n        1\n    }\n    x\n}\ny\n");
        let names: Vec<_> = (1..=7).map(|line| enclosing(&definitions, line).map(|it| it.name)).collect();
        assert_eq!(names, [None, Some("a"), Some("f"), Some("f"), Some("a"), Some("a"), None]);
    }

    #[test]
    fn the_comment_above_a_definition_belongs_to_it() {
        assert_eq!(first_comment_line(&["x", "", "/// A.", "#[b]", "fn f() {}"], 5), 3);
        assert_eq!(first_comment_line(&["fn f() {}"], 1), 1);
    }
}
