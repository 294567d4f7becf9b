package intent

import (
	"fmt"
	"sort"
	"strings"
)

// LookupKind is the kind of a Lookup.
type LookupKind string

// Lookup kinds, with the fields of Lookup that each kind uses.
const (
	// ImageByID asks whether the AMI Name exists, for its root device, and whether InstanceType, if given,
	// can boot it.
	ImageByID LookupKind = "image-id"
	// ImageByParameter asks for the AMI in the SSM parameter Name. InstanceType, if given, must be able to
	// boot it.
	ImageByParameter LookupKind = "image-parameter"
	// ImageForEKS asks for the EKS-optimised AMI of type Name (eksLookupType) for Kubernetes Version and the
	// architecture of InstanceType.
	ImageForEKS LookupKind = "image-eks"
	// ImageByName asks for the newest AMI of Owner whose name matches the pattern Name and that has the
	// architecture of InstanceType.
	ImageByName LookupKind = "image-name"
	// NodegroupRelease asks for the newest release of amiType Name for Kubernetes Version, in the form that
	// EKS uses for nodegroups.
	NodegroupRelease LookupKind = "nodegroup-release"
	// Subnets asks for the subnets of a pool in Cluster. These are the subnets in IDs and Filters. If both
	// are empty, they are the subnets of the cluster in Zones with type SubnetType.
	Subnets LookupKind = "subnets"
	// CoreSecurityGroups asks for the security groups that every node of Cluster has.
	CoreSecurityGroups LookupKind = "core-security-groups"
	// SecurityGroupsByFilter asks for the groups that match Filters.
	SecurityGroupsByFilter LookupKind = "security-groups"
	// SecurityGroupByID asks for the VPC of the security group Name. The pool stays valid if weir cannot read
	// the group, because EC2 may still accept it.
	SecurityGroupByID LookupKind = "security-group-id"
	// EKSCluster asks for the EKS cluster Name.
	EKSCluster LookupKind = "eks-cluster"
	// Role asks for the ARN of the IAM role Name.
	Role LookupKind = "role"
	// RolePolicies, RolePath and RoleBoundary ask whether the IAM role Name has the attached policies IDs,
	// the path IDs, and the permissions boundary IDs. If not, the answer has a warning, and the pool stays
	// valid.
	RolePolicies LookupKind = "role-policies"
	RolePath     LookupKind = "role-path"
	RoleBoundary LookupKind = "role-boundary"
	// TemplateByName and TemplateByID ask for the launch template Name, with any owner, and for its Version:
	// a number, $Latest or $Default. Its image must be able to boot all types in InstanceType, or the
	// template's own type if InstanceType is empty.
	TemplateByName LookupKind = "launch-template-name"
	TemplateByID   LookupKind = "launch-template-id"
)

// Lookup is a question that only AWS can answer. It is comparable, so equal lookups of several pools share
// one answer.
type Lookup struct {
	Kind    LookupKind `json:"kind"`
	Name    string     `json:"name,omitempty"`
	Owner   string     `json:"owner,omitempty"`
	Version string     `json:"version,omitempty"`
	// InstanceType is an instance type. For a launch template it is a list of types, joined by JoinList.
	InstanceType string `json:"instanceType,omitempty"`
	// Cluster is the Key of the pool's cluster.
	Cluster Key `json:"cluster,omitzero"`
	// IDs and Zones are comma-separated and sorted.
	IDs   string `json:"ids,omitempty"`
	Zones string `json:"zones,omitempty"`
	// SubnetType is availabilityZoneSubnetType: public, private, all or empty.
	SubnetType string `json:"subnetType,omitempty"`
	// Filters is the output of JoinFilters.
	Filters string `json:"filters,omitempty"`
}

// String returns a readable form of the lookup.
func (l Lookup) String() string {
	switch l.Kind {
	case ImageByID:
		return "image " + l.Name
	case ImageByParameter:
		return "SSM parameter " + l.Name
	case ImageForEKS:
		return fmt.Sprintf("EKS image %s for Kubernetes %s and instance type %s", l.Name, l.Version, orNone(l.InstanceType))
	case ImageByName:
		return fmt.Sprintf("image named %s of owner %s for instance type %s", l.Name, l.Owner, orNone(l.InstanceType))
	case NodegroupRelease:
		return fmt.Sprintf("release of the EKS images %s for Kubernetes %s", l.Name, l.Version)
	case Subnets:
		return fmt.Sprintf("subnets of cluster %s (ids %s, zones %s, filters %s)", l.Cluster, orNone(l.IDs), orNone(l.Zones), orNone(l.Filters))
	case CoreSecurityGroups:
		return "security groups of cluster " + l.Cluster.String()
	case SecurityGroupsByFilter:
		return "security groups with " + l.Filters
	case SecurityGroupByID:
		return "security group " + l.Name
	case EKSCluster:
		return "EKS cluster " + l.Name
	case Role:
		return "IAM role " + l.Name
	case RolePolicies:
		return "policies of IAM role " + l.Name
	case RolePath:
		return "path of IAM role " + l.Name
	case RoleBoundary:
		return "permissions boundary of IAM role " + l.Name
	case TemplateByName, TemplateByID:
		return fmt.Sprintf("version %s of the launch template %s for instance types %s", l.Version, l.Name, orNone(l.InstanceType))
	}
	return string(l.Kind)
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

// Filter is an EC2 filter. A resource matches if it has any of the values.
type Filter struct {
	Name   string
	Values []string
}

// JoinFilters writes filters in a canonical form, so that a Lookup with filters is comparable.
func JoinFilters(filters []Filter) string {
	parts := make([]string, 0, len(filters))
	for _, f := range filters {
		vs := append([]string(nil), f.Values...)
		sort.Strings(vs)
		for i := range vs {
			vs[i] = escapeFilter(vs[i])
		}
		parts = append(parts, escapeFilter(f.Name)+"="+strings.Join(vs, ","))
	}
	sort.Strings(parts)
	return strings.Join(parts, ";")
}

// SplitFilters parses the output of JoinFilters.
func SplitFilters(s string) []Filter {
	if s == "" {
		return nil
	}
	var out []Filter
	for _, part := range splitEscaped(s, ';') {
		kv := splitEscaped(part, '=')
		f := Filter{Name: unescapeFilter(kv[0])}
		if len(kv) > 1 {
			for _, v := range splitEscaped(kv[1], ',') {
				f.Values = append(f.Values, unescapeFilter(v))
			}
		}
		out = append(out, f)
	}
	return out
}

var filterEscaper = strings.NewReplacer(`\`, `\\`, `;`, `\;`, `=`, `\=`, `,`, `\,`)

func escapeFilter(s string) string { return filterEscaper.Replace(s) }

func unescapeFilter(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func splitEscaped(s string, sep byte) []string {
	var out []string
	start := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case sep:
			out = append(out, s[start:i])
			start = i + 1
		}
	}
	return append(out, s[start:])
}

// JoinList sorts values, removes duplicates, and joins them with commas.
func JoinList(values []string) string {
	vs := append([]string(nil), values...)
	sort.Strings(vs)
	kept := vs[:0]
	for i, v := range vs {
		if v != "" && (i == 0 || v != vs[i-1]) {
			kept = append(kept, v)
		}
	}
	return strings.Join(kept, ",")
}

// SplitList parses the output of JoinList.
func SplitList(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}
