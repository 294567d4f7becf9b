package resolve_test

import (
	"context"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/render/intent"
)

// fakeCloud is a small AWS: what it holds are values, what it was asked is
// counted. An operation in fail fails.
type fakeCloud struct {
	parameters    map[string]string
	images        []resolve.Image
	owners        map[string]string // image id to owner
	architectures map[string][]string
	vpcs          []resolve.VPC
	subnets       []resolve.Subnet
	groups        []resolve.SecurityGroup
	clusters      map[string]observed.EKSCluster
	roles         map[string]resolve.Role
	policies      map[string][]string // by role
	templates     []resolve.Template
	versions      map[string]resolve.TemplateVersion // by "id number"
	common        int64                              // the number that is the newest or default one
	fail          map[string]error

	mu    sync.Mutex
	calls map[string]int
}

func (f *fakeCloud) call(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls == nil {
		f.calls = map[string]int{}
	}
	f.calls[name]++
	return f.fail[name]
}

func (f *fakeCloud) Parameters(_ context.Context, names []string) (map[string]string, error) {
	out := map[string]string{}
	for _, n := range names {
		if v, ok := f.parameters[n]; ok {
			out[n] = v
		}
	}
	return out, f.call("Parameters")
}

func (f *fakeCloud) Images(_ context.Context, q resolve.ImageQuery) ([]resolve.Image, error) {
	var out []resolve.Image
	for _, im := range f.images {
		matched, _ := path.Match(q.Name, im.Name)
		if slices.Contains(q.IDs, im.ID) || len(q.IDs) == 0 && matched && f.owners[im.ID] == q.Owner && im.Architecture == q.Architecture {
			out = append(out, im)
		}
	}
	return out, f.call("Images")
}

func (f *fakeCloud) Architectures(_ context.Context, types []string) (map[string][]string, error) {
	out := map[string][]string{}
	for _, t := range types {
		if a, ok := f.architectures[t]; ok {
			out[t] = a
		}
	}
	return out, f.call("Architectures")
}

func (f *fakeCloud) VPCs(context.Context) ([]resolve.VPC, error) { return f.vpcs, f.call("VPCs") }

func (f *fakeCloud) Subnets(_ context.Context, filters []intent.Filter) ([]resolve.Subnet, error) {
	var out []resolve.Subnet
	for _, s := range f.subnets {
		if matches(filters, map[string]string{"subnet-id": s.ID, "vpc-id": s.VPCID, "availability-zone": s.Zone}, s.Tags) {
			out = append(out, s)
		}
	}
	return out, f.call("Subnets")
}

func (f *fakeCloud) SecurityGroups(_ context.Context, filters []intent.Filter) ([]resolve.SecurityGroup, error) {
	var out []resolve.SecurityGroup
	for _, g := range f.groups {
		if matches(filters, map[string]string{"group-id": g.ID, "vpc-id": g.VPCID, "group-name": g.Name}, g.Tags) {
			out = append(out, g)
		}
	}
	return out, f.call("SecurityGroups")
}

func matches(filters []intent.Filter, fields, tags map[string]string) bool {
	for _, f := range filters {
		ok := false
		for _, v := range f.Values {
			key, isTag := strings.CutPrefix(f.Name, "tag:")
			_, has := tags[v]
			ok = ok || isTag && tags[key] == v || f.Name == "tag-key" && has || fields[f.Name] == v
		}
		if !ok {
			return false
		}
	}
	return true
}

func (f *fakeCloud) Cluster(_ context.Context, name string) (observed.EKSCluster, bool, error) {
	c, ok := f.clusters[name]
	return c, ok, f.call("Cluster")
}

func (f *fakeCloud) Role(_ context.Context, name string) (resolve.Role, bool, error) {
	r, ok := f.roles[name]
	return r, ok, f.call("Role")
}

func (f *fakeCloud) RolePolicies(_ context.Context, name string) ([]string, bool, error) {
	arns, ok := f.policies[name]
	return arns, ok, f.call("RolePolicies")
}

// take returns the calls since the last time.
func (f *fakeCloud) TemplatesByName(_ context.Context, names []string) ([]resolve.Template, error) {
	return f.templatesWhere(func(t resolve.Template) bool { return slices.Contains(names, t.Name) }), f.call("TemplatesByName")
}

func (f *fakeCloud) TemplatesByID(_ context.Context, ids []string) ([]resolve.Template, error) {
	return f.templatesWhere(func(t resolve.Template) bool { return slices.Contains(ids, t.ID) }), f.call("TemplatesByID")
}

func (f *fakeCloud) templatesWhere(wanted func(resolve.Template) bool) []resolve.Template {
	var out []resolve.Template
	for _, t := range f.templates {
		if wanted(t) {
			out = append(out, t)
		}
	}
	return out
}

func (f *fakeCloud) CommonTemplateVersions(_ context.Context, wanted map[string][]int64, _ int) (map[string]map[int64]resolve.TemplateVersion, error) {
	out := map[string]map[int64]resolve.TemplateVersion{}
	for id, numbers := range wanted {
		for _, n := range numbers {
			if v, ok := f.versions[id+" "+strconv.FormatInt(n, 10)]; ok && n == f.common {
				out[id] = map[int64]resolve.TemplateVersion{n: v}
			}
		}
	}
	return out, f.call("CommonTemplateVersions")
}

func (f *fakeCloud) TemplateVersion(_ context.Context, id string, number int64) (resolve.TemplateVersion, bool, error) {
	v, ok := f.versions[id+" "+strconv.FormatInt(number, 10)]
	return v, ok, f.call("TemplateVersion")
}

func (f *fakeCloud) take() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.calls
	f.calls = nil
	return out
}

// clock is a time that tests move.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func newClock() *clock { return &clock{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }
