package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// The forms of names in "AWS Regions and Availability Zones": a region is words
// and a number (eu-west-1, us-gov-east-1), a zone adds a letter, a local or
// wavelength zone a location (us-west-2-lax-1a), and a zone's id shortens the
// region (euw1-az2).
var (
	RegionName = regexp.MustCompile(`^[a-z]+(-[a-z]+)+-[0-9]+`)
	ZoneName   = regexp.MustCompile(`^[a-z]+(-[a-z]+)+-[0-9]+([a-z]|(-[a-z0-9]+)+)$`)
	zoneID     = regexp.MustCompile(`^[a-z]+[0-9]+(-[a-z0-9]+)*-az[0-9]+$`)
)

// checkZones reports what can be no availability zone, and zones of several
// regions: a pool is in one region (AvailabilityZones of CreateAutoScalingGroup).
func checkZones(r kinds.Reporter, p intent.Path, zones []string) {
	first := ""
	for i, z := range zones {
		at := p.Join(intent.Index(i))
		switch region := RegionName.FindString(z); {
		case zoneID.MatchString(z):
			r.Error(at, "bad-zone", fmt.Sprintf("%s is %q, the id of a zone", at, z), "write the name of the zone, such as eu-west-1a")
		case z == region && z != "":
			r.Error(at, "bad-zone", fmt.Sprintf("%s is %q, a region and no availability zone", at, z), fmt.Sprintf("write a zone of it, such as %sa", z))
		case !ZoneName.MatchString(z):
			r.Error(at, "bad-zone", fmt.Sprintf("%s is no availability zone: %q", at, z), "write the name of a zone, such as eu-west-1a")
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

// EdgeZone tells local and wavelength zones: more follows the region's number
// than a letter.
func EdgeZone(zone string) bool {
	rest := strings.TrimPrefix(zone, RegionName.FindString(zone))
	return ZoneName.MatchString(zone) && strings.HasPrefix(rest, "-")
}
