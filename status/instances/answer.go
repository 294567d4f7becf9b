package instances

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/current"
)

// Schema identifies the JSON form of an Answer.
const Schema = "weir.dev/instance/v1"

// Answer describes an instance and the pool that has it.
type Answer struct {
	Schema   string        `json:"schema"`
	Instance plan.Instance `json:"instance"`
	// Owner is the name of the weir that owns the group, from the group's tags. It is set only if weir asked
	// AWS without a daemon.
	Owner     string `json:"owner,omitempty"`
	Pool      string `json:"pool,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	Target    string `json:"target,omitempty"`
	Account   string `json:"account,omitempty"`
	Region    string `json:"region,omitempty"`
	// Group is the name of the Auto Scaling group, empty if AWS was not read.
	Group            string `json:"group,omitempty"`
	Nodegroup        string `json:"nodegroup,omitempty"`
	LaunchTemplateID string `json:"launchTemplateID,omitempty"`
	// CurrentTemplateVersion is the version with which new instances start.
	CurrentTemplateVersion string `json:"currentTemplateVersion,omitempty"`
	// Commit is the commit for which weir made the template version of the instance. It is nil if it is unknown.
	Commit   *Commit        `json:"commit,omitempty"`
	Draining *plan.Draining `json:"draining,omitempty"`
	// PoolsAt is the time of the pass that read the pool, missing if weir asked AWS without a daemon.
	PoolsAt time.Time `json:"poolsAt,omitzero"`
	// AWS contains the facts that AWS reported now. It is nil if AWS did not answer.
	AWS *Facts `json:"aws,omitempty"`
	// Notes lists what is missing, each with the reason.
	Notes []string `json:"notes,omitempty"`
}

// Commit is a commit of the followed repository.
type Commit struct {
	Revision string `json:"revision"`
	Subject  string `json:"subject,omitempty"`
	URL      string `json:"url,omitempty"`
}

// Facts are the facts about an instance that weir reads only on request, not in its passes.
type Facts struct {
	LaunchedAt  time.Time `json:"launchedAt,omitzero"`
	Market      string    `json:"market"`
	PrivateIP   string    `json:"privateIP,omitempty"`
	PrivateDNS  string    `json:"privateDNS,omitempty"`
	State       string    `json:"state"`
	StateReason string    `json:"stateReason,omitempty"`
	Image       *Image    `json:"image,omitempty"`
}

// Image is the image of an instance.
type Image struct {
	ID        string    `json:"id"`
	Name      string    `json:"name,omitempty"`
	CreatedAt time.Time `json:"createdAt,omitzero"`
}

// Found is an instance in a pool.
type Found struct {
	Target   *current.TargetState
	Pool     *plan.PoolStatus
	Instance *plan.Instance
}

// Find returns the instances of the targets that have an id, or begin with it. An exact match excludes
// others.
func Find(targets []current.TargetState, id ID) []Found {
	var out []Found
	for t := range targets {
		for p := range targets[t].Pools {
			pool := &targets[t].Pools[p]
			for i := range pool.Instances {
				one := Found{&targets[t], pool, &pool.Instances[i]}
				if !id.Matches(one.Instance.ID) {
					continue
				}
				known := slices.IndexFunc(out, func(f Found) bool { return f.Instance.ID == one.Instance.ID })
				switch {
				case known < 0:
					out = append(out, one)
				case one.Target.PoolsAt.After(out[known].Target.PoolsAt):
					out[known] = one // the other target was not read since the pool moved
				}
			}
		}
	}
	if at := slices.IndexFunc(out, func(f Found) bool { return f.Instance.ID == id.Text }); at >= 0 {
		return out[at : at+1]
	}
	slices.SortFunc(out, func(a, b Found) int { return cmp.Compare(a.Instance.ID, b.Instance.ID) })
	return out
}

// Answer describes the instance as the last pass read it.
func (f Found) Answer() Answer {
	a := Answer{
		Schema: Schema, Instance: *f.Instance, Pool: f.Pool.Name, Namespace: f.Pool.Namespace, Cluster: f.Pool.Cluster, Target: f.Target.Name,
		Account: f.Target.Account, Region: f.Target.Region, LaunchTemplateID: cmp.Or(f.Instance.LaunchTemplateID, f.Pool.LaunchTemplateID),
		CurrentTemplateVersion: f.Pool.LaunchTemplateVersion, PoolsAt: f.Target.PoolsAt,
	}
	if r := f.Target.Last; r != nil {
		a.Account, a.Region = cmp.Or(r.Account, a.Account), cmp.Or(r.Region, a.Region)
	}
	if f.Pool.Nodegroup != nil {
		a.Nodegroup = f.Pool.Nodegroup.Name
	}
	if n := f.Pool.NoteOf(f.Instance); n != nil && n.Revision != "" {
		a.Commit = &Commit{Revision: n.Revision, Subject: n.Subject}
	}
	if at := slices.IndexFunc(f.Pool.Draining, func(d plan.Draining) bool { return d.Instance == f.Instance.ID }); at >= 0 {
		a.Draining = &f.Pool.Draining[at]
	}
	return a
}

// Add adds the facts that AWS reports.
func (a *Answer) Add(m observed.Machine) {
	a.AWS, a.Group = factsOf(m), m.GroupName
	a.Instance.ImageID = cmp.Or(m.ImageID, a.Instance.ImageID)
	a.Instance.Type, a.Instance.Zone = cmp.Or(a.Instance.Type, m.Type), cmp.Or(a.Instance.Zone, m.Zone)
	a.Notes = append(a.Notes, m.Notes...)
	if revision, subject := plan.CommitOf(m.Description); a.Commit == nil && revision != "" {
		a.Commit = &Commit{Revision: revision, Subject: subject}
	}
	if a.Commit == nil && len(a.Notes) == 0 {
		a.Notes = append(a.Notes, "the commit is unknown: the launch template version of the instance has no description by weir")
	}
}

// factsOf converts the facts that AWS reported.
func factsOf(m observed.Machine) *Facts {
	out := &Facts{LaunchedAt: m.LaunchedAt, Market: m.Market, PrivateIP: m.PrivateIP, PrivateDNS: m.PrivateDNS, State: m.State, StateReason: m.StateReason}
	if m.ImageID != "" {
		out.Image = &Image{ID: m.ImageID, Name: m.Image.Name}
		if at, err := time.Parse(time.RFC3339, m.Image.CreatedAt); err == nil { // AWS always sends a valid time
			out.Image.CreatedAt = at
		}
	}
	return out
}

// Of describes an instance from AWS's data, without a daemon.
func Of(m observed.Machine, account, region string) Answer {
	a := Answer{Schema: Schema, Account: account, Region: region, LaunchTemplateID: m.Template.ID}
	a.Instance = plan.Instance{ID: m.ID, TemplateVersion: m.Template.Version, Zone: m.Zone, Type: m.Type, State: m.State}
	if m.GroupName == "" {
		a.Notes = append(a.Notes, "the instance is in no Auto Scaling group, so it is in no pool")
	}
	if g := m.Group; g != nil {
		if i, listed := m.InGroup(); listed {
			a.Instance = plan.InstanceIn(*g, i)
		}
		tags := observed.GroupTagValues(g.Tags)
		a.owned(*g, tags)
	}
	a.Add(m)
	return a
}

// owned adds the owner of a group, by the tags of the group.
func (a *Answer) owned(g observed.Group, tags map[string]string) {
	a.CurrentTemplateVersion, a.Nodegroup = g.Template.Version, tags[observed.TagNodegroup]
	a.Owner, a.Target, a.Cluster = tags[observed.TagOwner], tags[observed.TagTarget], plan.ClusterIn(tags)
	a.Namespace, a.Pool = splitKey(tags[observed.TagPool])
	if a.Owner == "" {
		a.Notes = append(a.Notes, "the Auto Scaling group "+g.Name+" has no "+observed.TagOwner+" tag, so no weir manages it")
	}
}

// splitKey splits namespace/name.
func splitKey(pool string) (namespace, name string) {
	namespace, name, _ = strings.Cut(pool, "/")
	return namespace, name
}
