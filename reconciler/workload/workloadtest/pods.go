package workloadtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// everywhere means all namespaces.
const everywhere = "*"

// Pod is a pod that a test adds.
type Pod struct {
	Namespace, Name, Node string
	Labels                map[string]string
	// Owner is the kind of its controller, or "". Phase defaults to Running.
	Owner, Phase string
	Mirror       bool
	// Stuck pods are not terminated by their kubelet.
	Stuck bool
	// Grace is the termination grace period in seconds. It defaults to 30.
	Grace int
	// Unready pods do not have the condition Ready.
	Unready bool
}

// AddPod adds or replaces a pod. The pod gets a new uid.
func (s *Server) AddPod(p Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uid++
	labels, annotations, owners := object{}, object{}, []any{}
	for k, v := range p.Labels {
		labels[k] = v
	}
	if p.Mirror {
		annotations["kubernetes.io/config.mirror"] = "hash"
	}
	if p.Owner != "" {
		owners = append(owners, object{"apiVersion": "apps/v1", "kind": p.Owner, "name": "of-" + p.Name, "uid": "o", "controller": true})
	}
	if p.Phase == "" {
		p.Phase = "Running"
	}
	if p.Grace == 0 {
		p.Grace = 30
	}
	key := p.Namespace + "/" + p.Name
	s.ignore[key] = p.Stuck
	s.pods[key] = object{
		"metadata": object{"namespace": p.Namespace, "name": p.Name, "uid": fmt.Sprintf("pod-%d", s.uid), "labels": labels, "annotations": annotations, "ownerReferences": owners},
		"spec":     object{"nodeName": p.Node, "terminationGracePeriodSeconds": p.Grace},
		"status":   object{"phase": p.Phase, "conditions": []any{object{"type": "Ready", "status": map[bool]string{true: "True", false: "False"}[p.Phase == "Running" && !p.Unready]}}},
	}
}

// RemovePod removes a pod, by namespace/name.
func (s *Server) RemovePod(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, key)
}

// Pods returns the names of a node's pods that are not being deleted, sorted.
func (s *Server) Pods(node string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for key, p := range s.pods {
		if member(p, "spec", "nodeName") == node && member(p, "metadata", "deletionTimestamp") == nil {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// Evicted returns the pods with an accepted eviction, in order, once for every request.
func (s *Server) Evicted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.evicted)
}

// Node returns the value of a node's annotation, and whether the node is cordoned.
func (s *Server) Node(name, annotation string) (value string, cordoned bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	annotations, _ := member(s.nodes["/"+name], "metadata", "annotations").(object)
	value, _ = annotations[annotation].(string)
	return value, member(s.nodes["/"+name], "spec", "unschedulable") == true
}

// Annotate puts an annotation on a node.
func (s *Server) Annotate(node, annotation, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	merge(s.nodes["/"+node], object{"metadata": object{"annotations": object{annotation: value}}})
}

// AddBudget adds or replaces a PodDisruptionBudget for the pods with a label. It allows the given number of
// evictions, and each eviction uses one up.
func (s *Server) AddBudget(namespace, name, key, value string, allowed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.budgets[namespace+"/"+name] = object{
		"metadata": object{"namespace": namespace, "name": name}, "spec": object{"selector": object{"matchLabels": object{key: value}}},
		"status": object{"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1},
	}
}

// EditBudget changes members of a budget, by namespace/name, as a merge patch does.
func (s *Server) EditBudget(key string, patch map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	merge(s.budgets[key], patch)
}

func member(o object, path ...string) any {
	for _, p := range path[:len(path)-1] {
		o, _ = o[p].(object)
	}
	return o[path[len(path)-1]]
}

// bound reports whether an object is bound to the node of a field selector.
func bound(o object, selector string) bool {
	node, asked := strings.CutPrefix(selector, "spec.nodeName=")
	return !asked || member(o, "spec", "nodeName") == node
}

// workloads handles requests about pods, and changes of nodes. It returns status 0 for all other requests.
func (s *Server) workloads(parts []string, r *http.Request, body []byte) (int, object) {
	switch {
	case len(parts) == 2 && parts[0] == "nodes" && r.Method == http.MethodPatch:
		return s.patchNode(parts[1], r, body)
	case len(parts) == 1 && parts[0] == "pods" && r.Method == http.MethodGet:
		s.endPods()
		return s.list("Pod", s.pods, everywhere, r)
	case len(parts) == 3 && parts[0] == "namespaces" && parts[2] == "pods" && r.Method == http.MethodGet:
		s.endPods()
		return s.list("Pod", s.pods, parts[1], r)
	case len(parts) == 5 && parts[0] == "namespaces" && parts[2] == "pods" && parts[4] == "eviction" && r.Method == http.MethodPost:
		s.endPods()
		return s.evict(parts[1]+"/"+parts[3], parts[3], body)
	}
	return 0, nil
}

func (s *Server) allBudgets(r *http.Request) (int, object) {
	status, out := s.list("PodDisruptionBudget", s.budgets, everywhere, r)
	out["apiVersion"] = "policy/v1"
	return status, out
}

// endPods removes deleted pods after their grace period.
func (s *Server) endPods() {
	for key, p := range s.pods {
		until, deleted := member(p, "metadata", "deletionTimestamp").(string)
		if at, err := time.Parse(time.RFC3339, until); deleted && err == nil && !s.ignore[key] && !s.clock().Before(at) {
			delete(s.pods, key)
		}
	}
}

func (s *Server) patchNode(name string, r *http.Request, body []byte) (int, object) {
	node := s.nodes["/"+name]
	if node == nil {
		return refuse(http.StatusNotFound, "NotFound", "nodes %q not found", name)
	}
	if r.Header.Get("Content-Type") != "application/merge-patch+json" {
		return refuse(http.StatusUnsupportedMediaType, "UnsupportedMediaType", "the body is no patch")
	}
	var patch object
	if err := json.Unmarshal(body, &patch); err != nil {
		return refuse(http.StatusBadRequest, "BadRequest", "%v", err)
	}
	if uid := member(patch, "metadata", "uid"); uid != nil && uid != member(node, "metadata", "uid") {
		return refuse(http.StatusConflict, "Conflict", "Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, member(node, "metadata", "uid"))
	}
	merge(node, patch)
	return http.StatusOK, node
}

// merge applies a JSON merge patch (RFC 7396).
func merge(into, patch object) {
	for k, v := range patch {
		below, isObject := v.(object)
		switch have, ok := into[k].(object); {
		case v == nil:
			delete(into, k)
		case isObject && ok:
			merge(have, below)
		case isObject:
			fresh := object{}
			merge(fresh, below)
			into[k] = fresh
		default:
			into[k] = v
		}
	}
}

// evict implements the Eviction subresource. It deletes a pod if its budget allows that.
func (s *Server) evict(key, name string, body []byte) (int, object) {
	var e struct {
		APIVersion    string `json:"apiVersion"`
		Kind          string `json:"kind"`
		Metadata      object `json:"metadata"`
		DeleteOptions struct {
			Preconditions struct {
				UID string `json:"uid"`
			} `json:"preconditions"`
		} `json:"deleteOptions"`
	}
	if err := json.Unmarshal(body, &e); err != nil || e.APIVersion != "policy/v1" || e.Kind != "Eviction" || e.Metadata["name"] != name {
		return refuse(http.StatusBadRequest, "BadRequest", "the body is no Eviction of policy/v1 of the pod: %s", body)
	}
	pod := s.pods[key]
	if pod == nil {
		return refuse(http.StatusNotFound, "NotFound", "pods %q not found", name)
	}
	meta, _ := pod["metadata"].(object)
	if uid := e.DeleteOptions.Preconditions.UID; uid != "" && uid != meta["uid"] {
		return refuse(http.StatusConflict, "Conflict", "the UID in the precondition (%s) does not match the UID in record (%v)", uid, meta["uid"])
	}
	if meta["deletionTimestamp"] != nil {
		s.evicted = append(s.evicted, key)
		return http.StatusCreated, object{"kind": "Status", "status": "Success"}
	}
	var budgets []string
	for at, b := range s.budgets {
		namespace, _, _ := strings.Cut(at, "/")
		if namespace == meta["namespace"] && covers(b, pod) {
			budgets = append(budgets, at)
		}
	}
	if len(budgets) > 1 {
		return refuse(http.StatusInternalServerError, "InternalError", "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
	}
	if len(budgets) == 1 {
		status, _ := s.budgets[budgets[0]]["status"].(object)
		allowed, _ := status["disruptionsAllowed"].(int)
		if allowed <= 0 {
			code, out := refuse(http.StatusTooManyRequests, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
			_, budget, _ := strings.Cut(budgets[0], "/")
			out["details"] = object{"causes": []any{object{"reason": "DisruptionBudget", "message": "The disruption budget " + budget + " needs 1 healthy pods and has 1 currently"}}}
			return code, out
		}
		status["disruptionsAllowed"] = allowed - 1
	}
	s.evicted = append(s.evicted, key)
	grace, _ := member(pod, "spec", "terminationGracePeriodSeconds").(int)
	meta["deletionTimestamp"] = s.clock().Add(time.Duration(grace) * time.Second).UTC().Format(time.RFC3339)
	return http.StatusCreated, object{"kind": "Status", "status": "Success"}
}

func covers(budget, pod object) bool {
	wanted, _ := member(budget, "spec", "selector").(object)
	labels, _ := wanted["matchLabels"].(object)
	have, _ := member(pod, "metadata", "labels").(object)
	for k, v := range labels {
		if have[k] != v {
			return false
		}
	}
	return true
}
