package awsemu

import (
	"fmt"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/asg"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/eks"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// Graft is the state of a region in another AWS that calls cannot express: ids, numbers of versions,
// machines.
type Graft struct {
	Account, Region string
	Subnets         []ec2.SubnetGraft
	Clusters        []eks.ClusterGraft
	Templates       []ec2.TemplateGraft
	Groups          []asg.GroupGraft
	Nodegroups      []eks.NodegroupGraft
}

// Graft makes a region like one of another AWS, to try out actions there. First, calls make launch
// templates, empty groups and nodegroups with all of their settings. Graft then sets their ids, numbers and
// machines. It may be called for each kind separately. From then on the region is trusting: it accepts any
// image, network, role, type, reservation and quota of machines that calls name, because it does not know
// them.
func (s *Server) Graft(g Graft) error {
	if !knownRegion(g.Region) {
		return fmt.Errorf("graft: region %q: unknown", g.Region)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.region(g.Account, g.Region)
	r.Trusting = true
	// New ids must not collide with ids of the other AWS, which may be an emulator as well.
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

// grafted is the first id number in a grafted region.
const grafted = 1 << 40

// NextDue returns the time of the next automatic event, after all due events have happened. ok is false for
// none. Forgetting ended instances and client tokens does not count.
func (s *Server) NextDue() (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runDue()
	return s.state.NextBut("ec2.instance-forget", wire.TimerForgetToken)
}
