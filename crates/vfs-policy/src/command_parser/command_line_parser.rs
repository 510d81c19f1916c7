//! Tokenizer and parser of a command line.

use super::program_deny_list::refuse_indirection;
use super::simple_command::{CommandArgument, ParseResult, SimpleCommand};

const EXPANSION: &str = "it has an expansion or a substitution; write out what it stands for";

/// Redirection operators, each before its own prefixes.
const REDIRECTIONS: [&str; 10] = ["<<<", "<<-", "<<", "<>", "<&", "<", ">>", ">|", ">&", ">"];

/// Parser of one command line, with the position up to which it is read.
#[derive(Debug)]
pub(super) struct CommandLineParser<'t> {
    text: &'t str,
    at: usize,
    commands: Vec<SimpleCommand>,
    /// Words of the current command.
    words: Vec<CommandArgument>,
    has_redirection: bool,
    /// Whether the last operator requires a command after it.
    needs_command: bool,
    /// Here-documents whose text starts on the next line.
    pending: Vec<HereDocument>,
    /// Reason why more runs than the commands read so far.
    runs_others: Option<&'static str>,
}

/// A here-document whose text is still to be read.
#[derive(Debug)]
struct HereDocument {
    delimiter: String,
    strips_tabs: bool,
    expands: bool,
}

/// A word of a command line, without its quotes.
#[derive(Debug, Default)]
struct ShellWord {
    text: String,
    is_quoted: bool,
    /// Position of the first wildcard.
    wildcard: Option<usize>,
    has_brace: bool,
}

impl<'t> CommandLineParser<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            commands: Vec::new(),
            words: Vec::new(),
            has_redirection: false,
            needs_command: false,
            pending: Vec::new(),
            runs_others: None,
        }
    }

    /// Reads simple commands up to the end, or up to the first part that is not understood.
    pub(super) fn read(mut self) -> (Vec<SimpleCommand>, Option<&'static str>) {
        let stopped = self.line().err();
        (self.commands, stopped.or(self.runs_others))
    }

    fn line(&mut self) -> ParseResult<()> {
        loop {
            self.skip_blanks();
            let Some(next) = self.rest().chars().next() else { break };
            match next {
                '\n' => {
                    self.at += 1;
                    self.end_command()?;
                    self.here_documents()?;
                }
                ';' | '&' | '|' => self.operator()?,
                '<' | '>' => self.redirection()?,
                _ => self.next_word()?,
            }
        }
        self.end_command()?;
        match (self.needs_command, self.pending.is_empty()) {
            (true, _) => Err("it ends with an operator"),
            (_, false) => Err("a here-document has no end"),
            _ => Ok(()),
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn takes(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        self.at += if is_next { text.len() } else { 0 };
        is_next
    }

    /// Skips blanks, comments, and escaped line ends between blanks. In other places shells treat an escaped line end differently.
    fn skip_blanks(&mut self) {
        loop {
            let is_separated = self.text[..self.at].ends_with(|before: char| " \t\n".contains(before)) || self.at == 0;
            if self.takes(" ") || self.takes("\t") || (is_separated && self.takes("\\\n")) {
                continue;
            }
            if !self.rest().starts_with('#') {
                return;
            }
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    fn operator(&mut self) -> ParseResult<()> {
        if self.words.is_empty() {
            return Err("an operator has no command before it");
        }
        if [";;", ";&", "&>", "|&", "&&&", "|||"].iter().any(|operator| self.rest().starts_with(operator)) {
            return Err("shells differ about one of its operators");
        }
        self.end_command()?;
        self.needs_command = self.takes("&&") || self.takes("||") || self.takes("|");
        if !self.needs_command {
            self.at += 1;
        }
        Ok(())
    }

    fn end_command(&mut self) -> ParseResult<()> {
        let mut words = std::mem::take(&mut self.words).into_iter();
        let has_redirection = std::mem::take(&mut self.has_redirection);
        match words.next() {
            None if has_redirection => Err("a redirection has no command"),
            None => Ok(()),
            Some(CommandArgument::Glob(_)) => Err("the name of a command is not written out"),
            Some(CommandArgument::Literal(name)) => {
                let mut command = SimpleCommand { name, arguments: words.collect(), runs_others: false };
                if let Err(reason) = refuse_indirection(&command) {
                    command.runs_others = true;
                    self.runs_others = self.runs_others.or(Some(reason));
                }
                self.commands.push(command);
                self.needs_command = false;
                Ok(())
            }
        }
    }

    fn next_word(&mut self) -> ParseResult<()> {
        let word = self.word()?;
        if self.rest().starts_with(['<', '>']) {
            match (word.is_number(), word.text.len(), word.has_brace) {
                (true, 1, _) => return Ok(()),
                (true, ..) | (_, _, true) => return Err("shells differ about a descriptor that is no digit"),
                _ => {}
            }
        }
        // A name with this sign would be odd enough to be refused too.
        if self.words.is_empty() && word.text.contains('=') {
            return Err("it sets a variable");
        }
        self.words.push(word.into_argument()?);
        Ok(())
    }

    fn redirection(&mut self) -> ParseResult<()> {
        let operator = REDIRECTIONS.into_iter().find(|operator| self.takes(operator)).unwrap_or_default();
        self.skip_blanks();
        let target = self.word()?;
        if target.wildcard.is_some() {
            return Err("the target of a redirection is not written out");
        }
        self.has_redirection = true;
        match operator {
            "<<<" => Err("shells differ about '<<<'; use a pipe or a here-document"),
            ">&" | "<&" if !(target.is_number() && target.text.len() == 1) && target.text != "-" => {
                Err("shells differ about a descriptor that is no digit")
            }
            "<<" | "<<-" => {
                let strips_tabs = operator == "<<-";
                let expands = !target.is_quoted;
                self.pending.push(HereDocument { delimiter: target.text, strips_tabs, expands });
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Reads the text of the here-documents whose line has ended.
    fn here_documents(&mut self) -> ParseResult<()> {
        for document in std::mem::take(&mut self.pending) {
            loop {
                let line = self.rest().split_inclusive('\n').next().ok_or("a here-document has no end")?;
                self.at += line.len();
                let line = if document.strips_tabs { line.trim_start_matches('\t') } else { line };
                if line.trim_end_matches('\n') == document.delimiter {
                    break;
                }
                if document.expands && line.contains(['$', '`', '\\']) {
                    return Err("a here-document may have expansions; quote its delimiter");
                }
            }
        }
        Ok(())
    }

    fn word(&mut self) -> ParseResult<ShellWord> {
        let (start, mut word) = (self.at, ShellWord::default());
        while let Some(next) = self.rest().chars().next() {
            if " \t\n;&|<>".contains(next) {
                break;
            }
            self.at += next.len_utf8();
            match next {
                '\'' => {
                    let end = self.rest().find('\'').ok_or("a quote is not closed")?;
                    word.quoted(&self.rest()[..end]);
                    self.at += end + 1;
                }
                '"' => self.double_quotes(&mut word)?,
                '\\' => {
                    let escaped = self.rest().chars().next().filter(|next| *next != '\n');
                    let escaped = escaped.ok_or("shells differ about a line that is continued in a word")?;
                    self.at += escaped.len_utf8();
                    word.quoted(escaped.encode_utf8(&mut [0; 4]));
                }
                plain => word.plain(plain)?,
            }
        }
        if self.at == start {
            return Err("a redirection has no target");
        }
        if !self.pending.is_empty() && self.text[start..self.at].contains('\n') {
            return Err("shells differ about a word of several lines before a here-document");
        }
        Ok(word)
    }

    /// Reads a double-quoted text, after the opening quote.
    fn double_quotes(&mut self, word: &mut ShellWord) -> ParseResult<()> {
        loop {
            let plain = self.rest().find(['"', '$', '`', '\\']).ok_or("a quote is not closed")?;
            word.quoted(&self.rest()[..plain]);
            self.at += plain;
            if self.takes("\"") {
                return Ok(());
            }
            if !self.takes("\\") {
                return Err(EXPANSION);
            }
            let escaped = self.rest().chars().next().ok_or("a quote is not closed")?;
            match escaped {
                '\n' => return Err("shells differ about a line that is continued in a word"),
                '"' | '$' | '`' | '\\' => {
                    self.at += 1;
                    word.quoted(escaped.encode_utf8(&mut [0; 4]));
                }
                _ => word.quoted("\\"),
            }
        }
    }
}

impl ShellWord {
    fn quoted(&mut self, text: &str) {
        self.is_quoted = true;
        self.text.push_str(text);
    }

    /// Adds an unquoted character.
    fn plain(&mut self, next: char) -> ParseResult<()> {
        match next {
            '$' | '`' => return Err(EXPANSION),
            '(' | ')' => return Err("it has a parenthesis: a group, a function or a pattern"),
            '~' if self.text.is_empty() || self.text.ends_with(['=', ':']) => return Err(EXPANSION),
            ',' if self.has_brace => return Err(EXPANSION),
            '.' if self.has_brace && self.text.ends_with('.') => return Err(EXPANSION),
            '{' => self.has_brace = true,
            '*' | '?' | '[' => self.wildcard = self.wildcard.or(Some(self.text.len())),
            odd if odd.is_control() || odd.is_whitespace() => {
                return Err("it has a control character outside of quotes");
            }
            _ => {}
        }
        self.text.push(next);
        Ok(())
    }

    fn is_number(&self) -> bool {
        !self.is_quoted && !self.text.is_empty() && self.text.bytes().all(|digit| digit.is_ascii_digit())
    }

    fn into_argument(mut self) -> ParseResult<CommandArgument> {
        // A bracket alone is the name of a builtin.
        let wildcard = self.wildcard.filter(|_| self.text != "[");
        let Some(wildcard) = wildcard else { return Ok(CommandArgument::Literal(self.text)) };
        self.text.truncate(wildcard);
        if self.text.contains('/') && !self.text.starts_with('-') {
            Ok(CommandArgument::Glob(self.text))
        } else {
            Err("a glob could become any word; write a directory before it, such as './*'")
        }
    }
}
