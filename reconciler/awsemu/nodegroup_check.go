package awsemu

import (
	"encoding/base64"
	"net/textproto"
	"regexp"
	"strings"
)

var (
	labelName  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	labelValue = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$`)
	labelHost  = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
)

// labelKeyFault checks the key of a label or a taint by Kubernetes' rules.
func labelKeyFault(key string) bool {
	prefix, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		name = key
	} else if len(prefix) > 253 || !labelHost.MatchString(prefix) {
		return true
	}
	return len(name) > 63 || !labelName.MatchString(name)
}

// reservedLabel says whether a label is kept for Kubernetes or EKS.
func reservedLabel(key string) bool {
	prefix, _, prefixed := strings.Cut(key, "/")
	return prefixed && (prefix == "eks.amazonaws.com" || prefix == "k8s.io" || prefix == "kubernetes.io" ||
		strings.HasSuffix(prefix, ".eks.amazonaws.com") || strings.HasSuffix(prefix, ".k8s.io") && prefix != "node.k8s.io" ||
		strings.HasSuffix(prefix, ".kubernetes.io") && !strings.HasSuffix(prefix, "node.kubernetes.io") && !strings.HasSuffix(prefix, "kubelet.kubernetes.io"))
}

func checkLabels(labels map[string]string) *apiError {
	for _, key := range sortedKeys(labels) {
		switch value := labels[key]; {
		case labelKeyFault(key):
			return eksInvalid("Label key %s is not a valid Kubernetes label key", key)
		case reservedLabel(key):
			return eksInvalid("Label cannot contain reserved prefixes [kubernetes.io/, k8s.io/, eks.amazonaws.com/]: %s", key)
		case len(value) < 1 || len(value) > 63 || !labelValue.MatchString(value):
			return eksInvalid("Label value %q of %s is not a valid Kubernetes label value", value, key)
		}
	}
	return nil
}

func checkTaints(taints []taint) *apiError {
	if len(taints) > 50 {
		return eksInvalid("A nodegroup can have at most 50 taints")
	}
	seen := map[string]bool{}
	for _, t := range taints {
		switch {
		case labelKeyFault(t.Key):
			return eksInvalid("Taint key %s is not valid", t.Key)
		case len(t.Value) > 63 || !labelValue.MatchString(t.Value):
			return eksInvalid("Taint value %q of %s is not valid", t.Value, t.Key)
		case t.Effect == "":
			return eksInvalid("Taint %s has no effect", t.Key)
		case seen[t.Key+"="+t.Effect]:
			return eksInvalid("Duplicate taint: %s with effect %s", t.Key, t.Effect)
		}
		seen[t.Key+"="+t.Effect] = true
	}
	return nil
}

// check applies the rules of a complete scaling configuration.
func (s scaling) check(limit int) *apiError {
	switch {
	case *s.Min > *s.Max:
		return eksInvalid("Minimum capacity %d can't be greater than max size %d", *s.Min, *s.Max)
	case *s.Desired < *s.Min:
		return eksInvalid("Minimum capacity %d can't be greater than desired size %d", *s.Min, *s.Desired)
	case *s.Desired > *s.Max:
		return eksInvalid("desired capacity %d can't be greater than max size %d", *s.Desired, *s.Max)
	case *s.Max > int64(limit):
		return fail("ResourceLimitExceededException", "The maximum number of nodes in a nodegroup is %d", limit)
	}
	return nil
}

func (u updateConfig) check() *apiError {
	switch {
	case u.Max != nil && u.Percentage != nil:
		return eksInvalid("Specify either maxUnavailable or maxUnavailablePercentage")
	case u.Max != nil && *u.Max > 100:
		return eksInvalid("maxUnavailable must be from 1 to 100")
	}
	return nil
}

// fits checks the number of nodes that may be away at once against the most that
// there may be.
func (u updateConfig) fits(most int64) *apiError {
	if u.Max != nil && *u.Max > most {
		return eksInvalid("max-unavailable must be within the range 1 and max size of the node group")
	}
	return nil
}

func (c *repairConfig) check() *apiError {
	if c == nil {
		return nil
	}
	if c.ThresholdCount != nil && c.ThresholdPercentage != nil || c.ParallelCount != nil && c.ParallelPercentage != nil {
		return eksInvalid("A node repair configuration takes either a count or a percentage")
	}
	for _, o := range c.Overrides {
		if o.Condition == "" || o.Reason == "" || o.Wait == nil || o.Action == "" {
			return eksInvalid("A node repair override needs nodeMonitoringCondition, nodeUnhealthyReason, minRepairWaitTimeMins and repairAction")
		}
	}
	return nil
}

// merged is the configuration after a request: what it leaves out stays, and a pool
// that is not enabled is none.
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
		out.State = first(in.State, out.State)
	}
	if out.Enabled == nil || !*out.Enabled {
		return nil
	}
	if out.MaxPrepared == nil {
		none := int64(-1) // as Auto Scaling says that there is no limit
		out.MaxPrepared = &none
	}
	return &out
}

func (c *warmPoolConfig) check(custom bool) *apiError {
	switch {
	case c == nil:
		return nil
	case custom:
		return eksInvalid("Warm pools cannot be used with custom AMIs")
	case c.MaxPrepared != nil && *c.MaxPrepared < -1:
		return eksInvalid("The sizes of a warm pool must not be negative")
	}
	return nil
}

// resolveTemplate finds the user's launch template and settles its version as a
// number.
func (r *region) resolveTemplate(in *ngTemplate) (*ngTemplate, ltData, *apiError) {
	if in == nil {
		return nil, nil, nil
	}
	if (in.ID == "") == (in.Name == "") {
		return nil, nil, eksInvalid("Either launch template ID or launch template name should be specified, but not both.")
	}
	t, v, err := r.ltResolve(in.ID, in.Name, in.Version)
	if err != nil {
		return nil, nil, eksInvalid("%s", err.Message)
	}
	return &ngTemplate{ID: t.ID, Name: t.Name, Version: decimal(v.Number)}, v.Data, nil
}

// checkUserTemplate refuses what the launch template of a nodegroup must not hold.
func checkUserTemplate(d ltData) *apiError {
	switch {
	case d.has("IamInstanceProfile"):
		return eksInvalid("Launch template should not specify an instance profile. The noderole in your request will be used to construct an instance profile.")
	case d.has("InstanceInitiatedShutdownBehavior"):
		return eksInvalid("Launch template should not specify an instance initiated shutdown behavior.")
	case d.sub("HibernationOptions").text("Configured") == "true":
		return eksInvalid("Launch template should not specify hibernation options.")
	case d.has("InstanceMarketOptions"):
		return eksInvalid("Launch template should not specify instance market options. Use capacityType instead.")
	case d.has("InstanceRequirements"):
		return eksInvalid("Launch template should not specify instance requirements. Use instanceTypes instead.")
	}
	for _, ni := range d.list("NetworkInterfaces") {
		if ni.has("SubnetId") {
			return eksInvalid("Launch template should not specify a subnet. The subnets in your request will be used.")
		}
	}
	return nil
}

// checkUserText checks the form of user data that EKS adds to: MIME multipart for
// Amazon Linux, TOML for Bottlerocket.
func checkUserText(amiType string, d ltData) *apiError {
	raw, err := base64.StdEncoding.DecodeString(d.text("UserData"))
	text := strings.TrimSpace(string(raw))
	if text == "" && err == nil {
		return nil
	}
	if amiKinds()[amiType].family == "BOTTLEROCKET" {
		if err != nil || strings.HasPrefix(text, "#!") || strings.HasPrefix(text, "MIME-Version") || strings.HasPrefix(text, "#cloud-config") {
			return eksRefused("Ec2LaunchTemplateInvalidConfiguration: User data was not in the TOML format.")
		}
		return nil
	}
	if err != nil || eachPart(raw, func(textproto.MIMEHeader, []byte) error { return nil }) != nil {
		return eksRefused("Ec2LaunchTemplateInvalidConfiguration: User data was not in the MIME multipart format.")
	}
	return nil
}

// checkTypes checks instance types against the AMI type's architecture.
func checkTypes(names []string, amiType string) *apiError {
	if len(names) > 20 {
		return eksInvalid("A nodegroup can have at most 20 instance types")
	}
	seen := map[string]bool{}
	for _, name := range names {
		t, known := instanceTypes()[name]
		kind, fixed := amiKinds()[amiType]
		switch {
		case !known:
			return eksInvalid("The following supplied instance types do not exist: [%s]", name)
		case seen[name]:
			return eksInvalid("Duplicate instance type: %s", name)
		case fixed && t.arch != kind.arch:
			return eksInvalid("[%s] is not a valid instance type for requested amiType %s", name, amiType)
		}
		seen[name] = true
	}
	return nil
}
