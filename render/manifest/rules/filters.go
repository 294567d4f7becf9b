package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/nearest"
)

// Names of filters in EC2, which a dot and more text may follow: the lists in DescribeSubnets and
// DescribeSecurityGroups of its API reference.
var (
	subnetFilters = []string{"availability-zone", "availabilityZone", "availability-zone-id", "availabilityZoneId", "available-ip-address-count", "cidr-block", "cidr", "cidrBlock",
		"customer-owned-ipv4-pool", "default-for-az", "defaultForAz", "enable-dns64", "enable-lni-at-device-index", "ipv6-cidr-block-association", "ipv6-native",
		"map-customer-owned-ip-on-launch", "map-public-ip-on-launch", "outpost-arn", "owner-id", "private-dns-name-options-on-launch", "state", "subnet-arn", "subnet-id",
		"tag-key", "vpc-id"}
	groupFilters = []string{"description", "egress", "group-id", "group-name", "ip-permission", "owner-id", "tag-key", "vpc-id"}
)

func checkSubnetFilters(r kinds.Reporter, p intent.Path, refs []kinds.AWSResourceReference) {
	checkFilters(r, p, refs, subnetFilters)
	for i, ref := range refs {
		for j, f := range ref.Filters {
			if f.Name == "availability-zone" || f.Name == "availabilityZone" {
				checkFilterZones(r, p.Join(intent.Index(i), "filters", intent.Index(j), "values"), f.Values)
			}
		}
	}
}

// checkFilterZones is like checkZones, but ignores lists with wildcards.
func checkFilterZones(r kinds.Reporter, p intent.Path, zones []string) {
	if !slices.ContainsFunc(zones, func(z string) bool { return strings.ContainsAny(z, "*?") }) {
		checkZones(r, p, zones)
	}
}

func checkGroupFilters(r kinds.Reporter, p intent.Path, refs []kinds.AWSResourceReference) {
	checkFilters(r, p, refs, groupFilters)
}

// maxFilterValues bounds the filter values in a request: "List and filter using the CLI and API" in the user
// guide of EC2.
const maxFilterValues = 200

// checkFilters warns of filters without values and of unknown filter names. It reports too many values.
func checkFilters(r kinds.Reporter, p intent.Path, refs []kinds.AWSResourceReference, known []string) {
	for i, ref := range refs {
		for j, f := range ref.Filters {
			at := p.Join(intent.Index(i), "filters", intent.Index(j))
			name, _, _ := strings.Cut(f.Name, ".")
			switch {
			case f.Name == "" || strings.HasPrefix(f.Name, "tag:") && len(f.Name) > len("tag:") || slices.Contains(known, name):
			default:
				detail := "a tag is named as tag:KEY"
				if near := nearest.Word(f.Name, known); near != "" {
					detail = fmt.Sprintf("did you mean %q? %s", near, detail)
				}
				r.Warn(at.Join("name"), "unknown-filter", fmt.Sprintf("%s is %q, which is not a filter that weir knows", at.Join("name"), f.Name), detail)
			}
			if len(f.Values) == 0 {
				r.Warn(at.Join("values"), "empty-filter", at.Join("values").String()+" is empty: a filter without values finds nothing", "write what the filter must match")
			} else if len(f.Values) > maxFilterValues {
				r.Error(at.Join("values"), "out-of-range", fmt.Sprintf("%s has %d values; EC2 allows %d", at.Join("values"), len(f.Values), maxFilterValues), "")
			}
		}
	}
}

// checkFilterVPC warns of a lookup of subnets in another VPC than the cluster's. Nodes there cannot reach the
// cluster's nodes.
func (d *Derived) checkFilterVPC(p intent.Path, refs []kinds.AWSResourceReference) {
	vpc := d.Cluster.Network.VPC.ID
	if vpc == "" {
		return
	}
	for i, ref := range refs {
		for j, f := range ref.Filters {
			if f.Name == "vpc-id" && len(f.Values) > 0 && !slices.ContainsFunc(f.Values, func(v string) bool { return v == vpc || strings.ContainsAny(v, "*?") }) {
				at := p.Join(intent.Index(i), "filters", intent.Index(j), "values")
				d.AtPool.Warn(at, "another-vpc", fmt.Sprintf("%s names %s, but cluster %s is in %s", at, strings.Join(f.Values, ", "), d.ClusterKey, vpc), "")
			}
		}
	}
}
