package workload

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DisruptionBudget is a PodDisruptionBudget, with the fields that the Eviction API uses.
type DisruptionBudget struct {
	Namespace, Name string
	// Counted says that the cluster has counted the pods for the budget's current spec. Until then the
	// budget allows no eviction.
	Counted bool
	// Allowed is the number of pods that may be evicted now. Of the Expected pods, Healthy are healthy and
	// Needed must be healthy.
	Allowed, Healthy, Needed, Expected int32
	// FreesUnready says that pods that are not Ready may always be evicted.
	FreesUnready bool
	// Why is the reason for which the cluster could not count, or empty.
	Why string

	// selects is the label selector of its pods, in the form of the API. none says that it selects no pod.
	selects string
	none    bool
}

// String returns namespace/name.
func (b DisruptionBudget) String() string { return b.Namespace + "/" + b.Name }

// budgetOf converts a PodDisruptionBudget. Counted is false while the status is older than the spec.
func budgetOf(o *policyv1.PodDisruptionBudget) DisruptionBudget {
	b := DisruptionBudget{
		Namespace: o.Namespace, Name: o.Name, Counted: o.Status.ObservedGeneration >= o.Generation,
		Allowed: o.Status.DisruptionsAllowed, Healthy: o.Status.CurrentHealthy, Needed: o.Status.DesiredHealthy, Expected: o.Status.ExpectedPods,
		FreesUnready: o.Spec.UnhealthyPodEvictionPolicy != nil && *o.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow,
	}
	for _, c := range o.Status.Conditions {
		if c.Type == policyv1.DisruptionAllowedCondition && c.Status == metav1.ConditionFalse && c.Reason == policyv1.SyncFailedReason {
			b.Why = clip(c.Message)
		}
	}
	// A budget without a selector selects no pod. An empty selector selects all pods of the namespace, as an
	// empty text does in the API.
	s, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
	if b.none = err != nil || o.Spec.Selector == nil; !b.none {
		b.selects = s.String()
	}
	return b
}

// Blocks reports whether the budget prevents the eviction of a pod that it selects. It uses the rules of the
// Eviction API.
func (b DisruptionBudget) Blocks(p Pod) bool {
	switch {
	case p.Finished || p.Pending || !p.GoneBy.IsZero():
		return false
	case !p.Ready && (b.FreesUnready || b.Needed > 0 && b.Healthy >= b.Needed):
		return false
	}
	return !b.Counted || b.Allowed <= 0
}

// DisruptionBudgets lists the PodDisruptionBudgets of all namespaces, by name.
func (c *Cluster) DisruptionBudgets(ctx context.Context) ([]DisruptionBudget, error) {
	const what = "poddisruptionbudgets"
	return list(what, metav1.ListOptions{}, func(o *metav1.ListOptions) ([]DisruptionBudget, string, error) {
		var page policyv1.PodDisruptionBudgetList
		err := c.do(ctx, "list", what, c.rest.Get().AbsPath("/apis/policy/v1/poddisruptionbudgets").VersionedParams(o, parameters), &page)
		return each(page.Items, budgetOf), page.Continue, err
	})
}

// PodsOf lists the pods that a budget selects, by name.
func (c *Cluster) PodsOf(ctx context.Context, b DisruptionBudget) ([]Pod, error) {
	if b.none {
		return nil, nil
	}
	what := "pods in " + b.Namespace
	return list(what, metav1.ListOptions{LabelSelector: b.selects}, func(o *metav1.ListOptions) ([]Pod, string, error) {
		var page corev1.PodList
		err := c.do(ctx, "list", what, c.rest.Get().Namespace(b.Namespace).Resource("pods").VersionedParams(o, parameters), &page)
		return each(page.Items, podOf), page.Continue, err
	})
}
