package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
)

// Budget says that a PodDisruptionBudget does not allow the eviction of a pod now.
const Budget Kind = "budget"

// mirrored is the annotation of static pods: a kubelet runs them from its own files, and the API server only
// mirrors them. They end with the machine.
const mirrored = corev1.MirrorPodAnnotationKey

// Pod is a v1 Pod, with the fields that draining a node needs.
type Pod struct {
	Namespace, Name, UID string
	// Node is the node to which it is bound.
	Node string
	// Owner is the kind of its controller, such as DaemonSet, or empty.
	Owner  string
	Labels map[string]string
	// Mirror says that a kubelet runs it from a file, Finished that it has ended, and Pending that it has
	// not started.
	Mirror, Finished, Pending bool
	// Ready says that the condition Ready is True.
	Ready bool
	// GoneBy is the time by which it must be gone, including its grace period. It is zero if the pod was not
	// deleted.
	GoneBy time.Time
}

// String returns namespace/name.
func (p Pod) String() string { return p.Namespace + "/" + p.Name }

// podOf converts a pod. GoneBy is zero unless the pod is being deleted.
func podOf(o *corev1.Pod) Pod {
	p := Pod{Namespace: o.Namespace, Name: o.Name, UID: string(o.UID), Node: o.Spec.NodeName, Labels: o.Labels,
		Finished: o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed, Pending: o.Status.Phase == corev1.PodPending}
	for _, c := range o.Status.Conditions {
		p.Ready = p.Ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	_, p.Mirror = o.Annotations[mirrored]
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		p.Owner = owner.Kind
	}
	if o.DeletionTimestamp != nil {
		p.GoneBy = o.DeletionTimestamp.Time
	}
	return p
}

// Pods lists the pods that are bound to a node, by name. An empty node means all pods.
func (c *Cluster) Pods(ctx context.Context, node string) ([]Pod, error) {
	what, o := "pods", metav1.ListOptions{}
	if node != "" {
		what, o.FieldSelector = "pods of the node "+node, fields.OneTermEqualSelector("spec.nodeName", node).String()
	}
	return list(what, o, func(o *metav1.ListOptions) ([]Pod, string, error) {
		var page corev1.PodList
		err := c.do(ctx, "list", what, c.rest.Get().Resource("pods").VersionedParams(o, parameters), &page)
		return each(page.Items, podOf), page.Continue, err
	})
}

// Evict asks the API server to evict a pod if it still has its uid. If the pod is gone or was replaced,
// Evict succeeds. If a PodDisruptionBudget forbids the eviction, the error has the kind Budget and names the
// budget.
func (c *Cluster) Evict(ctx context.Context, p Pod) error {
	in := policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}, DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(p.UID)}}
	err := c.do(ctx, "evict", "Pod "+p.String(), c.rest.Post().Namespace(p.Namespace).Resource("pods").Name(p.Name).SubResource("eviction").Body(&in), nil)
	if kind := KindOf(err); kind == NotFound || kind == Conflict {
		return nil
	}
	return err
}

// Cordon makes a node unschedulable and sets an annotation on it, if it still has the uid. Another node of
// its name is a Conflict.
func (c *Cluster) Cordon(ctx context.Context, node, uid, annotation, value string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": uid, "annotations": map[string]string{annotation: value}}, // the uid acts as a condition
		"spec":     map[string]any{"unschedulable": true},
	})
	if err != nil {
		return fmt.Errorf("write the patch of a node: %w", err)
	}
	return c.do(ctx, "cordon", "Node "+node, c.rest.Patch(types.MergePatchType).Resource("nodes").Name(node).Body(patch), nil)
}
