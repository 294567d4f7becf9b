package nodegroup

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
)

// EKS always rolls a whole nodegroup and cannot stop. So if a FleetRollout governs a nodegroup, it
// is rolled as a whole once that is permitted. If a change is stopped, weir reports the update in
// progress and the number of machines that it will still replace.

// wayOf returns how much of the pool may be rolled. The hash covers everything that an update or a
// replacement changes on its machines; sizes, labels and taints are not part of it.
func (c Planner) wayOf(w wantNodegroup) model.Way {
	return c.In.WayTo(w.pool, func() string {
		body := ""
		if w.hasTemplate {
			body = w.version.Body()
		}
		return w.hashOf(body)
	}, func() []rollout.Field {
		out := append(c.fields(w), c.Fields().UserDataFields(w.version)...)
		for _, t := range w.instanceTypes() {
			out = append(out, c.Fields().Field("nodegroup.instanceType"+rollout.List, "instanceType", t)) // records of earlier releases use this key
		}
		return out
	})
}

// fields returns the wanted configuration of the nodegroup's machines.
func (c Planner) fields(w wantNodegroup) (out []rollout.Field) {
	if w.hasTemplate {
		out = c.Fields().WantedFields(w.pool, w.version)
	}
	n := w.pool.Nodegroup
	version := ""
	if n.Version != "" {
		version = strconv.Itoa(model.MinorOf(n.Version))
	}
	return append(out, nodegroupValues{version, n.ReleaseVersion, w.role, n.CapacityType, n.AMIType, accessText(w.access), n.DiskSize, w.writtenSubnets(), w.instanceTypes()}.fields(c.Fields())...)
}

// nodegroupValues contains the values of a nodegroup outside its launch template.
type nodegroupValues struct {
	version, release, role, capacity, ami, access string
	disk                                          int32
	subnets, types                                []string
}

// fields returns the values as fields of a rollout, so that it recognizes a stopped change. Empty
// values have no field.
func (v nodegroupValues) fields(of template.Fields) (out []rollout.Field) {
	add := func(name, value string) {
		if value != "" {
			out = append(out, of.Field("nodegroup."+name, name, value))
		}
	}
	add("version", v.version)
	add("amiVersion", v.release)
	add("roleName", v.role)
	add("capacityType", v.capacity)
	add("amiType", v.ami)
	add("remoteAccess", v.access)
	if v.disk != 0 {
		add("diskSize", strconv.Itoa(int(v.disk)))
	}
	for _, s := range v.subnets {
		out = append(out, of.Field("nodegroup.subnetIDs"+rollout.List, "subnetIDs", s))
	}
	for _, t := range v.types {
		out = append(out, of.InstanceType("instanceType", t))
	}
	return out
}

// change returns the differences between a nodegroup and its desired state. A member that Git
// leaves to EKS never differs.
func (c Planner) change(w wantNodegroup, have observed.Nodegroup) []rollout.Field {
	wanted := c.fields(w)
	from := nodegroupValues{strconv.Itoa(model.MinorOf(have.Version)), have.ReleaseVersion, have.NodeRole, have.CapacityType, have.AMIType, accessText(have.RemoteAccess), have.DiskSize, have.SubnetIDs, have.InstanceTypes}.fields(c.Fields())
	from = slices.DeleteFunc(from, func(f rollout.Field) bool {
		return !slices.ContainsFunc(wanted, func(o rollout.Field) bool { return o.Key == f.Key })
	})
	t := c.In.State.Templates[have.Template.Name]
	if have.Template.ID != "" {
		if w.version.Found && w.version.Template.ID == have.Template.ID {
			t = w.version.Template
		}
		t.Name = have.Template.Name
		from = append(from, c.Fields().FieldsOf(w.pool, t, model.VersionOf(t, have.Template))...)
	}
	if out := rollout.Difference(from, wanted); len(out) > 0 {
		return out
	}
	return c.Fields().UserDataChange(w.version, t, model.VersionOf(t, have.Template))
}

// hashOf returns the hash of the desired state with the given content of the launch template.
func (w wantNodegroup) hashOf(body string) string {
	n := w.pool.Nodegroup
	return content.ShortHash([]byte(body), content.Canonical([]any{n.Version, n.ReleaseVersion, w.immutableFields()}))
}

// allowed returns steps that replace machines, held until the whole nodegroup may be rolled.
func (c Planner) allowed(w wantNodegroup, steps []step.Step) []step.Step {
	way := c.wayOf(w)
	if way.Share() >= 100 {
		return steps
	}
	for i := range steps {
		steps[i] = way.Hold(steps[i])
	}
	return steps
}

// reportGoverned records the state of a governed pool, once its steps are planned.
func (c Planner) reportGoverned(w wantNodegroup, standing []observed.Nodegroup) {
	way := c.wayOf(w)
	if !way.Governed {
		return
	}
	pending := slices.ContainsFunc(c.Steps, func(s step.Step) bool { return s.Verb == step.Rollout || s.Verb == step.Replace })
	moving := moving(c.In, w, way, standing)
	// After a failed update no step is planned, and EKS returns to the old values.
	fresh := !pending && moving == nil && (len(standing) == 0 || w.runs(standing[0]))
	p := way.Report(*c.In, w.pool, c.In.InstancesOf(w.pool), func(observed.Instance) bool { return fresh })
	p.Whole, p.Pending, p.Moving = true, pending || moving != nil, moving
	if len(standing) > 0 {
		p.Machines = standing[0].DesiredSize
		if p.Pending {
			p.Change = c.change(w, standing[0])
		}
		if before := earlier(c.In, w, standing[0]); len(before) > 0 {
			p.Earlier, p.Others = &before[0], before[1:]
		}
	}
	if i := slices.IndexFunc(c.Diags, func(d diag.Diagnostic) bool {
		return d.Code == "nodegroup-update-failed" || d.Code == "nodegroup-failed"
	}); i >= 0 {
		p.Failed = c.Diags[i].Summary
	}
	c.Pool.Governed = &p
	if pending && moving == nil {
		c.noteSize(w, p)
	}
	if !way.Stopped() {
		return
	}
	text := "the nodegroup " + w.pool.Nodegroup.Name + " " + way.Wait()
	if moving != nil {
		text += "; the update " + cmp.Or(moving.ID, "that is under way") + " cannot be cancelled: it will still replace up to " + strconv.Itoa(int(moving.Left)) + " machines"
	}
	c.Note(diag.Warning, w.pool, nil, "rollout-stopped", text, "")
	c.Pool.Outstands("Warning", "RolloutStopped", text)
	c.Pool.Fails("rollout-stopped", "rollout-stopped")
}

// runs reports whether a nodegroup has the wanted configuration for its machines.
func (w wantNodegroup) runs(have observed.Nodegroup) bool {
	if w.hasTemplate && !w.version.Resolves(have.Template) {
		return false
	}
	n := w.pool.Nodegroup
	return w.hasImage || (n.Version == "" || model.MinorOf(n.Version) == model.MinorOf(have.Version)) && (n.ReleaseVersion == "" || n.ReleaseVersion == have.ReleaseVersion)
}

// earlier returns the versions of the launch template that a nodegroup has, or receives by an
// update that nobody can stop, except the wanted version.
func earlier(in *model.Input, w wantNodegroup, n observed.Nodegroup) (out []rollout.Version) {
	if !w.hasTemplate {
		return nil
	}
	t := w.version.Template
	for _, ref := range slices.Backward(in.NodegroupInUse(n)) {
		number := model.VersionOf(t, ref)
		if number == 0 || number == w.version.Number || slices.ContainsFunc(out, func(v rollout.Version) bool { return v.Number == number }) {
			continue
		}
		v := rollout.Version{Template: t.Name, Number: number, Pin: w.version.PinTo(w.pool, t, number)}
		if body := w.version.BodyOf(t, number); body != "" {
			v.Hash = w.hashOf(body)
		}
		out = append(out, v)
	}
	return out
}

// noteSize warns of a nodegroup that is rolled at once although a FleetRollout would roll a group
// of its size in shares.
func (c Planner) noteSize(w wantNodegroup, p rollout.Pool) {
	for _, f := range c.In.Set.Rollouts {
		if !rollout.Selects(f.Selector, p) {
			continue
		}
		first := int32(100)
		for _, wave := range f.Waves {
			if len(wave.Shares) > 0 {
				first = min(first, wave.Shares[0])
			}
		}
		if need := rollout.Need(p.Machines, first); need < p.Machines {
			c.Note(diag.Warning, w.pool, nil, "nodegroup-too-large", "EKS rolls the "+strconv.Itoa(int(p.Machines))+" machines of the nodegroup "+w.pool.Nodegroup.Name+
				" from one end to the other; of a group of that size "+f.Key.String()+" would let "+strconv.Itoa(int(need))+" go first", "")
			return
		}
	}
}

// moving returns EKS's current work on the pool's machines, nil for none. EKS's status of a
// nodegroup does not show the progress.
func moving(in *model.Input, w wantNodegroup, way model.Way, standing []observed.Nodegroup) *rollout.Move {
	for _, n := range standing {
		beside := len(standing) > 1 && (n.Status == "CREATING" || n.Status == "DELETING")
		if n.Status != "UPDATING" && !beside {
			continue
		}
		u := in.State.Updates[n.NodegroupName]
		if n.Status == "UPDATING" && u.Status == "InProgress" && u.Type == "ConfigUpdate" {
			continue
		}
		m := &rollout.Move{Share: 100, Left: n.DesiredSize}
		if started, tried := in.Memory.Started[n.NodegroupName]; tried {
			if m.ID = started.UpdateID; started.Fingerprint == w.fingerprint() {
				m.Hash = way.Hash
			}
		}
		if u.Status == "InProgress" {
			m.ID, m.Since = u.ID, u.CreatedAt
		}
		return m
	}
	return nil
}
