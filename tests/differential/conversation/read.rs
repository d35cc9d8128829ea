//! Text into steps.

use super::{Act, Ask, BadFile, Bookmarks, Conversation, Count};
use super::{Differs, Mark, Step, Subset, Until, Who};
use crate::values::{Names, Template};

/// A thing that can be wrong in a line, without its place.
type Line<T> = Result<T, String>;

/// Lines with their numbers.
type Numbered<'a> = [(usize, &'a str)];

pub(super) fn conversation(path: &str, text: &str) -> Result<Conversation, BadFile> {
    let lines: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
        .collect();
    let bad = |line: usize, why: String| BadFile {
        path: path.to_owned(),
        line,
        why,
    };
    let is_title = |(_, line): &(usize, &str)| line.starts_with("###");
    let first = lines.iter().position(is_title);
    let first = first.ok_or_else(|| bad(1, "no step: one begins with ### and a title".into()))?;
    if let Some((line, _)) = lines[..first].iter().find(|(_, line)| !is_comment(line)) {
        return Err(bad(
            *line,
            "before the first ### stand only # comments".into(),
        ));
    }
    let mut names = Names::default();
    let mut steps = Vec::new();
    let mut rest = &lines[first..];
    while let Some((title, after)) = rest.split_first() {
        let end = after.iter().position(is_title).unwrap_or(after.len());
        let (own, next) = after.split_at(end);
        let step = Reader { names: &mut names }.step(*title, own);
        steps.push(step.map_err(|(line, why)| bad(line, why))?);
        rest = next;
    }
    let preface = lines[..first].iter().map(|(_, line)| format!("{line}\n"));
    Ok(Conversation {
        path: path.to_owned(),
        text: text.to_owned(),
        preface: preface.collect(),
        steps,
    })
}

fn is_comment(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with('#')
}

/// What the directives of a step say.
struct Directives {
    name: Option<String>,
    stream: Option<String>,
    bookmarks: Bookmarks,
    who: Who,
    until: Option<Until>,
    repeat: u32,
    differs: Vec<Differs>,
    subsets: Vec<Subset>,
}

struct Reader<'a> {
    names: &'a mut Names,
}

impl Reader<'_> {
    fn step(&mut self, title: (usize, &str), own: &Numbered<'_>) -> Result<Step, (usize, String)> {
        let act_at = own.iter().position(|(_, line)| !is_comment(line));
        let act_at = act_at.ok_or_else(|| (title.0, "a step without a request".to_owned()))?;
        let mut said = Directives {
            name: None,
            stream: None,
            bookmarks: Bookmarks::LeftOut,
            who: Who::Admin,
            until: None,
            repeat: 1,
            differs: Vec::new(),
            subsets: Vec::new(),
        };
        for (number, line) in &own[..act_at] {
            if let Some(words) = line.trim_start_matches('#').trim().strip_prefix('@') {
                self.directive(words, &mut said)
                    .map_err(|why| (*number, why))?;
            }
        }
        let act = self.act(&own[act_at..], &said)?;
        if let Some(name) = &said.name {
            self.names.add_answer(name).map_err(|why| (title.0, why))?;
        }
        let source = std::iter::once(&title).chain(own);
        Ok(Step {
            line: title.0,
            title: title.1.trim_start_matches('#').trim().to_owned(),
            source: source.map(|(_, line)| format!("{line}\n")).collect(),
            name: said.name,
            who: said.who,
            until: said.until,
            repeat: said.repeat,
            differs: said.differs,
            subsets: said.subsets,
            act,
        })
    }

    fn directive(&self, words: &str, said: &mut Directives) -> Line<()> {
        let mut words = words.split_whitespace();
        let kind = words.next().unwrap_or_default();
        let rest: Vec<&str> = words.collect();
        match (kind, rest.as_slice()) {
            ("name", [name]) => said.name = Some(plain_name(name)?),
            ("watch", [name]) => said.stream = Some(plain_name(name)?),
            ("bookmarks", []) => said.bookmarks = Bookmarks::Counted,
            ("as", who) => said.who = self.who(who)?,
            ("until", [_, ..]) => said.until = Some(self.until(&rest.join(" "))?),
            ("repeat", [times]) => said.repeat = times.parse().map_err(|_| not_a_number(times))?,
            ("differs", [entry, paths @ ..]) if !paths.is_empty() => said.differs.push(Differs {
                entry: entry.parse().map_err(|_| not_a_number(entry))?,
                marks: paths.iter().map(|word| mark(word)).collect::<Line<_>>()?,
            }),
            ("subset", [entry, path, key @ .., ours]) if key.len() < 2 => {
                said.subsets.push(Subset {
                    entry: entry.parse().map_err(|_| not_a_number(entry))?,
                    path: (*path).to_owned(),
                    key: key.first().map(ToString::to_string),
                    ours: ours.parse().map_err(|_| not_a_number(ours))?,
                });
            }
            _ => {
                return Err(format!(
                    "no directive @{kind} with {} words after it; see README.md beside the folders",
                    rest.len()
                ));
            }
        }
        Ok(())
    }

    fn who(&self, words: &[&str]) -> Line<Who> {
        match words {
            ["admin"] => Ok(Who::Admin),
            ["nobody"] => Ok(Who::Nobody),
            ["node", name] => Ok(Who::User {
                name: self.template(&format!("system:node:{name}"))?,
                groups: vec![self.template("system:nodes")?],
            }),
            ["user", name, groups @ ..] => {
                let groups = groups.iter().map(|group| self.template(group));
                Ok(Who::User {
                    name: self.template(name)?,
                    groups: groups.collect::<Line<_>>()?,
                })
            }
            _ => Err("@as admin, nobody, node NAME, or user NAME GROUP...".to_owned()),
        }
    }

    fn until(&self, words: &str) -> Line<Until> {
        match words.split_once('=') {
            None => {
                let status = words.parse().map_err(|_| not_a_number(words))?;
                Ok(Until::Status(status))
            }
            Some((path, value)) => Ok(Until::Field {
                path: path.to_owned(),
                value: self.template(value)?,
            }),
        }
    }

    fn act(&mut self, lines: &Numbered<'_>, said: &Directives) -> Result<Act, (usize, String)> {
        let (number, line) = lines[0];
        match line.trim().split_once(' ') {
            Some(("EVENTS", words)) => {
                let act = self.events(words, said);
                if let Some((extra, _)) = lines[1..].iter().find(|(_, line)| !is_comment(line)) {
                    return Err((*extra, "nothing follows EVENTS".to_owned()));
                }
                act.map_err(|why| (number, why))
            }
            Some((method, target)) if is_method(method) => {
                let ask = self.ask(method, target.trim(), lines)?;
                self.asked(ask, said).map_err(|why| (number, why))
            }
            _ => {
                let why = "neither EVENTS STREAM COUNT nor METHOD TARGET".to_owned();
                Err((number, why))
            }
        }
    }

    fn events(&self, words: &str, said: &Directives) -> Line<Act> {
        let words: Vec<&str> = words.split_whitespace().collect();
        let (stream, count) = words.split_first().unwrap_or((&"", &[]));
        if !self.names.has_stream(stream) {
            return Err(format!("no step before this one has # @watch {stream}"));
        }
        if said.repeat != 1 || said.until.is_some() || said.stream.is_some() {
            return Err("EVENTS knows @name, @differs and @subset only".to_owned());
        }
        let count = match count {
            ["end"] => Count::End,
            ["until", condition] => match self.until(condition)? {
                Until::Field { path, value } => Count::Until { path, value },
                Until::Status(_) => return Err("EVENTS W until PATH=VALUE".to_owned()),
            },
            [number] => Count::Next(number.parse().map_err(|_| not_a_number(number))?),
            _ => return Err("EVENTS W COUNT, EVENTS W end or EVENTS W until PATH=VALUE".to_owned()),
        };
        Ok(Act::Events {
            stream: (*stream).to_owned(),
            count,
        })
    }

    fn ask(
        &self,
        method: &str,
        target: &str,
        lines: &Numbered<'_>,
    ) -> Result<Ask, (usize, String)> {
        let placed = |number: usize| move |why: String| (number, why);
        let blank = lines.iter().position(|(_, line)| line.trim().is_empty());
        let (head, body) = lines.split_at(blank.unwrap_or(lines.len()));
        let mut headers = Vec::new();
        for (number, line) in &head[1..] {
            let header = line.split_once(':');
            let (name, value) = header.ok_or_else(|| {
                let why = "neither a header (Name: value) nor an empty line before the body";
                (*number, why.to_owned())
            })?;
            let value = self.template(value.trim()).map_err(placed(*number))?;
            headers.push((name.trim().to_owned(), value));
        }
        let first = body.first().map_or(0, |(number, _)| *number);
        let body: Vec<&str> = body.iter().map(|(_, line)| *line).collect();
        let body = body.join("\n");
        let body = match body.trim() {
            "" => None,
            body => Some(self.template(body).map_err(placed(first + 1))?),
        };
        Ok(Ask {
            method: method.to_owned(),
            target: self.template(target).map_err(placed(lines[0].0))?,
            headers,
            body,
        })
    }

    fn asked(&mut self, ask: Ask, said: &Directives) -> Line<Act> {
        let Some(stream) = &said.stream else {
            return Ok(Act::Ask(ask));
        };
        if said.repeat != 1 || said.until.is_some() || said.name.is_some() {
            return Err("@watch goes with none of @repeat, @until and @name".to_owned());
        }
        self.names.add_stream(stream)?;
        Ok(Act::Watch {
            stream: stream.clone(),
            bookmarks: said.bookmarks,
            ask,
        })
    }

    fn template(&self, text: &str) -> Line<Template> {
        Template::parse(text, self.names)
    }
}

/// Also one that no server knows: how it is refused can be compared.
fn is_method(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// A place that differs. Which status ours is must be said: any other would be a fault of ours.
fn mark(word: &str) -> Line<Mark> {
    let (path, ours) = match word.split_once('=') {
        Some((path, ours)) => (path, Some(ours.to_owned())),
        None => (word, None),
    };
    match (path, &ours) {
        ("status", None) => Err("status=CODE: say which status ours is".to_owned()),
        (path, _) => Ok(Mark {
            path: path.to_owned(),
            ours,
        }),
    }
}

fn plain_name(name: &str) -> Line<String> {
    let plain = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    match plain {
        true => Ok(name.to_owned()),
        false => Err(format!(
            "{name:?}: a name has letters, digits, - and _ only"
        )),
    }
}

fn not_a_number(word: &str) -> String {
    format!("{word:?} is not a number")
}
