//! Where in an object something is, written as Kubernetes writes it: `spec.ports[0].name`.

use std::fmt;

/// A place in an object, as a chain up to the root. It lives on the stack of the walk that made it
/// and costs nothing until it is written.
#[derive(Clone, Copy)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    /// The object itself.
    pub const ROOT: Path<'static> = Path {
        parent: None,
        step: Step::Root,
    };

    /// A field of what is here: `.name`.
    pub fn field(&'a self, name: &'a str) -> Path<'a> {
        self.then(Step::Field(name))
    }

    /// An entry of the map that is here: `[name]`.
    pub fn key(&'a self, name: &'a str) -> Path<'a> {
        self.then(Step::Key(name))
    }

    /// An item of the list that is here: `[3]`.
    pub fn index(&'a self, index: usize) -> Path<'a> {
        self.then(Step::Index(index))
    }

    /// Whether this is the object itself.
    pub fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }

    fn then(&'a self, step: Step<'a>) -> Path<'a> {
        Path {
            parent: Some(self),
            step,
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chain = vec![self];
        while let Some(parent) = chain.last().and_then(|path| path.parent) {
            chain.push(parent);
        }
        let mut first = true;
        for path in chain.iter().rev() {
            match path.step {
                Step::Root => continue,
                Step::Field(name) if first => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Key(name) => write!(f, "[{name}]")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
            first = false;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_as_kubernetes_writes_it() {
        let spec = Path::ROOT.field("spec");
        let ports = spec.field("ports");
        let second = ports.index(1);
        assert_eq!(second.field("name").to_string(), "spec.ports[1].name");
        assert_eq!(spec.key("a.b/c").to_string(), "spec[a.b/c]");
        assert_eq!(Path::ROOT.to_string(), "");
    }
}
