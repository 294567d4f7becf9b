package intent

import (
	"fmt"
	"sort"
	"strings"
)

// LookupKind says what a Lookup asks.
type LookupKind string

// Lookup kinds, with the fields of Lookup that each one uses.
const (
	// ImageByID asks for the AMI Name: that it exists, its root device, and that
	// InstanceType, if given, can boot it.
	ImageByID LookupKind = "image-id"
	// ImageByParameter asks for the AMI that the SSM parameter Name holds, which
	// InstanceType, if given, must be able to boot.
	ImageByParameter LookupKind = "image-parameter"
	// ImageForEKS asks for the EKS-optimised AMI of type Name (eksLookupType)
	// for Kubernetes Version and the architecture of InstanceType.
	ImageForEKS LookupKind = "image-eks"
	// ImageByName asks for the newest AMI of Owner whose name matches the
	// pattern Name, of the architecture of InstanceType.
	ImageByName LookupKind = "image-name"
	// NodegroupRelease asks for the newest release, as EKS names those of a nodegroup, of
	// the images of amiType Name for Kubernetes Version.
	NodegroupRelease LookupKind = "nodegroup-release"
	// Subnets asks for the subnets of a pool in Cluster: those of IDs and
	// Filters, else those of the cluster in Zones of type SubnetType.
	Subnets LookupKind = "subnets"
	// CoreSecurityGroups asks for the security groups that every node of Cluster has.
	CoreSecurityGroups LookupKind = "core-security-groups"
	// SecurityGroupsByFilter asks for the groups that match Filters.
	SecurityGroupsByFilter LookupKind = "security-groups"
	// SecurityGroupByID asks in which VPC the group Name is. It is no fault of the pool if
	// the group cannot be read: EC2 may still know it.
	SecurityGroupByID LookupKind = "security-group-id"
	// EKSCluster asks for the EKS cluster Name.
	EKSCluster LookupKind = "eks-cluster"
	// Role asks for the ARN of the IAM role Name.
	Role LookupKind = "role"
	// RolePolicies, RolePath and RoleBoundary ask whether the IAM role Name has the policies
	// IDs attached, the path IDs, and the permissions boundary IDs. A difference is no fault
	// of the pool: the answer has a warning.
	RolePolicies LookupKind = "role-policies"
	RolePath     LookupKind = "role-path"
	RoleBoundary LookupKind = "role-boundary"
	// TemplateByName and TemplateByID ask for the launch template Name, with any owner, and for its
	// Version: a number, $Latest or $Default. Its image must boot all of the instance types that
	// InstanceType lists, or else its own.
	TemplateByName LookupKind = "launch-template-name"
	TemplateByID   LookupKind = "launch-template-id"
)

// Lookup is a question that only AWS can answer. It is comparable, so one
// answer serves every pool that asks the same.
type Lookup struct {
	Kind    LookupKind `json:"kind"`
	Name    string     `json:"name,omitempty"`
	Owner   string     `json:"owner,omitempty"`
	Version string     `json:"version,omitempty"`
	// InstanceType is one instance type; for a launch template a list of them, as
	// JoinList makes it.
	InstanceType string `json:"instanceType,omitempty"`
	// Cluster is the Key of the pool's cluster.
	Cluster Key `json:"cluster,omitzero"`
	// IDs and Zones are comma-separated and sorted.
	IDs   string `json:"ids,omitempty"`
	Zones string `json:"zones,omitempty"`
	// SubnetType is public, private, all or empty, as availabilityZoneSubnetType.
	SubnetType string `json:"subnetType,omitempty"`
	// Filters is the result of JoinFilters.
	Filters string `json:"filters,omitempty"`
}

// String prints the lookup for people.
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

// Filter is one EC2 filter: values are alternatives.
type Filter struct {
	Name   string
	Values []string
}

// JoinFilters writes filters as one canonical string, so that a Lookup with
// filters stays comparable.
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

// SplitFilters reads what JoinFilters wrote.
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

// JoinList sorts values and joins them with commas, dropping repetition.
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

// SplitList reads what JoinList wrote.
func SplitList(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}
