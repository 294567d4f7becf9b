package awsemu

import (
	"maps"
	"slices"

	"github.com/weir-gitops/weir/reconciler/awsemu/asg"
	"github.com/weir-gitops/weir/reconciler/awsemu/cloudwatch"
	"github.com/weir-gitops/weir/reconciler/awsemu/dynamodb"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/eks"
	"github.com/weir-gitops/weir/reconciler/awsemu/elb"
	"github.com/weir-gitops/weir/reconciler/awsemu/iam"
	"github.com/weir-gitops/weir/reconciler/awsemu/kms"
	"github.com/weir-gitops/weir/reconciler/awsemu/quotas"
	"github.com/weir-gitops/weir/reconciler/awsemu/ssm"
	"github.com/weir-gitops/weir/reconciler/awsemu/sts"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// state is everything that survives a restart, in JSON.
type state struct {
	world.State
	Accounts map[string]*iam.Account
	Regions  map[string]*region // by account/region
	Keys     map[string]*sts.SessionKey
}

func newState() *state {
	return &state{Accounts: map[string]*iam.Account{}, Regions: map[string]*region{}, Keys: map[string]*sts.SessionKey{}}
}

// region is one account's part of one region: the part that all services share, and each service's own.
type region struct {
	world.Region
	EC2         ec2.Region
	SSM         ssm.Region
	KMS         kms.Region
	AutoScaling asg.Region
	EKS         eks.Region
	ELB         elb.Region
	DynamoDB    dynamodb.Region
	CloudWatch  cloudwatch.Region

	iam iam.Region // of the account
	sts sts.Region // of all accounts

	quotas quotas.Region
}

// join connects a region, which is new or was read from JSON, to the server, and connects the services'
// parts with each other.
func (s *Server) join(r *region) {
	r.Join(&s.world)
	base, faults := &r.Region, &s.faults
	r.iam = iam.Region{Region: base, Entities: s.account(r.Account)}
	r.sts = sts.Region{Region: base, Keys: s.state.Keys, Accounts: s.account}
	r.quotas = quotas.Region{Region: base}
	r.KMS.Join(base)
	r.ELB.Join(base)
	r.DynamoDB.Join(base, s.throttle)
	r.SSM.Join(base, &r.KMS)
	r.EC2.Join(base, &r.iam, &r.SSM, &r.KMS, &faults.Launches, r.AutoScaling.InstanceChanged)
	r.CloudWatch.Join(base, r.AutoScaling.AlarmChanged)
	r.AutoScaling.Join(base, &r.EC2, &r.CloudWatch, &faults.Hooks)
	r.EKS.Join(base, &r.iam, &r.SSM, &r.EC2, &r.AutoScaling, &faults.Nodegroups)
}

// region returns an account's region. It fills the region on first use.
func (s *Server) region(accountID, name string) *region {
	key := accountID + "/" + name
	if r := s.state.Regions[key]; r != nil {
		return r
	}
	r := &region{Region: world.Region{Account: accountID, Name: name}}
	s.state.Regions[key] = r
	s.join(r)
	r.EC2.Fill()
	r.EKS.Fill()
	return r
}

// account returns an account. It fills the account on first use.
func (s *Server) account(id string) *iam.Account {
	a := s.state.Accounts[id]
	if a == nil {
		a = iam.NewAccount(id)
		s.state.Accounts[id] = a
	}
	return a
}

// service is a service, and a function that returns its part of a region.
type service struct {
	*wire.Service
	part func(r *region) any
}

func (s *Server) addServices() {
	s.timers[wire.TimerForgetToken] = func(r *region, key string) { wire.ForgetToken(&r.Region, key) }
	add(s, ec2.Service(), ec2.Timers(), func(r *region) *ec2.Region { return &r.EC2 })
	add(s, ssm.Service(), nil, func(r *region) *ssm.Region { return &r.SSM })
	add(s, kms.Service(), nil, func(r *region) *kms.Region { return &r.KMS })
	add(s, asg.Service(), asg.Timers(), func(r *region) *asg.Region { return &r.AutoScaling })
	add(s, eks.Service(), eks.Timers(), func(r *region) *eks.Region { return &r.EKS })
	add(s, sts.Service(), sts.Timers(), func(r *region) *sts.Region { return &r.sts })
	add(s, elb.Service(), nil, func(r *region) *elb.Region { return &r.ELB })
	add(s, dynamodb.Service(), dynamodb.Timers(), func(r *region) *dynamodb.Region { return &r.DynamoDB })
	add(s, cloudwatch.Service(), nil, func(r *region) *cloudwatch.Region { return &r.CloudWatch })
	add(s, quotas.Service(), nil, func(r *region) *quotas.Region { return &r.quotas })
	add(s, iam.Service(), nil, func(r *region) *iam.Region { return &r.iam })
}

// Operations returns the names of the emulator's operations by service, sorted.
func Operations() map[string][]string {
	s := &Server{services: map[string]*service{}, timers: map[string]func(*region, string){}}
	s.addServices()
	out := map[string][]string{}
	for name, sv := range s.services {
		out[name] = slices.Sorted(maps.Keys(sv.Ops))
	}
	return out
}

// add adds a service whose part of a region has the type R.
func add[R any](s *Server, sv *wire.Service, timers map[string]func(R, string), part func(r *region) R) {
	s.services[sv.Name] = &service{sv, func(r *region) any { return part(r) }}
	for kind, f := range timers {
		s.timers[kind] = func(r *region, key string) { f(part(r), key) }
	}
}

// runDue makes all changes that are due by the clock's time, in order. The caller holds the lock.
func (s *Server) runDue() {
	until := s.clock.Now().UTC()
	for t, ok := s.world.Next(until); ok; t, ok = s.world.Next(until) {
		s.timers[t.Kind](s.region(t.Account, t.Region), t.Key)
	}
}
