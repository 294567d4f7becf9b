package read

import (
	"cmp"
	"github.com/weir-gitops/weir/reconciler/awscloud/convert"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// scanGroups reads an answer of DescribeAutoScalingGroups, which is a page of list.
func scanGroups(body []byte, list *list[observed.Group]) (groups []*observed.Group, next string, err error) {
	err = scanPage(body, "DescribeAutoScalingGroupsResponse", "DescribeAutoScalingGroupsResult", func(s *pageScan) {
		for s.Child() {
			switch string(s.Name()) {
			case "AutoScalingGroups":
				s.members(func() { groups = append(groups, list.read(s, scanGroup)) })
			case "NextToken":
				next = s.Text()
			default:
				s.Skip()
			}
		}
	})
	return groups, next, err
}

// scanGroup reads one group. It has one case for each member of AWS's answer that weir keeps, in one list,
// so that it can be compared with the API reference.
func scanGroup(s *pageScan) observed.Group {
	g := observed.Group{Tags: make(map[string]observed.GroupTag, 12)}
	var policyRef observed.TemplateRef
	settings := field.GroupMember()
	for s.Child() {
		switch string(s.Name()) {
		case "AutoScalingGroupName":
			g.Name = s.Text()
		case "AutoScalingGroupARN":
			g.ARN = s.Text()
		case "Status":
			g.Deleting = s.Text() != ""
		case "MinSize":
			g.MinSize = s.int32()
		case "MaxSize":
			g.MaxSize = s.int32()
		case "DesiredCapacity":
			g.DesiredCapacity = s.int32()
		case "VPCZoneIdentifier":
			g.SubnetIDs = splitSubnets(s.Text())
		case "CreatedTime":
			g.CreatedAt = s.time()
		case "LaunchTemplate":
			g.Template = scanTemplateRef(s)
		case "LaunchConfigurationName":
			g.LaunchConfiguration = s.Text()
		case "MixedInstancesPolicy":
			g.MixedInstancesPolicy, policyRef, g.UnknownPolicy = scanPolicy(s)
		case "SuspendedProcesses":
			s.members(func() { g.SuspendedProcesses = append(g.SuspendedProcesses, scanMember(s, "ProcessName")) })
		case "Tags":
			s.members(func() { scanGroupTag(s, g.Tags) })
		case "Instances":
			s.members(func() { g.Instances = append(g.Instances, scanInstance(s)) })
		case "EnabledMetrics":
			g.Options.MetricsCollection = scanMetrics(s)
		case "WarmPoolConfiguration":
			scanWarmPool(s, &g.Options)
		default:
			if m := settings[string(s.Name())]; m != nil {
				scanInto(s, m.Of(&g.GroupSettings))
			} else {
				s.Skip()
			}
		}
	}
	if o := &g.Options; len(o.TargetGroupARNs)+len(o.LoadBalancerNames)+len(o.TrafficSources) > 0 {
		o.TrafficSources = o.Sources() // all in one list, as in the planner
		o.TargetGroupARNs, o.LoadBalancerNames = nil, nil
	}
	if g.MixedInstancesPolicy != nil {
		g.Template = policyRef
	}
	slices.Sort(g.SuspendedProcesses)
	slices.SortFunc(g.Instances, func(a, b observed.Instance) int { return strings.Compare(a.ID, b.ID) })
	return g
}

// scanTemplateRef reads the elements of a launch template specification.
func scanTemplateRef(s *pageScan) observed.TemplateRef {
	var r observed.TemplateRef
	for s.Child() {
		switch string(s.Name()) {
		case "LaunchTemplateId":
			r.ID = s.Text()
		case "LaunchTemplateName":
			r.Name = s.Text()
		case "Version":
			r.Version = s.Text()
		default:
			s.Skip()
		}
	}
	return r
}

// scanMember returns the text of one member of a structure.
func scanMember(s *pageScan, member string) string {
	text := ""
	for s.Child() {
		if string(s.Name()) == member {
			text = s.Text()
		} else {
			s.Skip()
		}
	}
	return text
}

func scanMetrics(s *pageScan) *intent.MetricsCollection {
	var m intent.MetricsCollection
	s.members(func() { m.Metrics = append(m.Metrics, scanMember(s, "Metric")) })
	if len(m.Metrics) == 0 {
		return nil
	}
	slices.Sort(m.Metrics)
	return &m
}

// scanWarmPool reads a warm pool, with AWS's defaults for absent members.
func scanWarmPool(s *pageScan, o *intent.GroupOptions) {
	w := intent.UsualWarmPool()
	for s.Child() {
		switch string(s.Name()) {
		case "Status":
			o.DeleteWarmPool = s.Text() == "PendingDelete"
		case "MinSize":
			w.MinSize = s.int32()
		case "MaxGroupPreparedCapacity":
			w.MaxGroupPreparedCapacity = s.int32()
		case "PoolState":
			w.PoolState = cmp.Or(s.Text(), w.PoolState)
		case "InstanceReusePolicy":
			w.InstanceReusePolicy.ReuseOnScaleIn = scanMember(s, "ReuseOnScaleIn") == "true"
		default:
			s.Skip()
		}
	}
	o.WarmPool = &w
}

// scanGroupTag reads a tag of a group into a map by key.
func scanGroupTag(s *pageScan, into map[string]observed.GroupTag) {
	var key string
	var t observed.GroupTag
	for s.Child() {
		switch string(s.Name()) {
		case "Key":
			key = s.Text()
		case "Value":
			t.Value = s.Text()
		case "PropagateAtLaunch":
			t.PropagateAtLaunch = s.bool()
		default:
			s.Skip()
		}
	}
	into[key] = t
}

// scanInstance reads an instance of a group. It skips elements that weir does not use.
func scanInstance(s *pageScan) observed.Instance {
	var in observed.Instance
	for s.Child() {
		switch string(s.Name()) {
		case "InstanceId":
			in.ID = s.Text()
		case "InstanceType":
			in.Type = s.Text()
		case "AvailabilityZone":
			in.Zone = s.Text()
		case "LifecycleState":
			in.LifecycleState = s.Text()
		case "HealthStatus":
			in.Health = s.Text()
		case "ProtectedFromScaleIn":
			in.Protected = s.bool()
		case "ImageId":
			in.ImageID = s.Text()
		case "LaunchTemplate":
			in.Template = scanTemplateRef(s)
		case "LaunchConfigurationName":
			in.LaunchConfiguration = s.Text()
		default:
			s.Skip()
		}
	}
	return in
}

// scanPolicy is convert.Policy for a scanner. It reads a mixed instances policy. An element that the SDK
// does not know makes the policy unknown.
func scanPolicy(s *pageScan) (m *intent.MixedInstances, ref observed.TemplateRef, unknown bool) {
	m = convert.UsualPolicy()
	for s.Child() {
		switch string(s.Name()) {
		case "InstancesDistribution":
			unknown = scanInto(s, reflect.ValueOf(m).Elem()) || unknown
		case "LaunchTemplate":
			for s.Child() {
				switch string(s.Name()) {
				case "LaunchTemplateSpecification":
					ref = scanTemplateRef(s)
				case "Overrides":
					unknown = scanInto(s, reflect.ValueOf(&m.Overrides).Elem()) || unknown
				default:
					unknown = scanRest(s) || unknown
				}
			}
		default:
			unknown = scanRest(s) || unknown
		}
	}
	convert.TidyPolicy(m)
	return m, ref, unknown
}

// splitSubnets splits VPCZoneIdentifier, which some tools write with spaces.
func splitSubnets(zones string) []string {
	var out []string
	for part := range strings.SplitSeq(zones, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	slices.Sort(out)
	return out
}
