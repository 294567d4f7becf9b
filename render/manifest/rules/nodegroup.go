package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// The limits of a nodegroup: Taint and labels of CreateNodegroup in the API reference
// of EKS, and "Node taints on managed node groups" in its user guide.
const (
	maxLabelText = 63
	maxTaints    = 50
)

// reservedLabel reports whether EKS reserves a label for itself. EKS refuses it with "cannot contain reserved
// prefixes [kubernetes.io/, k8s.io/, eks.amazonaws.com/]", but accepts the labels that a kubelet may set on
// itself. EKS accepts taints with any prefix.
func reservedLabel(key string) bool {
	prefix, _, prefixed := strings.Cut(key, "/")
	if !prefixed || strings.HasSuffix(prefix, "node.kubernetes.io") || strings.HasSuffix(prefix, "kubelet.kubernetes.io") || prefix == "node.k8s.io" {
		return false
	}
	return slices.ContainsFunc([]string{"kubernetes.io", "k8s.io", "eks.amazonaws.com"}, func(kept string) bool {
		return prefix == kept || strings.HasSuffix(prefix, "."+kept)
	})
}

// checkNodegroupLabels checks spec.labels by the rules of Kubernetes and of EKS.
func checkNodegroupLabels(r kinds.Reporter, s *kinds.AWSManagedMachinePoolSpec) {
	p := path("spec", "labels")
	checkLabels(r, p, s.Labels, true)
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		at := p.Join(key)
		switch {
		case len(key) > maxLabelText:
			r.To.Add(kinds.Fault{Code: "bad-name", Summary: fmt.Sprintf("label key %q has %d characters; EKS allows %d, the prefix included", key, len(key), maxLabelText), Ref: r.Ref, Path: at, Key: true})
		case reservedLabel(key):
			r.To.Add(kinds.Fault{Code: "reserved-label", Summary: fmt.Sprintf("EKS refuses label %s, because it reserves the prefix", key),
				Detail: "set it with the kubelet's --node-labels in the bootstrap configuration, or choose another key", Ref: r.Ref, Path: at, Key: true})
		}
		if s.Labels[key] == "" {
			r.Error(at, "bad-value", fmt.Sprintf("label %s is empty; EKS takes no label without a value", key), "")
		}
	}
}

// checkNodegroupTaints checks spec.taints by the rules of Kubernetes and of EKS.
func checkNodegroupTaints(r kinds.Reporter, s *kinds.AWSManagedMachinePoolSpec) {
	p := path("spec", "taints")
	if len(s.Taints) > maxTaints {
		r.Error(p, "too-many-taints", fmt.Sprintf("%s has %d taints; EKS allows %d", p, len(s.Taints), maxTaints), "")
	}
	seen := map[[2]string]int{}
	for i, t := range s.Taints {
		at := p.Join(intent.Index(i))
		prefix, name, prefixed := strings.Cut(t.Key, "/")
		if !prefixed {
			name = t.Key
		}
		switch {
		case t.Key == "":
			r.Error(at.Join("key"), "bad-name", at.Join("key").String()+" is empty", "")
		case len(t.Key) > maxLabelText || !labelName.MatchString(name) || prefixed && !dnsName.MatchString(prefix):
			r.Error(at.Join("key"), "bad-name", fmt.Sprintf("%q is not a valid key for a taint", t.Key), "use 1 to 63 characters: letters, digits, -, _ and .; a DNS name and / can precede them")
		}
		if t.Value != "" && (len(t.Value) > maxLabelText || !labelName.MatchString(t.Value)) {
			r.Error(at.Join("value"), "bad-value", fmt.Sprintf("%s cannot be %q", at.Join("value"), t.Value), "use up to 63 characters: letters, digits, -, _ and .")
		}
		if j, twice := seen[[2]string{t.Key, t.Effect}]; twice {
			r.To.Add(kinds.Fault{Code: "duplicate", Summary: fmt.Sprintf("taint %s with effect %s is written twice", t.Key, t.Effect), Ref: r.Ref, Path: at,
				Related: []kinds.RelatedField{{Ref: r.Ref, Path: p.Join(intent.Index(j)), Message: "the other one"}}})
		} else {
			seen[[2]string{t.Key, t.Effect}] = i
		}
	}
}

// roleName matches the role names that IAM accepts: CreateRole in its API reference.
var roleName = lazyregexp.New(`^[\w+=,.@-]{1,64}$`)

// policyARN and rolePath match ARNs of policies, and paths: PolicyArn of AttachRolePolicy and Path of
// CreateRole in the API reference of IAM.
var (
	policyARN = lazyregexp.New(`^arn:[^:]+:iam::(aws|[0-9]{12}):policy/.+$`)
	rolePath  = lazyregexp.New(`^/([!-~]+/)?$`)
)

// checkRole checks the fields about the node role. The planner compares them with the role.
func checkRole(r kinds.Reporter, s *kinds.AWSManagedMachinePoolSpec) {
	checkRoleName(r, s.RoleName)
	policy := func(at intent.Path, arn string) {
		if !policyARN.MatchString(arn) {
			r.Error(at, "bad-value", fmt.Sprintf("%s is %q, which is not an ARN of a policy", at, arn), "write it as IAM shows it, such as arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore")
		}
	}
	for i, arn := range s.RoleAdditionalPolicies {
		policy(path("spec", "roleAdditionalPolicies", intent.Index(i)), arn)
	}
	if s.RolePermissionsBoundary != "" {
		policy(path("spec", "rolePermissionsBoundary"), s.RolePermissionsBoundary)
	}
	if at := path("spec", "rolePath"); s.RolePath != "" && !rolePath.MatchString(s.RolePath) {
		r.Error(at, "bad-value", fmt.Sprintf("%s is %q, which is not a path of a role", at, s.RolePath), "a path begins and ends with /, such as /nodes/")
	}
}

func checkRoleName(r kinds.Reporter, name string) {
	switch at := path("spec", "roleName"); {
	case name == "" || roleName.MatchString(name):
	case strings.HasPrefix(name, "arn:"):
		r.Error(at, "bad-name", "spec.roleName is an ARN", "write the name alone: what follows the last / of the ARN")
	default:
		r.Error(at, "bad-name", fmt.Sprintf("%q is not a valid name for an IAM role", name), "use 1 to 64 characters: letters, digits and _ + = , . @ -")
	}
}

// checkNodegroupMarket warns of capacity blocks: EKS also requires the nodegroup's capacity type
// CAPACITY_BLOCK (capacityType of CreateNodegroup), which CAPA's type cannot express.
func checkNodegroupMarket(r kinds.Reporter, lt *kinds.LaunchTemplate) {
	if lt.MarketType == "CapacityBlock" {
		r.Warn(path("spec", "awsLaunchTemplate", "marketType"), "capacity-block-nodegroup",
			"a managed pool cannot launch from a capacity block: that needs the capacity type CAPACITY_BLOCK, which spec.capacityType does not have",
			"use an AWSMachinePool")
	}
}

// Limits of lifecycle hooks: "Quotas for Amazon EC2 Auto Scaling" and
// PutLifecycleHook in its API reference.
const (
	maxHooks        = 50
	maxHookTimeout  = 7200 // seconds
	maxHookMetadata = 4000
)

// eksHooks are the hooks that EKS puts on a nodegroup's Auto Scaling group.
var eksHooks = []string{"Launch-LC-Hook", "Terminate-LC-Hook"}

// checkNodegroupHooks refuses hooks with the names of EKS's own hooks, which drain the nodes of a managed
// pool.
func checkNodegroupHooks(r kinds.Reporter, hooks []kinds.LifecycleHook) {
	for i, h := range hooks {
		if at := path("spec", "lifecycleHooks", intent.Index(i), "name"); slices.Contains(eksHooks, h.Name) {
			r.Error(at, "reserved-hook", fmt.Sprintf("%s is %q, which is EKS's own lifecycle hook", at, h.Name), "choose another name")
		}
	}
}

var hookName = lazyregexp.New(`^[A-Za-z0-9\-_/]{1,255}$`)

// checkHookQuotas checks lifecycle hooks by the rules of Auto Scaling. CAPA accepts heartbeat timeouts above
// the documented maximum of Auto Scaling.
func checkHookQuotas(r kinds.Reporter, hooks []kinds.LifecycleHook) {
	p := path("spec", "lifecycleHooks")
	if len(hooks) > maxHooks {
		r.Error(p, "too-many-hooks", fmt.Sprintf("%s has %d lifecycle hooks; Auto Scaling allows %d", p, len(hooks), maxHooks), "")
	}
	for i, h := range hooks {
		at := p.Join(intent.Index(i))
		if h.Name != "" && !hookName.MatchString(h.Name) {
			r.Error(at.Join("name"), "bad-name", fmt.Sprintf("%q is not a valid name for a lifecycle hook", h.Name), "use 1 to 255 characters: letters, digits, -, _ and /")
		}
		if t := h.HeartbeatTimeout; t != nil && t.Seconds() > maxHookTimeout && t.Hours() <= 48 {
			r.Warn(at.Join("heartbeatTimeout"), "out-of-range", fmt.Sprintf("%s is %s; Auto Scaling documents at most 2h", at.Join("heartbeatTimeout"), *t),
				"let what handles the hook extend it with RecordLifecycleActionHeartbeat")
		}
		if n := len(intent.Value(h.NotificationMetadata)); n > maxHookMetadata {
			r.Error(at.Join("notificationMetadata"), "out-of-range", fmt.Sprintf("%s has %d characters; Auto Scaling allows %d", at.Join("notificationMetadata"), n, maxHookMetadata), "")
		}
	}
}
