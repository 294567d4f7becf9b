// Package preflight asks AWS about the names in a plan and reports what AWS would refuse. Without it, a plan
// could fail halfway after the merge.
//
// # Terms
//
// A launch is the part of a plan for one pool that changes something (launchesOf). A fact is one answer of
// AWS about a named thing. A shelf caches the facts of one kind, each with an expiry. Judging launches by
// the cached facts gives findings and the list of missing facts. The Asker reads these in batches and judges
// again.
//
// # Rules
//
// The Asker asks only about changes, so a pass without changes asks nothing. It takes known answers
// from package resolve and the planner (images, networks of one VPC), and does not ask again.
//
// A finding is a warning at the field that names the thing. It holds no step by itself, because weir's rules
// may be outdated. If the write fails, it fails with AWS's own message, and the pool waits for a change as
// usual. So a wrong finding costs a line of text, and a failed question costs a finding. Something that AWS
// certainly refuses is an error: an instance type that the region does not offer, a release that does not
// exist, a device that is named twice.
//
// A refusal (Answer.Refused) is stronger: AWS said that a named resource does not exist or cannot be used,
// so no new machine of the pool can start. The planner then holds steps that terminate machines of the pool.
// Short capacity, dry runs and unknown facts are never refusals.
//
// A question without an answer is no finding. One diagnostic per target (preflight-unasked) names the
// questions that the role may not ask, and those that failed.
//
// Only the dry run of RunInstances needs the permission to launch. An Asker without a Launcher makes no dry
// runs, as for pull requests. An unfollowed commit never gets a dry run, whatever Asker plans it.
package preflight

import (
	"context"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// Profile is an instance profile.
type Profile struct {
	// Role is the name of its role, empty for none.
	Role string
}

// Subnet is a subnet.
type Subnet struct {
	Zone string
	// Free counts free IPv4 addresses.
	Free int32
	// NoIPv4 says that machines in the subnet have only IPv6 addresses.
	NoIPv4 bool
}

// TargetGroup is a target group of a load balancer.
type TargetGroup struct {
	VPC string
	// Type is instance, ip, lambda or alb.
	Type string
}

// PlacementGroup is a placement group.
type PlacementGroup struct {
	// Strategy is cluster, partition or spread.
	Strategy   string
	State      string
	Partitions int32
}

// Key is a KMS key.
type Key struct {
	// State is Enabled if the key can be used.
	State string
	// Symmetric says that the key is symmetric and encrypts. Volumes need such a key.
	Symmetric bool
}

// InstanceType is an instance type. Values that AWS did not return are nil or empty, and weir draws no
// conclusion from them.
type InstanceType struct {
	VCPUs         int32
	Architectures []string
	// Markets are on-demand, spot and capacity-block. Strategies are strategies of placement groups.
	Markets, Strategies []string
	// Features are features of the processor, such as amd-sev-snp.
	Features []string
	// Weightings are supported bandwidth weightings.
	Weightings                           []string
	Cores, Threads                       []int32
	Enclaves, EBSOptimized, Encrypted    string // supported, unsupported or another word
	Hibernation, EFA, EnaSrd, Hosts      *bool
	MaxInterfaces, MaxEFAs, NetworkCards int32
}

// Cloud answers questions about one account and region. An answer leaves out things that do not exist,
// without an error. Every error is a *observed.Error.
type Cloud interface {
	// A method that takes several names may return some answers together with an error. Each returned answer
	// is complete.

	Profile(ctx context.Context, name string) (p Profile, found bool, err error)
	// KeyPairs returns which of the key pairs exist.
	KeyPairs(ctx context.Context, names []string) (map[string]bool, error)
	// GroupsThatExist returns which of the security groups exist.
	GroupsThatExist(ctx context.Context, ids []string) (map[string]bool, error)
	SubnetRoom(ctx context.Context, ids []string) (map[string]Subnet, error)
	TargetGroups(ctx context.Context, arns []string) (map[string]TargetGroup, error)
	// PlacementGroups takes names and ids (pg-…).
	PlacementGroups(ctx context.Context, names []string) (map[string]PlacementGroup, error)
	// Key takes a key's id, ARN, alias or the ARN of an alias.
	Key(ctx context.Context, id string) (k Key, found bool, err error)
	InstanceTypes(ctx context.Context, names []string) (map[string]InstanceType, error)
	// Offerings returns the zones that offer each instance type.
	Offerings(ctx context.Context, types []string) (map[string][]string, error)
	// ImagesNamed returns which of the names belong to public images of AWS.
	ImagesNamed(ctx context.Context, names []string) (map[string]bool, error)
	// Snapshots returns the sizes in GiB of the snapshots that the account may see. An account may be unable
	// to see the snapshot of an image that it may launch.
	Snapshots(ctx context.Context, ids []string) (map[string]int32, error)
	// Quota returns the value of a quota of EC2 by its code.
	Quota(ctx context.Context, code string) (value float64, found bool, err error)
	// Reservations returns the active capacity reservations.
	Reservations(ctx context.Context) ([]Reservation, error)
	// Running returns the instances of the account that count against quotas.
	Running(ctx context.Context) ([]Instance, error)
}

// Instance is an instance of the account, of any owner.
type Instance struct {
	Type  string
	VCPUs int32 // 0 if AWS did not return it
	Spot  bool
}

// Reservation is an active capacity reservation.
type Reservation struct {
	ID, Type, Zone string
	// Open says that machines that do not name the reservation may run in it.
	Open bool
	// Free is the number of additional machines that may run in it.
	Free int64
}

// CodeNotDry is the code of the error that a dry run had an effect. weir then makes no further dry runs
// there.
const CodeNotDry = "NotDry"

// Launcher asks EC2 whether it would launch a machine.
type Launcher interface {
	// DryRun returns the reason for which EC2 would refuse, or nil. err says that EC2 did not answer.
	DryRun(ctx context.Context, r DryRun) (refused, err *observed.Error)
}

// DryRun describes one machine for a dry run.
type DryRun struct {
	// Data has no user data and no tags.
	Data intent.TemplateData
	// Type replaces Data's instance type.
	Type   string
	Subnet string
}
