package awsemu

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"
)

// seedFile is a user's addition to the default seed, as JSON.
type seedFile struct {
	Account string                 `json:"account"` // "": the default account
	Regions map[string]*seedRegion `json:"regions"`
}

// seedRegion is what a seed adds to a region. Roles and instance profiles belong
// to the account; a profile holds the role of its name, which is made if missing.
type seedRegion struct {
	Vpcs             []seedVPC         `json:"vpcs"`
	Subnets          []seedSubnet      `json:"subnets"`
	SecurityGroups   []seedGroup       `json:"securityGroups"`
	Images           []seedImage       `json:"images"`
	Parameters       map[string]string `json:"parameters"`
	KeyPairs         []string          `json:"keyPairs"` // by name
	Roles            []string          `json:"roles"`
	InstanceProfiles []string          `json:"instanceProfiles"`
	Clusters         []seedCluster     `json:"clusters"`
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

// seedCluster is an ACTIVE EKS cluster of a seed.
type seedCluster struct {
	Name             string            `json:"name"`
	Version          string            `json:"version"` // "": the newest
	RoleARN          string            `json:"roleArn"` // "": CAPA's default role
	SubnetIDs        []string          `json:"subnetIds"`
	SecurityGroupIDs []string          `json:"securityGroupIds"`
	Tags             map[string]string `json:"tags"`
}

// Seed adds resources to the default seed. The format is JSON:
//
//	{"account": "000000000000", "regions": {"eu-west-1": {
//	  "vpcs": [{"id": "vpc-0123456789abcdef0", "cidr": "10.0.0.0/16", "tags": {"Name": "main"}}],
//	  "subnets": [{"id": "subnet-0123456789abcdef0", "vpc": "vpc-0123456789abcdef0", "zone": "eu-west-1a", "cidr": "10.0.0.0/24", "public": false}],
//	  "securityGroups": [{"id": "sg-0123456789abcdef0", "name": "nodes", "description": "nodes", "vpc": "vpc-0123456789abcdef0"}],
//	  "images": [{"id": "ami-0123456789abcdef0", "name": "ours-1", "architecture": "arm64", "created": "2025-11-01T00:00:00Z"}],
//	  "parameters": {"/ours/ami": "ami-0123456789abcdef0"},
//	  "keyPairs": ["admin"], "roles": ["nodes"], "instanceProfiles": ["nodes"],
//	  "clusters": [{"name": "prod", "version": "1.33", "subnetIds": ["subnet-0123456789abcdef0"]}]}}}
//
// What exists already under an id or name stays as it is, so that a seed can be
// given again to an emulator that was loaded from saved state. An unknown member
// or a seed that does not fit together is an error and changes nothing.
func (s *Server) Seed(r io.Reader) error {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	var seed seedFile
	if err := dec.Decode(&seed); err != nil {
		return fmt.Errorf("read seed: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("read seed: text after the end")
	}
	if seed.Account == "" {
		seed.Account = defaultAccount
	}
	if len(seed.Account) != 12 {
		return fmt.Errorf("read seed: account %q does not have 12 digits", seed.Account)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runDue()
	before, err := json.Marshal(s.state)
	if err != nil {
		return fmt.Errorf("read seed: %w", err)
	}
	if err := s.apply(&seed); err != nil {
		if undone := s.restoreState(before); undone != nil {
			return fmt.Errorf("read seed: %w", errors.Join(err, undone))
		}
		return fmt.Errorf("read seed: %w", err)
	}
	return nil
}

func (s *Server) apply(seed *seedFile) error {
	for _, name := range sortedKeys(seed.Regions) {
		if !knownRegion(name) {
			return fmt.Errorf("region %q: unknown", name)
		}
		if seed.Regions[name] == nil {
			continue
		}
		if err := s.region(seed.Account, name).apply(seed.Regions[name]); err != nil {
			return fmt.Errorf("region %s: %w", name, err)
		}
	}
	return nil
}

func (r *region) apply(seed *seedRegion) error {
	if err := r.applyNetwork(seed); err != nil {
		return err
	}
	for _, im := range seed.Images {
		if err := r.applyImage(im); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(seed.Parameters) {
		if !r.SSM.Parameters.has(name) {
			r.addParameter(name, seed.Parameters[name])
		}
	}
	for _, name := range seed.KeyPairs {
		if r.keyByName(name) == nil {
			sum := sha256.Sum256([]byte(name))
			id := r.seedID("key", name)
			r.EC2.KeyPairs.put(id, &keyPair{ID: id, Name: name, Type: "ed25519", Fingerprint: base64.StdEncoding.EncodeToString(sum[:]), Created: seedTime()})
		}
	}
	a := r.account()
	for _, name := range seed.Roles {
		if a.Roles[name] == nil {
			a.addRole(name, "ec2.amazonaws.com", seedTime())
		}
	}
	for _, name := range seed.InstanceProfiles {
		if a.Roles[name] == nil {
			a.addRole(name, "ec2.amazonaws.com", seedTime())
		}
		if a.InstanceProfiles[name] == nil {
			a.addInstanceProfile(name, name, seedTime())
		}
	}
	for _, c := range seed.Clusters {
		if err := r.seedCluster(c); err != nil {
			return fmt.Errorf("cluster %q: %w", c.Name, err)
		}
	}
	return nil
}

func (r *region) applyNetwork(seed *seedRegion) error {
	for _, v := range seed.Vpcs {
		if r.EC2.Vpcs.has(v.ID) {
			continue
		}
		if !validID(v.ID, "vpc-") || !validCIDR(v.CIDR) {
			return fmt.Errorf("vpc %q: id or cidr %q is malformed", v.ID, v.CIDR)
		}
		if v.Default && r.defaultVPC() != nil {
			return fmt.Errorf("vpc %q: the region has a default VPC already", v.ID)
		}
		r.EC2.Vpcs.put(v.ID, &vpc{ID: v.ID, CIDR: v.CIDR, Default: v.Default, Tags: tagsOf(v.Tags)})
		g := &securityGroup{ID: r.seedID("sg", v.ID), Name: "default", Description: "default VPC security group", VpcID: v.ID}
		r.EC2.SecurityGroups.put(g.ID, g)
	}
	for _, n := range seed.Subnets {
		if err := r.applySubnet(n); err != nil {
			return fmt.Errorf("subnet %q: %w", n.ID, err)
		}
	}
	for _, g := range seed.SecurityGroups {
		if r.EC2.SecurityGroups.has(g.ID) {
			continue
		}
		if !validID(g.ID, "sg-") || g.Name == "" || !r.EC2.Vpcs.has(g.VpcID) || r.groupByName(g.Name, g.VpcID) != nil {
			return fmt.Errorf("security group %q: its id is malformed, its name %q missing or taken, or its vpc %q unknown", g.ID, g.Name, g.VpcID)
		}
		r.EC2.SecurityGroups.put(g.ID, &securityGroup{ID: g.ID, Name: g.Name, Description: g.Description, VpcID: g.VpcID, Tags: tagsOf(g.Tags)})
	}
	return nil
}

func (r *region) applySubnet(n seedSubnet) error {
	if r.EC2.Subnets.has(n.ID) {
		return nil
	}
	v := r.EC2.Vpcs.get(n.VpcID)
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
	for i, zone := range r.zones() {
		if zone == n.Zone {
			r.EC2.Subnets.put(n.ID, &subnet{
				ID: n.ID, VpcID: n.VpcID, Zone: zone, ZoneID: r.zoneID(i), CIDR: n.CIDR, PublicIP: n.PublicIP, Tags: tagsOf(n.Tags),
			})
			return nil
		}
	}
	return fmt.Errorf("zone %q is unknown", n.Zone)
}

func (r *region) applyImage(im seedImage) error {
	if r.EC2.Images.has(im.ID) {
		return nil
	}
	if !validID(im.ID, "ami-") || im.Name == "" || im.Architecture != "x86_64" && im.Architecture != "arm64" {
		return fmt.Errorf("image %q: its id is malformed, its name missing or its architecture %q unknown", im.ID, im.Architecture)
	}
	made := image{
		ID: im.ID, Name: im.Name, Owner: first(im.Owner, r.Account), Architecture: im.Architecture,
		Created: im.Created.UTC(), RootDevice: first(im.RootDevice, "/dev/xvda"), VolumeGiB: im.VolumeGiB,
		SnapshotID: r.seedID("snap", im.ID), Tags: tagsOf(im.Tags),
	}
	if made.VolumeGiB == 0 {
		made.VolumeGiB = 8
	}
	r.EC2.Images.put(im.ID, &made)
	return nil
}

func validCIDR(text string) bool {
	p, err := netip.ParsePrefix(text)
	return err == nil && p.Addr().Is4() && p.Masked() == p && p.Bits() >= 16 && p.Bits() <= 28
}

func tagsOf(m map[string]string) tags {
	ts := tags{}
	for key, value := range m {
		ts.set(key, value)
	}
	return ts
}
