package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/render/intent"
)

// governedWeb is the input with a FleetRollout that governs the pool web.
func governedWeb(in model.Input) model.Input {
	in.Policy.Gates.Rollouts = map[string]rollout.Permit{"default/web": {ID: rollout.ID{Target: "blue", Pool: "default/web"}, Rollouts: []string{"fleet/waves"}}}
	return in
}

// imageNow has the lookup of images answer so.
func imageNow(in model.Input, id string) model.Input {
	in = newerImage(in)
	in.Answers[imageLookup] = observed.Answer{Image: &observed.Image{ID: id, RootDevice: "/dev/sda1", RootSize: 8}}
	return in
}

// told are the versions that a pool could go back to, with what pins them.
func told(p rollout.Pool) string {
	var out []string
	if p.Earlier != nil {
		for _, v := range append([]rollout.Version{*p.Earlier}, p.Others...) {
			policy := "?"
			if v.Plain {
				policy = "plain"
			} else if v.Policy != nil {
				policy = v.Policy.Overrides[0].InstanceType
			}
			out = append(out, fmt.Sprintf("%d %s %s", v.Number, v.Pin, policy))
		}
	}
	return strings.Join(out, ", ")
}

// A group goes back to what most of its machines run, and not to what it is set to: AWS sets
// it to what a refresh leads to only once that has succeeded.
func TestWhatAGroupGoesBackTo(t *testing.T) {
	follows := func(types ...string) intent.Pool {
		p := groupPool("web", "m5.large", 10)
		if len(types) > 0 {
			p = mixed(types...)
			p.Replicas = intent.Number{Value: 10, Written: true}
			p.Group.MaxSize = 10
		}
		p.FollowImages = true
		return p
	}
	refreshTo := func(m *fakeAWS, version, status string, policy *intent.MixedInstances) {
		m.state.Refreshes["web"] = observed.Refresh{ID: "r-" + version, Status: status, Template: observed.TemplateRef{ID: m.state.Templates["web"].ID, Name: "web", Version: version}, MixedInstancesPolicy: policy}
	}
	for name, tt := range map[string]struct {
		pool     intent.Pool
		machines map[string]int // by version; "+" are on their way out, others are in service
		set      string         // what the group is set to
		change   func(m *fakeAWS)
		want     string
	}{
		"all run what it is set to":                   {machines: map[string]int{"1": 10}, set: "1", want: "1 ami-1 plain"},
		"all run the good one, which is still rolled": {machines: map[string]int{"2": 10}, set: "1", want: "2 ami-2 ?, 1 ami-1 plain"},
		"its refresh tells its policy": {machines: map[string]int{"2": 10}, set: "1", want: "2 ami-2 plain, 1 ami-1 plain",
			change: func(m *fakeAWS) { refreshTo(m, "2", "InProgress", nil) }},
		"a refresh before the newest tells it": {machines: map[string]int{"2": 10}, set: "1", want: "2 ami-2 plain, 1 ami-1 plain",
			change: func(m *fakeAWS) {
				refreshTo(m, "2", "Cancelled", nil)
				two := m.state.Refreshes["web"]
				refreshTo(m, "3", "InProgress", nil)
				newest := m.state.Refreshes["web"]
				newest.Earlier = []observed.Refresh{two}
				m.state.Refreshes["web"] = newest
			}},
		"a few run it":                         {machines: map[string]int{"2": 2, "1": 8}, set: "1", want: "1 ami-1 plain, 2 ami-2 ?"},
		"most run it":                          {machines: map[string]int{"2": 6, "1": 4}, set: "1", want: "2 ami-2 ?, 1 ami-1 plain"},
		"as many run the one as the other":     {machines: map[string]int{"2": 5, "1": 5}, set: "1", want: "1 ami-1 plain, 2 ami-2 ?"},
		"as many, and it is set to the newer":  {machines: map[string]int{"2": 5, "1": 5}, set: "2", want: "2 ami-2 plain, 1 ami-1 ?"},
		"what leaves does not count":           {machines: map[string]int{"2": 4, "1": 2, "1+": 4}, set: "1", want: "2 ami-2 ?, 1 ami-1 plain"},
		"no machines":                          {machines: nil, set: "1", want: "1 ami-1 plain"},
		"what is wanted is running already":    {machines: map[string]int{"3": 6, "2": 3, "1": 1}, set: "1", want: "2 ami-2 ?, 1 ami-1 plain"},
		"it is set to what is wanted":          {machines: map[string]int{"3": 4, "2": 4, "1": 2}, set: "3", want: "2 ami-2 ?, 1 ami-1 ?"},
		"as many, and it is set to what is so": {machines: map[string]int{"3": 4, "1": 3, "2": 3}, set: "3", want: "2 ami-2 ?, 1 ami-1 ?"},
		"by hand: another template": {machines: map[string]int{"1": 4}, set: "1", want: "1 ami-1 plain", change: func(m *fakeAWS) {
			g := m.state.Groups["web"]
			for range 6 {
				g.Instances = append(g.Instances, observed.Instance{ID: m.id("i"), Type: "m5.large", LifecycleState: "InService", Health: "Healthy", Template: observed.TemplateRef{ID: "lt-theirs", Name: "theirs", Version: "9"}})
			}
			m.state.Groups["web"] = g
		}},
		"by hand: another version": {machines: map[string]int{"1": 4, "4": 6}, set: "1", want: "4  ?, 1 ami-1 plain", change: func(m *fakeAWS) {
			tm := m.state.Templates["web"]
			tm.Versions[4] = observed.TemplateVersion{Number: 4, Description: "theirs", Data: tm.Versions[1].Data}
			m.state.Templates["web"] = tm
		}},
		"the version of most exists no more": {machines: map[string]int{"2": 6, "1": 4}, set: "1", want: "1 ami-1 plain", change: func(m *fakeAWS) {
			tm := m.state.Templates["web"]
			delete(tm.Versions, 2)
			tm.Missing = map[int64]bool{2: true}
			m.state.Templates["web"] = tm
		}},
		"a policy of several types": {pool: follows("m5.large", "m5.xlarge"), machines: map[string]int{"2": 10}, set: "1", want: "2 ami-2 m5.xlarge, 1 ami-1 m5.large",
			change: func(m *fakeAWS) {
				refreshTo(m, "2", "InProgress", follows("m5.xlarge", "m5.large").Group.MixedInstancesPolicy)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel()
			pool := tt.pool
			if pool.Group == nil {
				pool = follows()
			}
			for _, image := range []string{"ami-1", "ami-2", "ami-3"} {
				converge(t, m, imageNow(testInput(pool), image))
			}
			delete(m.state.Refreshes, "web")
			g := m.state.Groups["web"]
			g.Template.Version, g.DesiredCapacity = tt.set, 10
			one := g.Instances[0]
			g.Instances = nil
			for version, n := range tt.machines {
				for range n {
					i := one
					i.ID, i.Template.Version, i.ImageID = m.id("i"), strings.TrimSuffix(version, "+"), ""
					if strings.HasSuffix(version, "+") {
						i.LifecycleState = "Terminating"
					}
					g.Instances = append(g.Instances, i)
				}
			}
			m.state.Groups["web"] = g
			if tt.change != nil {
				tt.change(m)
			}
			for range 3 { // in whichever order AWS lists them
				slices.Reverse(g.Instances)
				p, _ := m.pass(t, governedWeb(imageNow(testInput(pool), "ami-3")))
				if list := p.Governed(); len(list) != 1 || told(list[0]) != tt.want {
					t.Fatalf("%d pools, %q and not %q: %+v %v", len(list), told(list[0]), tt.want, list, p.Diagnostics)
				}
			}
		})
	}
}

// A nodegroup goes back to what an update leads to that is under way: nobody can stop that.
func TestWhatANodegroupWasBefore(t *testing.T) {
	pool := nodegroupPool("web", 3)
	pool.FollowImages = true
	pool.LaunchTemplate = groupPool("web", "m5.large", 3).LaunchTemplate
	pool.Nodegroup.AMIType = "CUSTOM"
	for name, tt := range map[string]struct {
		status string
		update observed.NodegroupUpdate
		want   string
	}{
		"none is under way":     {"ACTIVE", observed.NodegroupUpdate{ID: "u", Type: "VersionUpdate", Status: "Failed", TemplateVersion: "2"}, "1 ami-1 ?"},
		"to the one between":    {"UPDATING", observed.NodegroupUpdate{ID: "u", Type: "VersionUpdate", Status: "InProgress", TemplateVersion: "2"}, "2 ami-2 ?, 1 ami-1 ?"},
		"to what Git wants":     {"UPDATING", observed.NodegroupUpdate{ID: "u", Type: "VersionUpdate", Status: "InProgress", TemplateVersion: "3"}, "1 ami-1 ?"},
		"of its settings alone": {"UPDATING", observed.NodegroupUpdate{ID: "u", Type: "ConfigUpdate", Status: "InProgress"}, "1 ami-1 ?"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel()
			for _, image := range []string{"ami-1", "ami-2", "ami-3"} {
				converge(t, m, imageNow(testInput(pool), image))
			}
			for id, n := range m.state.Nodegroups {
				n.Template.Version, n.Status = "1", tt.status
				m.state.Nodegroups[id], m.state.Updates[id] = n, tt.update
			}
			in := governedWeb(imageNow(testInput(pool), "ami-3"))
			_, full := m.pass(t, in)
			state := *full.State
			state.Updates = m.state.Updates
			full.State = &state
			p, _ := Compute(full)
			if list := p.Governed(); len(list) != 1 || told(list[0]) != tt.want {
				t.Fatalf("%q and not %q: %+v %v", told(list[0]), tt.want, list, p.Diagnostics)
			}
		})
	}
}
