package eks

import (
	"cmp"
	"encoding/base64"
	"maps"
	"net/textproto"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

var (
	labelName  = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	labelValue = lazyregexp.New(`^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$`)
	labelHost  = lazyregexp.New(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
)

// labelKeyFault reports whether the key of a label or a taint breaks Kubernetes' rules.
func labelKeyFault(key string) bool {
	prefix, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		name = key
	} else if len(prefix) > 253 || !labelHost.MatchString(prefix) {
		return true
	}
	return len(name) > 63 || !labelName.MatchString(name)
}

// reservedLabel reports whether a label is reserved for Kubernetes or EKS.
func reservedLabel(key string) bool {
	prefix, _, prefixed := strings.Cut(key, "/")
	return prefixed && (prefix == "eks.amazonaws.com" || prefix == "k8s.io" || prefix == "kubernetes.io" ||
		strings.HasSuffix(prefix, ".eks.amazonaws.com") || strings.HasSuffix(prefix, ".k8s.io") && prefix != "node.k8s.io" ||
		strings.HasSuffix(prefix, ".kubernetes.io") && !strings.HasSuffix(prefix, "node.kubernetes.io") && !strings.HasSuffix(prefix, "kubelet.kubernetes.io"))
}

func checkLabels(labels map[string]string) *wire.Error {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		switch value := labels[key]; {
		case labelKeyFault(key):
			return invalid("Label key %s is not a valid Kubernetes label key", key)
		case reservedLabel(key):
			return invalid("Label cannot contain reserved prefixes [kubernetes.io/, k8s.io/, eks.amazonaws.com/]: %s", key)
		case len(value) < 1 || len(value) > 63 || !labelValue.MatchString(value):
			return invalid("Label value %q of %s is not a valid Kubernetes label value", value, key)
		}
	}
	return nil
}

func checkTaints(taints []taint) *wire.Error {
	if len(taints) > 50 {
		return invalid("A nodegroup can have at most 50 taints")
	}
	seen := map[string]bool{}
	for _, t := range taints {
		switch {
		case labelKeyFault(t.Key):
			return invalid("Taint key %s is not valid", t.Key)
		case len(t.Value) > 63 || !labelValue.MatchString(t.Value):
			return invalid("Taint value %q of %s is not valid", t.Value, t.Key)
		case t.Effect == "":
			return invalid("Taint %s has no effect", t.Key)
		case seen[t.Key+"="+t.Effect]:
			return invalid("Duplicate taint: %s with effect %s", t.Key, t.Effect)
		}
		seen[t.Key+"="+t.Effect] = true
	}
	return nil
}

// check checks a complete scaling configuration.
func (s scaling) check(limit int) *wire.Error {
	switch {
	case *s.Min > *s.Max:
		return invalid("Minimum capacity %d can't be greater than max size %d", *s.Min, *s.Max)
	case *s.Desired < *s.Min:
		return invalid("Minimum capacity %d can't be greater than desired size %d", *s.Min, *s.Desired)
	case *s.Desired > *s.Max:
		return invalid("desired capacity %d can't be greater than max size %d", *s.Desired, *s.Max)
	case *s.Max > int64(limit):
		return wire.Fail("ResourceLimitExceededException", "The maximum number of nodes in a nodegroup is %d", limit)
	}
	return nil
}

func (u updateConfig) check() *wire.Error {
	switch {
	case u.Max != nil && u.Percentage != nil:
		return invalid("Specify either maxUnavailable or maxUnavailablePercentage")
	case u.Max != nil && *u.Max > 100:
		return invalid("maxUnavailable must be from 1 to 100")
	}
	return nil
}

// fits checks the number of nodes that may be unavailable at once against the maximum.
func (u updateConfig) fits(most int64) *wire.Error {
	if u.Max != nil && *u.Max > most {
		return invalid("max-unavailable must be within the range 1 and max size of the node group")
	}
	return nil
}

func (c *repairConfig) check() *wire.Error {
	if c == nil {
		return nil
	}
	if c.ThresholdCount != nil && c.ThresholdPercentage != nil || c.ParallelCount != nil && c.ParallelPercentage != nil {
		return invalid("A node repair configuration takes either a count or a percentage")
	}
	for _, o := range c.Overrides {
		if o.Condition == "" || o.Reason == "" || o.Wait == nil || o.Action == "" {
			return invalid("A node repair override needs nodeMonitoringCondition, nodeUnhealthyReason, minRepairWaitTimeMins and repairAction")
		}
	}
	return nil
}

// merged returns the configuration after a request. Members that the request omits do not change, and a pool
// that is not enabled does not exist.
func (c *warmPoolConfig) merged(in *warmPoolConfig) *warmPoolConfig {
	out := warmPoolConfig{}
	if c != nil {
		out = *c
	}
	if in != nil {
		for _, m := range []struct{ to, sent **int64 }{{&out.Min, &in.Min}, {&out.MaxPrepared, &in.MaxPrepared}} {
			if *m.sent != nil {
				*m.to = *m.sent
			}
		}
		if in.Enabled != nil {
			out.Enabled = in.Enabled
		}
		if in.Reuse != nil {
			out.Reuse = in.Reuse
		}
		out.State = cmp.Or(in.State, out.State)
	}
	if out.Enabled == nil || !*out.Enabled {
		return nil
	}
	if out.MaxPrepared == nil {
		none := int64(-1) // Auto Scaling's value for no limit
		out.MaxPrepared = &none
	}
	return &out
}

func (c *warmPoolConfig) check(custom bool) *wire.Error {
	switch {
	case c == nil:
		return nil
	case custom:
		return invalid("Warm pools cannot be used with custom AMIs")
	case c.MaxPrepared != nil && *c.MaxPrepared < -1:
		return invalid("The sizes of a warm pool must not be negative")
	}
	return nil
}

// resolveTemplate finds the user's launch template and resolves its version to a number.
func resolveTemplate(machines *ec2.Region, in *Template) (*Template, wire.Data, *wire.Error) {
	if in == nil {
		return nil, nil, nil
	}
	if (in.ID == "") == (in.Name == "") {
		return nil, nil, invalid("Either launch template ID or launch template name should be specified, but not both.")
	}
	t, v, err := machines.Resolve(in.ID, in.Name, in.Version)
	if err != nil {
		return nil, nil, invalid("%s", err.Message)
	}
	return &Template{ID: t.ID, Name: t.Name, Version: wire.Decimal(v.Number)}, v.Data, nil
}

// checkUserTemplate refuses settings that the launch template of a nodegroup must not contain.
func checkUserTemplate(d wire.Data) *wire.Error {
	switch {
	case d.Has("IamInstanceProfile"):
		return invalid("Launch template should not specify an instance profile. The noderole in your request will be used to construct an instance profile.")
	case d.Has("InstanceInitiatedShutdownBehavior"):
		return invalid("Launch template should not specify an instance initiated shutdown behavior.")
	case d.Sub("HibernationOptions").Text("Configured") == "true":
		return invalid("Launch template should not specify hibernation options.")
	case d.Has("InstanceMarketOptions"):
		return invalid("Launch template should not specify instance market options. Use capacityType instead.")
	case d.Has("InstanceRequirements"):
		return invalid("Launch template should not specify instance requirements. Use instanceTypes instead.")
	}
	for _, ni := range d.List("NetworkInterfaces") {
		if ni.Has("SubnetId") {
			return invalid("Launch template should not specify a subnet. The subnets in your request will be used.")
		}
	}
	return nil
}

// checkUserText checks the format of user data that EKS extends: MIME multipart for Amazon Linux, TOML for
// Bottlerocket.
func checkUserText(amiType string, d wire.Data) *wire.Error {
	raw, err := base64.StdEncoding.DecodeString(d.Text("UserData"))
	text := strings.TrimSpace(string(raw))
	if text == "" && err == nil {
		return nil
	}
	if amiKinds()[amiType].family == "BOTTLEROCKET" {
		if err != nil || strings.HasPrefix(text, "#!") || strings.HasPrefix(text, "MIME-Version") || strings.HasPrefix(text, "#cloud-config") {
			return refused("Ec2LaunchTemplateInvalidConfiguration: User data was not in the TOML format.")
		}
		return nil
	}
	if err != nil || eachPart(raw, func(textproto.MIMEHeader, []byte) error { return nil }) != nil {
		return refused("Ec2LaunchTemplateInvalidConfiguration: User data was not in the MIME multipart format.")
	}
	return nil
}

// checkTypes checks instance types against the AMI type's architecture.
func checkTypes(names []string, amiType string) *wire.Error {
	if len(names) > 20 {
		return invalid("A nodegroup can have at most 20 instance types")
	}
	seen := map[string]bool{}
	for _, name := range names {
		t, known := ec2.InstanceTypes()[name]
		kind, fixed := amiKinds()[amiType]
		switch {
		case !known:
			return invalid("The following supplied instance types do not exist: [%s]", name)
		case seen[name]:
			return invalid("Duplicate instance type: %s", name)
		case fixed && t.Arch != kind.arch:
			return invalid("[%s] is not a valid instance type for requested amiType %s", name, amiType)
		}
		seen[name] = true
	}
	return nil
}
