package nodegroup

import (
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// versionSteps plans UpdateNodegroupVersion. One call contains everything that it can, so that a
// commit rolls the nodes once: the template version, the Kubernetes version (one minor at a time),
// and the release version if Git pins one. EKS takes the newest release if a call names none, so
// the call always names a pinned one. A Kubernetes version above the control plane's becomes a
// separate held step, so nothing else waits for it.
func (c Planner) versionSteps(w wantNodegroup, have observed.Nodegroup) (steps []step.Step) {
	pool, n := w.pool, w.pool.Nodegroup
	u := step.UpdateNodegroupVersion{NodegroupName: have.NodegroupName, Force: n.Force}
	var changes []step.Change
	var waiting []step.Step
	if w.hasTemplate && !w.version.Resolves(have.Template) {
		u.Template = &w.version.Ref
		changes = append(changes, template.VersionChanges(pool, have.Template, w.version)...)
	}
	if !w.hasImage { // an image in the template decides the versions
		next, ok := c.nextVersion(w, have)
		if !ok {
			return nil
		}
		last := n.Version == "" || next == "" || model.MinorOf(next) == model.MinorOf(n.Version)
		if next != "" && model.MinorOf(next) > model.MinorOf(w.cluster.Version) {
			waiting = append(waiting, c.awaitVersion(w, have, next))
			next, last, u.ReleaseVersion = "", false, have.ReleaseVersion
		}
		// If a call names no version, EKS uses the control plane's.
		// Assumed of AWS: unchanged-version-is-taken.
		u.Version = have.Version
		if next != "" {
			u.Version = next
			changes = append(changes, versionChange(pool, have.Version, next))
		}
		if n.ReleaseVersion != "" && last {
			if n.ReleaseVersion != have.ReleaseVersion {
				changes = append(changes, model.InfraChange(pool, "amiVersion", model.OrNil(have.ReleaseVersion), n.ReleaseVersion))
			}
			u.ReleaseVersion = n.ReleaseVersion
		}
	}
	if len(changes) == 0 {
		return waiting
	}
	if n.ReleaseVersion == "" {
		u.ReleaseVersion = ""
	}
	why := model.Reason(changes)
	if u.ReleaseVersion != "" && u.ReleaseVersion == have.ReleaseVersion {
		// The release version stays. Without it in the call, EKS would take the newest.
		changes = append(changes, model.InfraChange(pool, "amiVersion", have.ReleaseVersion, u.ReleaseVersion))
	}
	if u.Force {
		changes = append(changes, optionsChange(pool, "force", nil, true))
	}
	return append([]step.Step{{Verb: step.Rollout, Resource: step.ManagedNodegroup, Name: have.Name, Reason: why, Disruptive: have.DesiredSize > 0,
		Instances: int(have.DesiredSize), Changes: changes, Do: u, Fingerprint: w.fingerprint(), Rollout: w.updated(u), Toward: w.toward()}}, waiting...)
}

// awaitVersion returns the held step to a Kubernetes version that the control plane has not
// reached. Other changes are planned afterwards.
func (c Planner) awaitVersion(w wantNodegroup, have observed.Nodegroup, next string) step.Step {
	why := "the control plane is on Kubernetes " + w.cluster.Version
	c.Note(diag.Info, w.pool, nil, "waits-for-control-plane",
		"the nodegroup "+have.Name+" stays on Kubernetes "+have.Version+" until the control plane, which is on "+w.cluster.Version+", has reached "+next, "")
	return step.Step{Verb: step.Rollout, Resource: step.ManagedNodegroup, Name: have.Name, Reason: "version differs", Disruptive: have.DesiredSize > 0, Instances: int(have.DesiredSize),
		Changes: []step.Change{versionChange(w.pool, have.Version, next)}, Held: step.HeldControlPlane, HeldReason: why,
		Do: step.UpdateNodegroupVersion{NodegroupName: have.NodegroupName, Force: w.pool.Nodegroup.Force, Version: next}, Fingerprint: w.fingerprint(), Toward: w.toward()}
}

// nextVersion returns the next Kubernetes version to update to, "" for no update. ok is false if
// EKS does not support the wanted update.
func (c Planner) nextVersion(w wantNodegroup, have observed.Nodegroup) (next string, ok bool) {
	pool, n := w.pool, w.pool.Nodegroup
	switch wanted, has := model.MinorOf(n.Version), model.MinorOf(have.Version); {
	case n.Version == "" || wanted == has:
		return "", true
	case wanted < has:
		c.Note(diag.Error, pool, nil, "nodegroup-downgrade", "EKS cannot take the nodegroup "+have.Name+" from Kubernetes "+have.Version+" back to "+n.Version,
			"write "+have.Version+" in spec.template.spec.version of the MachinePool")
		return "", false
	}
	return nextMinor(have.Version), true
}

func versionChange(pool *intent.Pool, from, to any) step.Change {
	return step.Change{Field: "version", From: from, To: to, Object: pool.MachinePool, Path: intent.Path{"spec", "template", "spec", "version"}}
}

func nextMinor(version string) string {
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	return major + "." + strconv.Itoa(model.MinorOf(version)+1)
}
