// Package preflight asks AWS about the names in a plan and reports what AWS would refuse: a plan
// that AWS refuses after the merge is half a plan.
//
// # Terms
//
// A launch is the part of a plan for one pool that changes something (launchesOf). A fact is one
// answer of AWS about a thing that manifests name; facts of a kind are on a shelf, each with an
// expiry. Judging launches by the available facts gives findings and names the missing facts; the
// Asker reads these in batches and judges again.
//
// # Rules
//
// The Asker asks only about changes, so a pass without changes asks nothing. It takes known answers
// from package resolve and the planner (images, networks of one VPC), and does not ask again.
//
// A finding is a warning at the field that names the thing. By itself it holds no step: AWS may
// know better than weir, and then the write succeeds; else it fails with AWS's own words, and the
// pool waits for a change as usual. So a wrong finding costs a line of text, and a question that
// fails costs a finding. What AWS is sure to refuse is an error: an instance type that the region
// does not offer, a release that does not exist, a device named twice.
//
// A refusal (Answer.Refused) is more: AWS said that a named resource does not exist or cannot
// be used, so no new machine of the pool can start. The planner holds what ends machines of
// such a pool. Nothing else is a refusal: no short capacity, no dry run, nothing unknown.
//
// A question that AWS does not answer is no finding. One diagnostic for a target
// (preflight-unasked) names the questions that the role may not ask, and those that
// failed.
//
// A dry run of RunInstances is the one question that needs the permission to launch. An
// Asker without a Launcher makes none: those that plan pull requests have none, and a plan
// of a commit that is not followed makes none either, whatever Asker it has.
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
	// NoIPv4 says that its machines have only IPv6 addresses.
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
	// State is Enabled for a usable one.
	State string
	// Symmetric keys that encrypt are those that volumes take.
	Symmetric bool
}

// InstanceType is an instance type. Members that AWS did not tell are nil or empty: weir concludes nothing from them.
type InstanceType struct {
	VCPUs         int32
	Architectures []string
	// Markets are on-demand, spot and capacity-block; Strategies those of placement groups.
	Markets, Strategies []string
	// Features are those of the processor, such as amd-sev-snp.
	Features []string
	// Weightings are those of bandwidth.
	Weightings                           []string
	Cores, Threads                       []int32
	Enclaves, EBSOptimized, Encrypted    string // supported, unsupported or another word
	Hibernation, EFA, EnaSrd, Hosts      *bool
	MaxInterfaces, MaxEFAs, NetworkCards int32
}

// Cloud answers questions about one account and region. An answer leaves out things
// that do not exist, which is no error. An error is a *observed.Error.
type Cloud interface {
	// A method that takes several names may return some answers with an error: each of them is whole.

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
	// Offerings returns in which zones instance types are offered.
	Offerings(ctx context.Context, types []string) (map[string][]string, error)
	// ImagesNamed returns which names public images of AWS have.
	ImagesNamed(ctx context.Context, names []string) (map[string]bool, error)
	// Snapshots returns the sizes in GiB of the snapshots that the account may see. It need
	// not see that of an image that it may launch.
	Snapshots(ctx context.Context, ids []string) (map[string]int32, error)
	// Quota returns the value of a quota of EC2 by its code.
	Quota(ctx context.Context, code string) (value float64, found bool, err error)
	// Reservations returns the capacity reservations that are active.
	Reservations(ctx context.Context) ([]Reservation, error)
	// Running returns the instances of the account that count against quotas.
	Running(ctx context.Context) ([]Instance, error)
}

// Instance is an instance of the account, of any owner.
type Instance struct {
	Type  string
	VCPUs int32 // 0 if AWS does not tell
	Spot  bool
}

// Reservation is a capacity reservation that is active.
type Reservation struct {
	ID, Type, Zone string
	// Open says that machines run in it that do not name it.
	Open bool
	// Free is the number of further machines that may run in it.
	Free int64
}

// CodeNotDry is the code of the error that a dry run had an effect: weir makes no further one there.
const CodeNotDry = "NotDry"

// Launcher asks EC2 whether it would launch a machine, without launching it.
type Launcher interface {
	// DryRun returns why EC2 would refuse, nil if it would not. err says that EC2 did not answer.
	DryRun(ctx context.Context, r DryRun) (refused, err *observed.Error)
}

// DryRun is one machine to ask about.
type DryRun struct {
	// Data is without user data and tags.
	Data intent.TemplateData
	// Type takes the place of Data's instance type.
	Type   string
	Subnet string
}
