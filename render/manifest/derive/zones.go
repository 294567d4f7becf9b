package derive

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/manifest/rules"
)

// checkPlacement checks the zones that a pool is to be in, those of its own
// object or else the MachinePool's failure domains, against its cluster.
// explicit says that subnets are written in the field named by what.
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
		region := rules.RegionName.FindString(z)
		switch {
		case !rules.ZoneName.MatchString(z):
		case d.Cluster.Region != "" && region != d.Cluster.Region:
			r.Error(p, "zone-of-another-region", fmt.Sprintf("%s is %s, but cluster %s is in %s", p, z, d.ClusterKey, d.Cluster.Region), "")
		case rules.EdgeZone(z):
			r.Warn(p, "edge-zone", fmt.Sprintf("%s is %s, a local or wavelength zone: pools are not placed there by zone", p, z), "write the subnets themselves")
		default:
			d.checkZoneSubnets(r, p, z, subnetType)
		}
	}
}

// checkZoneSubnets warns of a zone for which the cluster's manifests list no
// subnet. It is no error: the target's configuration may name other subnets.
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
