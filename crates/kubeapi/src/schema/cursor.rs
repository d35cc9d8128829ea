//! Walking a schema along a patch: what a field is, and how what stands there merges.

use super::{ListKind, Merge, Schema, Shape};

/// A place in a schema. Past what the schema knows there is still a place, about which nothing is
/// said.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    schema: Option<&'a Schema>,
    /// What the owner of a field says about it, where the field's type is shared.
    merge: Option<&'a Merge>,
}

/// How entries of a list are told apart when it merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListMerge<'a> {
    /// The list is replaced as a whole.
    Replace,
    /// Plain values; each stands at most once.
    Values,
    /// Objects, told apart by this field.
    ByKey(&'a str),
}

impl<'a> Cursor<'a> {
    /// The root of a schema, or of nothing.
    pub fn new(schema: Option<&'a Schema>) -> Self {
        Self {
            schema,
            merge: None,
        }
    }

    /// The schema here, where there is one.
    pub fn schema(&self) -> Option<&'a Schema> {
        self.schema
    }

    /// Whether the schema describes this place at all.
    pub fn is_known(&self) -> bool {
        self.schema.is_some()
    }

    /// The place of a field, or of an entry of a map.
    pub fn field(&self, name: &str) -> Cursor<'a> {
        let Some(schema) = self.schema else {
            return Cursor::new(None);
        };
        let merges = schema
            .native
            .as_deref()
            .map(|native| native.merges.as_slice());
        let said = merges
            .unwrap_or_default()
            .iter()
            .find(|(field, _)| &**field == name);
        Cursor {
            schema: schema.field(name),
            merge: said.map(|(_, merge)| merge),
        }
    }

    /// The place of a list's items.
    pub fn item(&self) -> Cursor<'a> {
        Cursor::new(self.schema.and_then(Schema::items))
    }

    /// What is said about merging here.
    pub fn merge(&self) -> Option<&'a Merge> {
        self.merge
            .or_else(|| self.schema.map(|schema| &schema.merge))
    }

    /// How a strategic merge patch treats the list here.
    pub fn list_merge(&self) -> ListMerge<'a> {
        match self.merge() {
            Some(merge) if merge.merge && merge.key.is_empty() => ListMerge::Values,
            Some(merge) if merge.merge => ListMerge::ByKey(&merge.key),
            _ => ListMerge::Replace,
        }
    }

    /// Whether the object here is replaced as a whole by a strategic merge patch.
    pub fn replaces(&self) -> bool {
        self.merge().is_some_and(|merge| merge.replace)
    }

    /// Whether keys that a patch does not retain go.
    pub fn retains_keys(&self) -> bool {
        self.merge().is_some_and(|merge| merge.retain_keys)
    }

    /// The keys that tell entries of the list apart for everything but a strategic merge.
    pub fn list_keys(&self) -> &'a [Box<str>] {
        match self.schema.map(|schema| &schema.list) {
            Some(ListKind::Map(keys)) => keys,
            _ => &[],
        }
    }

    /// Whether a list stands here.
    pub fn is_list(&self) -> bool {
        matches!(
            self.schema.map(|schema| &schema.shape),
            Some(Shape::Array(_))
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::builtin::definition;
    use super::*;

    fn deployment() -> Cursor<'static> {
        Cursor::new(definition("io.k8s.api.apps.v1.Deployment"))
    }

    #[test]
    fn merge_keys_are_found_along_a_patch() {
        let pod = deployment().field("spec").field("template").field("spec");
        let containers = pod.field("containers");
        assert_eq!(containers.list_merge(), ListMerge::ByKey("name"));
        let container = containers.item();
        assert_eq!(
            container.field("env").list_merge(),
            ListMerge::ByKey("name")
        );
        assert_eq!(
            container.field("ports").list_merge(),
            ListMerge::ByKey("containerPort")
        );
        assert_eq!(container.field("args").list_merge(), ListMerge::Replace);
        assert_eq!(pod.field("tolerations").list_merge(), ListMerge::Replace);
        let finalizers = deployment().field("metadata").field("finalizers");
        assert_eq!(finalizers.list_merge(), ListMerge::Values);
    }

    #[test]
    fn what_the_owner_of_a_field_says_is_found_too() {
        let strategy = deployment().field("spec").field("strategy");
        assert!(strategy.retains_keys() && !strategy.replaces());
        let budget = Cursor::new(definition("io.k8s.api.policy.v1.PodDisruptionBudget"));
        assert!(budget.field("spec").field("selector").replaces());
    }

    #[test]
    fn past_the_schema_nothing_is_said() {
        let beyond = deployment().field("nope").field("deeper").item();
        assert!(!beyond.is_known());
        assert_eq!(beyond.list_merge(), ListMerge::Replace);
    }
}
