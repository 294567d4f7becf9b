package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// Names in "AWS Regions and Availability Zones": a region has words and a number (eu-west-1, us-gov-east-1).
// A zone adds a letter. A local or wavelength zone adds a location (us-west-2-lax-1a). The id of a zone has a
// short form of the region (euw1-az2).
var (
	regionName = lazyregexp.New(`^[a-z]+(-[a-z]+)+-[0-9]+`)
	zoneName   = lazyregexp.New(`^[a-z]+(-[a-z]+)+-[0-9]+([a-z]|(-[a-z0-9]+)+)$`)
	zoneID     = lazyregexp.New(`^[a-z]+[0-9]+(-[a-z0-9]+)*-az[0-9]+$`)
)

// checkZones reports invalid zone names, and zones of several regions. A pool is in one region
// (AvailabilityZones of CreateAutoScalingGroup).
func checkZones(r kinds.Reporter, p intent.Path, zones []string) {
	first := ""
	for i, z := range zones {
		at := p.Join(intent.Index(i))
		switch region := regionName.FindString(z); {
		case zoneID.MatchString(z):
			r.Error(at, "bad-zone", fmt.Sprintf("%s is %q, the id of a zone", at, z), "write the name of the zone, such as eu-west-1a")
		case z == region && z != "":
			r.Error(at, "bad-zone", fmt.Sprintf("%s is %q, which is a region and not an availability zone", at, z), fmt.Sprintf("write a zone of it, such as %sa", z))
		case !zoneName.MatchString(z):
			r.Error(at, "bad-zone", fmt.Sprintf("%s is not an availability zone: %q", at, z), "write the name of a zone, such as eu-west-1a")
		case first == "":
			first = region
		case region != first:
			r.Error(at, "zone-of-another-region", fmt.Sprintf("%s is %s, but %s is in %s: a pool is in one region", at, z, zones[0], first), "")
		}
		if slices.Contains(zones[:i], z) {
			r.Warn(at, "duplicate", fmt.Sprintf("zone %q is written twice", z), "")
		}
	}
}

// edgeZone reports whether a zone is a local or wavelength zone: more than a letter follows the region's
// number.
func edgeZone(zone string) bool {
	rest := strings.TrimPrefix(zone, regionName.FindString(zone))
	return zoneName.MatchString(zone) && strings.HasPrefix(rest, "-")
}

// checkPlacement checks the zones of a pool against its cluster. These are the zones of its own object or the
// MachinePool's failure domains. explicit is true if the field named by what lists subnets.
func (d *Derived) checkPlacement(zones []string, subnetType string, explicit bool, what string) {
	r, at := d.AtPool, path("spec", "availabilityZones")
	if explicit {
		if len(zones) > 0 {
			r.Info(at, "zones-not-used", at.String()+" is not used: the pool's subnets are written in "+what, "")
		}
		return
	}
	if len(zones) == 0 {
		zones, r, at = d.Source.Spec.FailureDomains, d.AtMachinePool, path("spec", "failureDomains")
	}
	for i, z := range zones {
		p := at.Join(intent.Index(i))
		region := regionName.FindString(z)
		switch {
		case !zoneName.MatchString(z):
		case d.Cluster.Region != "" && region != d.Cluster.Region:
			r.Error(p, "zone-of-another-region", fmt.Sprintf("%s is %s, but cluster %s is in %s", p, z, d.ClusterKey, d.Cluster.Region), "")
		case edgeZone(z):
			r.Warn(p, "edge-zone", fmt.Sprintf("%s is %s, a local or wavelength zone: pools are not placed there by zone", p, z), "write the subnets themselves")
		default:
			d.checkZoneSubnets(r, p, z, subnetType)
		}
	}
}

// checkZoneSubnets warns of a zone for which the cluster's manifests have no subnet. This is no error,
// because the target's configuration may name other subnets.
func (d *Derived) checkZoneSubnets(r kinds.Reporter, p intent.Path, zone, subnetType string) {
	listed := d.Cluster.Network.Subnets
	if len(listed) == 0 || slices.ContainsFunc(listed, func(s kinds.NetworkSubnet) bool { return s.AvailabilityZone == "" }) {
		return
	}
	fits := func(s kinds.NetworkSubnet) bool {
		return s.AvailabilityZone == zone && (subnetType == "" || subnetType == "all" || s.IsPublic == (subnetType == "public"))
	}
	if slices.ContainsFunc(listed, fits) {
		return
	}
	kind := "subnet"
	if subnetType == "public" || subnetType == "private" {
		kind = subnetType + " subnet"
	}
	var zones []string
	for _, s := range listed {
		if fits(kinds.NetworkSubnet{AvailabilityZone: zone, IsPublic: s.IsPublic}) && !slices.Contains(zones, s.AvailabilityZone) {
			zones = append(zones, s.AvailabilityZone)
		}
	}
	slices.Sort(zones)
	detail := "the cluster's network has none in any zone"
	if len(zones) > 0 {
		detail = "the cluster's network has some in " + strings.Join(zones, ", ")
	}
	r.Warn(p, "zone-without-subnet", fmt.Sprintf("the network of cluster %s lists no %s in %s", d.ClusterKey, kind, zone), detail)
}
