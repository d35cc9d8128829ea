//! Parses the text of a label selector, with the errors that Kubernetes gives at the same places.

use super::label::{Operator, Requirement, check_key};
use super::{BadRequirement, BadSelector, SELECTOR_TERMS_MAX};

/// The terms of a selector's text, in its order.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, BadSelector> {
    let mut parser = Parser { rest: text };
    let mut requirements = Vec::new();
    if parser.peek() == Token::End {
        return Ok(requirements);
    }
    let mut expected = "!, identifier, or 'end of string'";
    loop {
        match parser.peek() {
            Token::Word(_) | Token::Not => {}
            other => return Err(unexpected(other, expected)),
        }
        requirements.push(parser.requirement()?);
        if requirements.len() > SELECTOR_TERMS_MAX {
            return Err(BadSelector::TooManyTerms);
        }
        match parser.next() {
            Token::End => return Ok(requirements),
            Token::Comma => expected = "identifier after ','",
            other => return Err(unexpected(other, "',' or 'end of string'")),
        }
    }
}

fn unexpected(found: Token<'_>, expected: &'static str) -> BadSelector {
    BadSelector::Unexpected {
        found: found.text(),
        expected,
    }
}

/// A word or a sign of a selector. `in` and `notin` are words that mean something after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    End,
    Word(&'a str),
    Not,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    Open,
    Close,
    Comma,
}

impl Token<'_> {
    fn text(self) -> String {
        let text = match self {
            Token::End => "",
            Token::Word(word) => word,
            Token::Not => "!",
            Token::Equals => "=",
            Token::DoubleEquals => "==",
            Token::NotEquals => "!=",
            Token::Greater => ">",
            Token::Less => "<",
            Token::Open => "(",
            Token::Close => ")",
            Token::Comma => ",",
        };
        text.to_owned()
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.scan().0
    }

    fn next(&mut self) -> Token<'a> {
        let (token, rest) = self.scan();
        self.rest = rest;
        token
    }

    fn scan(&self) -> (Token<'a>, &'a str) {
        let text = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let signs = [
            ("==", Token::DoubleEquals),
            ("=", Token::Equals),
            ("!=", Token::NotEquals),
            ("!", Token::Not),
            (">", Token::Greater),
            ("<", Token::Less),
            ("(", Token::Open),
            (")", Token::Close),
            (",", Token::Comma),
        ];
        for (sign, token) in signs {
            if let Some(rest) = text.strip_prefix(sign) {
                return (token, rest);
            }
        }
        let ends = |char: char| " \t\r\n=!(),<>".contains(char);
        let (word, rest) = text.split_at(text.find(ends).unwrap_or(text.len()));
        match word {
            "" => (Token::End, rest),
            word => (Token::Word(word), rest),
        }
    }

    fn requirement(&mut self) -> Result<Requirement, BadSelector> {
        let (key, inferred) = self.key().map_err(BadSelector::Requirement)?;
        let operator = match inferred {
            Some(operator) => operator,
            None => self.operator().map_err(BadSelector::Requirement)?,
        };
        let values = match operator {
            Operator::Exists | Operator::DoesNotExist => Vec::new(),
            Operator::In | Operator::NotIn => self.list()?,
            _ => vec![self.value().map_err(BadSelector::Requirement)?],
        };
        Requirement::new(key, operator, values, "key").map_err(BadSelector::Requirement)
    }

    /// A key, and the operator where the key alone says it.
    fn key(&mut self) -> Result<(&'a str, Option<Operator>), BadRequirement> {
        let absent = self.peek() == Token::Not;
        if absent {
            self.next();
        }
        let key = match self.next() {
            Token::Word(key) => key,
            other => return Err(wrong(other, "identifier")),
        };
        let mut faults = Vec::new();
        // The key of a text has no path in Kubernetes, and its errors say so.
        check_key(key, "<nil>", &mut faults);
        if !faults.is_empty() {
            return Err(BadRequirement::Invalid(faults));
        }
        let alone = matches!(self.peek(), Token::End | Token::Comma);
        Ok((
            key,
            match (absent, alone) {
                (true, _) => Some(Operator::DoesNotExist),
                (false, true) => Some(Operator::Exists),
                (false, false) => None,
            },
        ))
    }

    fn operator(&mut self) -> Result<Operator, BadRequirement> {
        match self.next() {
            Token::Word("in") => Ok(Operator::In),
            Token::Word("notin") => Ok(Operator::NotIn),
            Token::Equals | Token::DoubleEquals => Ok(Operator::Equals),
            Token::NotEquals => Ok(Operator::NotEquals),
            Token::Greater => Ok(Operator::Greater),
            Token::Less => Ok(Operator::Less),
            other => Err(wrong(other, "in, notin, =, ==, !=, gt, lt")),
        }
    }

    /// What stands behind an operator that takes one value; nothing at all is the empty value.
    fn value(&mut self) -> Result<Box<str>, BadRequirement> {
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Ok(Box::default());
        }
        match self.next() {
            Token::Word(value) => Ok(value.into()),
            other => Err(wrong(other, "identifier")),
        }
    }

    /// `(a,b)`. Nothing between two signs is the empty value.
    fn list(&mut self) -> Result<Vec<Box<str>>, BadSelector> {
        match self.next() {
            Token::Open => {}
            other => {
                let found = other.text();
                return Err(BadSelector::Requirement(BadRequirement::NoList { found }));
            }
        }
        match self.peek() {
            Token::Word(_) | Token::Comma | Token::Close => {}
            other => {
                let wrong = wrong(other, "',', ')' or identifier");
                return Err(BadSelector::Requirement(wrong));
            }
        }
        let mut values = Vec::new();
        loop {
            values.push(self.listed().map_err(BadSelector::Requirement)?);
            if values.len() > SELECTOR_TERMS_MAX {
                return Err(BadSelector::TooManyTerms);
            }
            // `listed` has made sure that one of these follows.
            if self.next() == Token::Close {
                return Ok(values);
            }
        }
    }

    /// One value of a list, with what ends it still to come.
    fn listed(&mut self) -> Result<Box<str>, BadRequirement> {
        let value = match self.peek() {
            Token::Comma | Token::Close => return Ok(Box::default()),
            Token::Word(value) => value,
            other => return Err(wrong(other, "',', or identifier")),
        };
        self.next();
        match self.peek() {
            Token::Comma | Token::Close => Ok(value.into()),
            other => Err(wrong(other, "',' or ')'")),
        }
    }
}

fn wrong(found: Token<'_>, expected: &'static str) -> BadRequirement {
    BadRequirement::Unexpected {
        found: found.text(),
        expected,
    }
}
