//! Whether a pod may be evicted: not while a disruption budget needs it.

use object::Resource;
use serde_json::Value;
use store::Range;

use super::kinds::selector;
use super::perform::Writes;
use super::{Target, field};
use crate::Status;

impl Writes {
    /// Refuses (429) the eviction of a pod that a budget of its namespace needs.
    pub(super) fn check_budgets(&self, target: &Target) -> Result<(), Status> {
        let pod = self.must_read(target)?.value;
        let budgets = Resource::new("policy", "poddisruptionbudgets");
        let budgets = self.all(&budgets, Range::Namespace(target.namespace.into()))?;
        match needed(&pod, &budgets) {
            false => Ok(()),
            true => {
                let words = "Cannot evict pod as it would violate the pod's disruption budget.";
                Err(Status::try_again(429, "TooManyRequests", words, 10))
            }
        }
    }
}

/// Whether a budget that allows no disruption selects the pod. One that does not run yet, or no
/// longer, disrupts nothing by going.
fn needed(pod: &Value, budgets: &[Value]) -> bool {
    let phase = field::at(pod, &["status", "phase"]).as_str();
    if matches!(phase, Some("Pending" | "Succeeded" | "Failed")) {
        return false;
    }
    let labels = field::at(pod, &["metadata", "labels"]);
    budgets.iter().any(|budget| {
        let selector = field::at(budget, &["spec", "selector"]);
        let allowed = field::at(budget, &["status", "disruptionsAllowed"]);
        let none_left = allowed.as_i64().unwrap_or_default() <= 0;
        none_left && selector.is_object() && selector::matches(selector, labels)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_budget_holds_the_running_pods_that_it_selects() {
        let pod = |phase: &str| {
            json!({
                "metadata": {"labels": {"app": "a"}}, "status": {"phase": phase}
            })
        };
        let budget = |app: &str, allowed: i64| {
            json!({
                "spec": {"selector": {"matchLabels": {"app": app}}},
                "status": {"disruptionsAllowed": allowed}
            })
        };
        assert!(needed(&pod("Running"), &[budget("b", 0), budget("a", 0)]));
        assert!(!needed(&pod("Running"), &[budget("a", 1)]));
        assert!(!needed(&pod("Running"), &[budget("b", 0)]));
        assert!(!needed(&pod("Pending"), &[budget("a", 0)]));
    }
}
