package fill

import (
	"context"
	"maps"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/weir-gitops/weir/reconciler/awscloud/read"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// versionUsers collects the users of each version of some templates.
type versionUsers struct {
	mu    sync.Mutex
	names map[string]string // by template id and by name
	users map[string][]observed.VersionUser
}

// template returns the name of the template if it is among the requested ones.
func (u *versionUsers) template(id, name string) (string, bool) {
	if id == "" {
		id = name
	}
	template, ours := u.names[id]
	return template, ours
}

func (u *versionUsers) add(id, name, version, user string) bool {
	template, ours := u.template(id, name)
	if !ours {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.users[template] = append(u.users[template], observed.VersionUser{User: user, Version: version})
	return true
}

func (u *versionUsers) addRef(r observed.TemplateRef, user string) bool {
	return u.add(r.ID, r.Name, r.Version, user)
}

// fillVersionUsers reads which resources in the account and region, of any owner, use which version of
// templates. It reads all groups with their overrides and instances, the active refreshes of groups that use
// one of the templates, all nodegroups of all clusters, and all other running instances of the templates. If
// one of these reads is denied, everything counts as unread, because a part of the users is not enough.
func (f *Filler) fillVersionUsers(ctx context.Context, s *observed.State, names []string) error {
	u := &versionUsers{names: map[string]string{}, users: map[string][]observed.VersionUser{}}
	var ids []string
	for _, name := range names {
		id := s.Templates[name].ID
		ids = append(ids, id)
		u.names[id], u.names[name] = name, name
		u.users[name] = []observed.VersionUser{}
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.groupUsers(gctx, u) })
	g.Go(func() error { return f.instanceUsers(gctx, u, ids) })
	g.Go(func() error { return f.nodegroupUsers(gctx, s, u) })
	err := g.Wait()
	if e := read.Denied(err); e != nil {
		for _, name := range names {
			s.Unread.VersionUsers = read.Note(s.Unread.VersionUsers, name, e)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if s.VersionUsers = maps.Clone(s.VersionUsers); s.VersionUsers == nil {
		s.VersionUsers = map[string][]observed.VersionUser{}
	}
	maps.Copy(s.VersionUsers, u.users)
	return nil
}

// groupUsers adds to u the versions that groups of the account use, and the versions of the active instance
// refreshes of these groups.
func (f *Filler) groupUsers(ctx context.Context, u *versionUsers) error {
	groups, err := f.reader.AllGroups(ctx)
	if err != nil {
		return err
	}
	var concerned []string
	for name, g := range groups {
		if groupUses(u, g) {
			concerned = append(concerned, name)
		}
	}
	return read.Each(ctx, concerned, func(ctx context.Context, name string) error {
		r, err := f.reader.Refresh(ctx, name)
		if err == nil && r.Active() {
			u.addRef(r.Template, "the instance refresh of "+name)
		}
		return err
	})
}

// groupUses adds the versions that a group is set to, and the versions of its instances.
func groupUses(u *versionUsers, g observed.Group) bool {
	user := "the group " + g.Name
	used := u.addRef(g.Template, user)
	if p := g.MixedInstancesPolicy; p != nil {
		for _, o := range p.Overrides {
			if t := o.LaunchTemplate; t != nil {
				used = u.add(t.ID, t.Name, t.Version, user) || used
			}
		}
	}
	for _, i := range g.Instances {
		used = u.addRef(i.Template, user) || used
	}
	return used
}

// instanceUsers finds instances that were launched from the templates, including those without a group.
func (f *Filler) instanceUsers(ctx context.Context, u *versionUsers, ids []string) error {
	return f.reader.LaunchedFrom(ctx, ids, func(id string, from observed.TemplateRef) { u.addRef(from, "the instance "+id) })
}

// nodegroupUsers uses the observed nodegroups, and describes the nodegroups of clusters that no target
// names. It describes a remembered nodegroup again if it has one of the templates, because its version may
// have changed. EKS never changes a nodegroup's template. The target version of an update is only in the
// update itself.
func (f *Filler) nodegroupUsers(ctx context.Context, s *observed.State, u *versionUsers) error {
	described, others := map[observed.NodegroupName]*observed.Nodegroup{}, []observed.NodegroupName(nil)
	for name, n := range s.Nodegroups {
		if _, ours := u.template(n.Template.ID, n.Template.Name); ours && !n.DescribedAtPass {
			others = append(others, name)
		} else {
			described[name] = &n
		}
	}
	clusters, err := f.reader.Clusters(ctx)
	if err != nil {
		return err
	}
	for _, cluster := range clusters {
		if _, observed := s.Clusters[cluster]; observed {
			continue
		}
		found, _, err := f.reader.Nodegroups(ctx, cluster)
		if err != nil {
			return err
		}
		others = append(others, found...)
	}
	var seen observed.State
	anew, err := f.observer.Describe(ctx, others, &seen)
	if err != nil {
		return err
	}
	for _, denied := range seen.Unread.Nodegroups {
		return denied
	}
	maps.Copy(described, anew)
	var updating []observed.NodegroupName
	for name, n := range described {
		if n != nil && u.addRef(n.Template, "the nodegroup "+name.String()) && n.Status == "UPDATING" {
			updating = append(updating, name)
		}
	}
	return read.Each(ctx, updating, func(ctx context.Context, name observed.NodegroupName) error {
		update, err := f.newestUpdate(ctx, name)
		if to := described[name].Template; err == nil && update.TemplateVersion != "" {
			u.add(to.ID, to.Name, update.TemplateVersion, "the update of the nodegroup "+name.String())
		}
		return err
	})
}
