// Package fill reads the facts that planning found missing in the observed state: names without the owner's
// tag, contents of template versions, refreshes and updates in progress, hooks, alarms, users of versions,
// and reasons for missing machines (shortage.go).
//
// A read that a plan needs is made at once, and an error ends the pass. A read that only explains something,
// or that repeats while something is changing, is a poll. It uses spare calls, the oldest query first, and
// keeps the last answer if no call is left. If a permission for a read is missing, the state's Unread notes
// it, and the pass continues for everything else.
package fill

import (
	"context"

	"github.com/weir-gitops/weir/reconciler/awscloud/memory"
	"github.com/weir-gitops/weir/reconciler/awscloud/observe"
	"github.com/weir-gitops/weir/reconciler/awscloud/read"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// Filler fills states of one account and region.
type Filler struct {
	client   *sdk.Client
	reader   *read.Reader
	memory   *memory.Memory
	observer *observe.Observer
	short    shortLog
	alarms   alarms
	launched launchTimes
}

// New returns a Filler.
func New(c *sdk.Client, r *read.Reader, m *memory.Memory, o *observe.Observer) *Filler {
	return &Filler{client: c, reader: r, memory: m, observer: o, short: shortLog{began: c.Now()}}
}

// Fill reads the missing facts and returns a state with them. It does not change s. Requested names that do
// not exist are in the new state's Absent.
func (f *Filler) Fill(ctx context.Context, s observed.State, n observed.Needs) (observed.State, error) {
	s = cloneFor(s, n)
	if err := f.fillTemplates(ctx, &s, n.TemplateNames); err != nil {
		return observed.State{}, err
	}
	if err := f.fillGroups(ctx, &s, n.GroupNames); err != nil {
		return observed.State{}, err
	}
	if err := f.fillNodegroups(ctx, &s, n.Nodegroups); err != nil {
		return observed.State{}, err
	}
	if err := f.fillVersions(ctx, &s, n.Versions); err != nil {
		return observed.State{}, err
	}
	if err := f.fillRefreshes(ctx, &s, n.Refreshes, n.Polls); err != nil {
		return observed.State{}, err
	}
	f.fillActivities(ctx, &s, n.Activities)
	if err := f.fillShort(ctx, &s, n.Short, n.Failures); err != nil {
		return observed.State{}, err
	}
	if err := read.Each(ctx, n.Hooks, f.observer.Hooks(&s)); err != nil {
		return observed.State{}, err
	}
	if err := f.fillUpdates(ctx, &s, n.Updates); err != nil {
		return observed.State{}, err
	}
	if err := f.fillNumbers(ctx, &s, n.Numbers); err != nil {
		return observed.State{}, err
	}
	if len(n.VersionUsers) > 0 {
		if err := f.fillVersionUsers(ctx, &s, n.VersionUsers); err != nil {
			return observed.State{}, err
		}
	}
	if err := f.fillAlarms(ctx, &s, n.Alarms); err != nil {
		return observed.State{}, err
	}
	if len(n.LaunchConfigurations) > 0 {
		if err := f.fillLaunchConfigurations(ctx, &s, n.LaunchConfigurations); err != nil {
			return observed.State{}, err
		}
	}
	if len(n.Launched) > 0 {
		if err := f.fillLaunched(ctx, &s, n.Launched); err != nil {
			return observed.State{}, err
		}
	}
	if n.TemplateUsers {
		if err := f.fillTemplateUsers(ctx, &s); err != nil {
			return observed.State{}, err
		}
	}
	return s, nil
}

// cloneFor copies those maps of a state that the needs will change.
func cloneFor(s observed.State, n observed.Needs) observed.State {
	if len(n.TemplateNames)+len(n.Versions)+len(n.Numbers) > 0 {
		s.Templates, s.Absent.Templates = read.Copied(s.Templates), read.Copied(s.Absent.Templates)
	}
	if len(n.GroupNames) > 0 {
		s.Groups, s.Absent.Groups = read.Copied(s.Groups), read.Copied(s.Absent.Groups)
	}
	if len(n.Nodegroups) > 0 {
		s.Nodegroups, s.Absent.Nodegroups = read.Copied(s.Nodegroups), read.Copied(s.Absent.Nodegroups)
	}
	if len(n.Refreshes)+len(n.Polls) > 0 {
		s.Refreshes = read.Copied(s.Refreshes)
	}
	if len(n.Activities) > 0 {
		s.Activities = read.Copied(s.Activities)
	}
	if len(n.Hooks) > 0 {
		s.Hooks = read.Copied(s.Hooks)
	}
	if len(n.Updates) > 0 {
		s.Updates = read.Copied(s.Updates)
	}
	return s
}

// fillLaunchConfigurations reads launch configurations by name. They never change, but the name may be used
// again, so none is remembered.
func (f *Filler) fillLaunchConfigurations(ctx context.Context, s *observed.State, names []string) error {
	found, err := f.reader.LaunchConfigurations(ctx, names...)
	if err != nil && read.Denied(err) == nil {
		return err
	}
	s.LaunchConfigurations = read.Copied(s.LaunchConfigurations)
	for _, name := range names {
		v, there := found[name]
		v.Unknown = v.Unknown || !there
		s.LaunchConfigurations[name] = v
	}
	return nil
}

// fillTemplates reads templates of any owner by name.
func (f *Filler) fillTemplates(ctx context.Context, s *observed.State, names []string) error {
	found, err := f.reader.Templates(ctx, names...)
	if err != nil {
		return err
	}
	f.memory.Versions.Recall(found, f.client.Now())
	for _, n := range names {
		if t, ok := found[n]; ok {
			s.Templates[n] = t
		} else {
			s.Absent.Templates[n] = true
		}
	}
	return nil
}

// fillGroups reads groups of any owner by name.
func (f *Filler) fillGroups(ctx context.Context, s *observed.State, names []string) error {
	found, err := f.reader.Groups(ctx, names...)
	if err != nil {
		return err
	}
	for _, n := range names {
		if g, ok := found[n]; ok {
			s.Groups[n] = g
		} else {
			s.Absent.Groups[n] = true
		}
	}
	return nil
}

// fillNodegroups reads nodegroups by name. If their cluster was listed, a missing nodegroup is absent
// without a further call.
func (f *Filler) fillNodegroups(ctx context.Context, s *observed.State, names []observed.NodegroupName) error {
	var unknown []observed.NodegroupName
	for _, n := range names {
		_, listed := s.Clusters[n.Cluster]
		if _, remembered := s.Nodegroups[n]; listed && !remembered {
			s.Absent.Nodegroups[n] = true
		} else {
			unknown = append(unknown, n)
		}
	}
	found, err := f.observer.Describe(ctx, unknown, s)
	if err != nil {
		return err
	}
	for name, n := range found {
		if n == nil {
			s.Absent.Nodegroups[name] = true
			delete(s.Nodegroups, name)
			continue
		}
		s.Nodegroups[name] = *n
		f.memory.Nodegroups.Put(*n, s.Groups, f.client.Now())
	}
	return nil
}

// fillTemplateUsers reads all groups of the account and region, of any owner, to find the templates from
// which they launch.
func (f *Filler) fillTemplateUsers(ctx context.Context, s *observed.State) error {
	found, err := f.reader.AllGroups(ctx)
	if err != nil {
		return err
	}
	users := map[string][]string{}
	for _, g := range found {
		refs := map[string]bool{g.Template.ID: true, g.Template.Name: true}
		for _, i := range g.Instances {
			refs[i.Template.ID], refs[i.Template.Name] = true, true
		}
		for ref := range refs {
			if ref != "" {
				users[ref] = append(users[ref], g.Name)
			}
		}
	}
	s.TemplateUsers = users
	return nil
}

// fillUpdates reads the newest update of each nodegroup.
func (f *Filler) fillUpdates(ctx context.Context, s *observed.State, names []observed.NodegroupName) error {
	return read.Each(ctx, names, read.Noting(&s.Unread.Updates, f.newestUpdate, func(name observed.NodegroupName, u observed.NodegroupUpdate) { s.Updates[name] = u }))
}

// newestUpdate returns the newest update of a nodegroup, or a zero value. EKS does not define the order of
// its list of ids, so each update is described once. Ended updates do not change and are remembered.
func (f *Filler) newestUpdate(ctx context.Context, name observed.NodegroupName) (newest observed.NodegroupUpdate, err error) {
	ids, err := f.reader.Updates(ctx, name)
	if err != nil {
		return observed.NodegroupUpdate{}, err
	}
	for _, id := range ids {
		u, known := f.memory.Nodegroups.Update(name, id)
		if !known {
			if u, err = f.reader.Update(ctx, name, id); err != nil {
				return observed.NodegroupUpdate{}, err
			}
			f.memory.Nodegroups.PutUpdate(name, u)
		}
		if u.CreatedAt.After(newest.CreatedAt) || newest.ID == "" {
			newest = u
		}
	}
	return newest, nil
}
