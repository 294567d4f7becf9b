package awsemu

import (
	"fmt"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/asg"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/eks"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// Graft holds the state of a region in another AWS that calls cannot express: ids, the numbers of
// versions, machines.
type Graft struct {
	Account, Region string
	Subnets         []ec2.SubnetGraft
	Clusters        []eks.ClusterGraft
	Templates       []ec2.TemplateGraft
	Groups          []asg.GroupGraft
	Nodegroups      []eks.NodegroupGraft
}

// Graft makes a region like that of another AWS, so that what a caller would do there can
// be tried here. Calls make launch templates, empty groups and nodegroups first, with all of
// their settings; Graft then gives these their ids, numbers and machines, and may be called
// for each kind in its turn. From then on the region is trusting: images, networks, roles,
// types, reservations and quotas of machines that calls name are taken to exist and to
// suffice, for nobody has told this AWS of them.
func (s *Server) Graft(g Graft) error {
	if !knownRegion(g.Region) {
		return fmt.Errorf("graft: region %q: unknown", g.Region)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.region(g.Account, g.Region)
	r.Trusting = true
	// Ids that are made from now on are none that the other AWS, which may be an emulator
	// as well, has given.
	s.state.Counter = max(s.state.Counter, grafted)
	if err := r.EC2.GraftSubnets(g.Subnets); err != nil {
		return fmt.Errorf("graft: %w", err)
	}
	for _, c := range g.Clusters {
		if err := r.EKS.GraftCluster(c); err != nil {
			return fmt.Errorf("graft: %w", err)
		}
	}
	for _, t := range g.Templates {
		if err := r.EC2.GraftTemplate(t); err != nil {
			return fmt.Errorf("graft: %w", err)
		}
	}
	for _, group := range g.Groups {
		if err := r.AutoScaling.GraftGroup(group); err != nil {
			return fmt.Errorf("graft: %w", err)
		}
	}
	for _, n := range g.Nodegroups {
		if err := r.EKS.GraftNodegroup(n); err != nil {
			return fmt.Errorf("graft: %w", err)
		}
	}
	return nil
}

// grafted is from where on ids count in a region that was grafted.
const grafted = 1 << 40

// NextDue returns the time of the next event by itself, after all due events have happened; false
// for none. Forgetting ended instances and client tokens does not count: nobody waits for it.
func (s *Server) NextDue() (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runDue()
	return s.state.NextBut("ec2.instance-forget", wire.TimerForgetToken)
}
