package awsemu

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/eks"
	"github.com/weir-gitops/weir/reconciler/awsemu/elb"
	"github.com/weir-gitops/weir/reconciler/awsemu/iam"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// seedFile is the JSON format of a user's addition to the default seed.
type seedFile struct {
	Account string                 `json:"account"` // "": the default account
	Regions map[string]*seedRegion `json:"regions"`
}

// seedRegion is the part of a seed for one region. Roles and instance profiles belong to the account. A
// profile contains the role of its name, which is made if missing.
type seedRegion struct {
	ec2.Seed
	Parameters       map[string]string `json:"parameters"`
	Roles            []string          `json:"roles"`
	InstanceProfiles []string          `json:"instanceProfiles"`
	Clusters         []eks.ClusterSeed `json:"clusters"`
	TargetGroups     []elb.Seed        `json:"targetGroups"`
	Quotas           map[string]int    `json:"quotas"` // by name; see QuotaNames
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
//	  "placementGroups": [{"name": "close", "strategy": "cluster"}],
//	  "capacityReservations": [{"id": "cr-0123456789abcdef0", "type": "m5.large", "zone": "eu-west-1a", "count": 4, "match": "targeted"}],
//	  "volumes": [{"id": "vol-0123456789abcdef0", "zone": "eu-west-1a", "type": "gp3", "gib": 100}],
//	  "notOffered": {"p4d.24xlarge": ["eu-west-1c"]},
//	  "targetGroups": [{"name": "web", "vpc": "vpc-0123456789abcdef0", "protocol": "HTTP", "port": 80}],
//	  "quotas": {"vcpus-standard": 32},
//	  "clusters": [{"name": "prod", "version": "1.33", "subnetIds": ["subnet-0123456789abcdef0"]}]}}}
//
// A resource whose id or name exists already stays unchanged, so a seed can be applied again to an emulator
// that was loaded from saved state. Quotas in a seed are set again. An unknown member or an inconsistent
// seed is an error and changes nothing.
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
		seed.Account = iam.DefaultAccount
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
	for _, name := range slices.Sorted(maps.Keys(seed.Regions)) {
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
	if err := r.EC2.ApplyEC2(&seed.Seed); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(seed.Parameters)) {
		if !r.SSM.Parameters.Has(name) {
			r.SSM.AddParameter(name, seed.Parameters[name], world.SeedTime())
		}
	}
	a := r.iam.Entities
	for _, name := range seed.Roles {
		if a.Roles[name] == nil {
			a.AddRole(name, "ec2.amazonaws.com", world.SeedTime())
		}
	}
	for _, name := range seed.InstanceProfiles {
		if a.Roles[name] == nil {
			a.AddRole(name, "ec2.amazonaws.com", world.SeedTime())
		}
		if a.InstanceProfiles[name] == nil {
			a.AddInstanceProfile(name, name, world.SeedTime())
		}
	}
	for _, g := range seed.TargetGroups {
		if err := r.ELB.Apply(g, r.EC2.Vpcs.Has); err != nil {
			return fmt.Errorf("target group %q: %w", g.Name, err)
		}
	}
	if err := r.SetQuotas(seed.Quotas); err != nil {
		return err
	}
	for _, c := range seed.Clusters {
		if r.EKS.Clusters.Has(c.Name) {
			continue
		}
		if err := r.EKS.SeedCluster(c); err != nil {
			return fmt.Errorf("cluster %q: %w", c.Name, err)
		}
	}
	return nil
}
