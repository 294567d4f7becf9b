package ec2

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// Seed is EC2's part of a region's seed.
type Seed struct {
	Vpcs           []seedVPC    `json:"vpcs"`
	Subnets        []seedSubnet `json:"subnets"`
	SecurityGroups []seedGroup  `json:"securityGroups"`
	Images         []seedImage  `json:"images"`
	KeyPairs       []string     `json:"keyPairs"` // by name

	PlacementGroups []seedPlacementGroup `json:"placementGroups"`
	Reservations    []seedReservation    `json:"capacityReservations"`
	Volumes         []seedVolume         `json:"volumes"`
	NotOffered      map[string][]string  `json:"notOffered"` // zones by instance type
}

// seeder adds the resources of a seed to a region.
type seeder struct{ *Region }

// ApplyEC2 adds the resources of a seed that the region does not have.
func (r *Region) ApplyEC2(seed *Seed) error {
	add := seeder{r}
	if err := add.applyNetwork(seed); err != nil {
		return err
	}
	for _, im := range seed.Images {
		if err := add.applyImage(im); err != nil {
			return err
		}
	}
	for _, g := range seed.PlacementGroups {
		if err := add.applyPlacementGroup(g); err != nil {
			return fmt.Errorf("placement group %q: %w", g.Name, err)
		}
	}
	for _, c := range seed.Reservations {
		if err := add.applyReservation(c); err != nil {
			return fmt.Errorf("capacity reservation %q: %w", c.ID, err)
		}
	}
	for _, v := range seed.Volumes {
		if err := add.applyVolume(v); err != nil {
			return fmt.Errorf("volume %q: %w", v.ID, err)
		}
	}
	if err := add.applyNotOffered(seed.NotOffered); err != nil {
		return err
	}
	for _, name := range seed.KeyPairs {
		if r.KeyByName(name) == nil {
			sum := sha256.Sum256([]byte(name))
			id := r.SeedID("key", name)
			r.KeyPairs.Put(id, &KeyPair{ID: id, Name: name, Type: "ed25519", Fingerprint: base64.StdEncoding.EncodeToString(sum[:]), Created: world.SeedTime()})
		}
	}
	return nil
}

type seedVPC struct {
	ID      string            `json:"id"`
	CIDR    string            `json:"cidr"`
	Default bool              `json:"default"`
	Tags    map[string]string `json:"tags"`
}

type seedSubnet struct {
	ID       string            `json:"id"`
	VpcID    string            `json:"vpc"`
	Zone     string            `json:"zone"`
	CIDR     string            `json:"cidr"`
	PublicIP bool              `json:"public"`
	Tags     map[string]string `json:"tags"`
}

type seedGroup struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	VpcID       string            `json:"vpc"`
	Tags        map[string]string `json:"tags"`
}

type seedImage struct {
	ID           string            `json:"id"`
	Name         string            `json:"name"`
	Owner        string            `json:"owner"`        // "": the account
	Architecture string            `json:"architecture"` // x86_64 or arm64
	Created      time.Time         `json:"created"`
	RootDevice   string            `json:"rootDevice"` // "": /dev/xvda
	VolumeGiB    int64             `json:"volumeGiB"`  // 0: 8
	Tags         map[string]string `json:"tags"`
}

func (r seeder) applyNetwork(seed *Seed) error {
	for _, v := range seed.Vpcs {
		if r.Vpcs.Has(v.ID) {
			continue
		}
		if !validID(v.ID, "vpc-") || !validCIDR(v.CIDR) {
			return fmt.Errorf("vpc %q: id or cidr %q is malformed", v.ID, v.CIDR)
		}
		if v.Default && r.DefaultVPC() != nil {
			return fmt.Errorf("vpc %q: the region has a default VPC already", v.ID)
		}
		r.Vpcs.Put(v.ID, &Vpc{ID: v.ID, CIDR: v.CIDR, Default: v.Default, Tags: tagsOf(v.Tags)})
		g := &SecurityGroup{ID: r.SeedID("sg", v.ID), Name: "default", Description: "default VPC security group", VpcID: v.ID}
		r.SecurityGroups.Put(g.ID, g)
	}
	for _, n := range seed.Subnets {
		if err := r.applySubnet(n); err != nil {
			return fmt.Errorf("subnet %q: %w", n.ID, err)
		}
	}
	for _, g := range seed.SecurityGroups {
		if r.SecurityGroups.Has(g.ID) {
			continue
		}
		if !validID(g.ID, "sg-") || g.Name == "" || !r.Vpcs.Has(g.VpcID) {
			return fmt.Errorf("security group %q: its id is malformed, its name %q missing, or its vpc %q unknown", g.ID, g.Name, g.VpcID)
		}
		if r.groupByName(g.Name, g.VpcID) != nil {
			continue
		}
		r.SecurityGroups.Put(g.ID, &SecurityGroup{ID: g.ID, Name: g.Name, Description: g.Description, VpcID: g.VpcID, Tags: tagsOf(g.Tags)})
	}
	return nil
}

func (r seeder) applySubnet(n seedSubnet) error {
	if r.Subnets.Has(n.ID) {
		return nil
	}
	v := r.Vpcs.Get(n.VpcID)
	switch {
	case !validID(n.ID, "subnet-"):
		return errors.New("id is malformed")
	case v == nil:
		return fmt.Errorf("vpc %q is unknown", n.VpcID)
	case !validCIDR(n.CIDR):
		return fmt.Errorf("cidr %q is malformed", n.CIDR)
	}
	if err := r.checkSubnetRange(v, n.CIDR); err != nil {
		return err
	}
	for i, zone := range r.Zones() {
		if zone == n.Zone {
			r.Subnets.Put(n.ID, &Subnet{
				ID: n.ID, VpcID: n.VpcID, Zone: zone, ZoneID: r.ZoneID(i), CIDR: n.CIDR, PublicIP: n.PublicIP, Tags: tagsOf(n.Tags),
			})
			return nil
		}
	}
	return fmt.Errorf("zone %q is unknown", n.Zone)
}

func (r seeder) applyImage(im seedImage) error {
	if r.Images.Has(im.ID) {
		return nil
	}
	if !validID(im.ID, "ami-") || im.Name == "" || im.Architecture != "x86_64" && im.Architecture != "arm64" {
		return fmt.Errorf("image %q: its id is malformed, its name missing or its architecture %q unknown", im.ID, im.Architecture)
	}
	made := Image{
		ID: im.ID, Name: im.Name, Owner: cmp.Or(im.Owner, r.Account), Architecture: im.Architecture,
		Created: im.Created.UTC(), RootDevice: cmp.Or(im.RootDevice, "/dev/xvda"), VolumeGiB: im.VolumeGiB,
		SnapshotID: r.SeedID("snap", im.ID), Tags: tagsOf(im.Tags),
	}
	if made.VolumeGiB == 0 {
		made.VolumeGiB = 8
	}
	r.Images.Put(im.ID, &made)
	return nil
}

func validCIDR(text string) bool {
	p, err := netip.ParsePrefix(text)
	return err == nil && p.Addr().Is4() && p.Masked() == p && p.Bits() >= 16 && p.Bits() <= 28
}

func tagsOf(m map[string]string) world.Tags {
	ts := world.Tags{}
	for key, value := range m {
		ts.Set(key, value)
	}
	return ts
}
