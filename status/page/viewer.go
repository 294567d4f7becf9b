package page

import (
	"cmp"
	"slices"

	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/wording"
)

// FormField is the field of every form that holds its token.
const FormField = "form"

// Viewer is the reader of a page, and what the page offers them.
type Viewer struct {
	// Name is empty without a login.
	Name string
	// Operate says that the page shows the forms that change something.
	Operate bool
	// Form is part of each form, and proves that it is from weir's own page.
	Form string
	// LogIn and LogOut say that there is something to log in to, or out of.
	LogIn, LogOut bool
	// Said is the result of the last action.
	Said string
	// Holds lists the suspensions that people have requested.
	Holds []Suspension
	// Approvals lists the approvals in force.
	Approvals []Approval
	// Accepts are the sources for which weir may propose to keep what AWS has.
	Accepts []string
}

// Approval lets the plan of a target run that has the digest.
type Approval struct {
	Target, Digest string
	// Text says who gave it, and what of it has begun.
	Text string
}

// Suspension is a target, or one pool of it, that is kept as it is for a while.
type Suspension struct {
	Target string
	// Pool is namespace/name; empty for the whole target.
	Pool string
	// Text says who suspended it, until when and why.
	Text string
}

// readBy fills in who reads the page, for every copy of a page's layout.
func (l layout) readBy(v Viewer) { *l.Viewer = v }

// actionsView holds the possible actions on a page about a target or a pool.
type actionsView struct {
	*Viewer
	Target, Pool string
	// Back is the page itself.
	Back      string
	Suspended []Suspension
	Approved  []Approval
	// Digest is the digest of a plan that waits for an approval, or ""; Approval says what it waits
	// for.
	Digest, Approval string
	// Windows says until when steps wait for a window, empty where none does.
	Windows string
	// Keep says that a pull request can keep what AWS has of the pool: it has drifted, and
	// something holds that.
	Keep bool
	// Alone says that the plan is all that the page is about.
	Alone bool
}

// waits holds what the steps of a target's last plan wait for.
type waits struct{ digest, approval, window string }

func waitsOf(t current.TargetState) (w waits) {
	if t.Last == nil || t.Last.Plan == nil {
		return w
	}
	for _, wait := range wording.WaitsOf(t.Name, t.Last.Plan.Steps) {
		switch wait.Hold {
		case step.HeldApproval, step.HeldPruneLimit, step.HeldPreflight:
			w.digest, w.approval = t.Last.Plan.Digest(), cmp.Or(w.approval, wait.Text()+".")
		case step.HeldWindow:
			w.window = cmp.Or(w.window, wait.Text()+".")
		}
	}
	return w
}

// suspended returns the suspensions of the target, and of a pool if one is named.
func (v *Viewer) suspended(target, pool string) (out []Suspension) {
	for _, s := range v.Holds {
		if s.Target == "" || s.Target == target && (pool == "" || s.Pool == "" || s.Pool == pool) {
			out = append(out, s)
		}
	}
	return out
}

// approved are the approvals of the target's plans.
func (v *Viewer) approved(target string) []Approval {
	return slices.DeleteFunc(slices.Clone(v.Approvals), func(a Approval) bool { return a.Target != target })
}

// Actions returns the possible actions on the target.
func (p targetPage) Actions() actionsView {
	return actionsView{
		Viewer: p.Viewer, Target: p.Name, Back: targetLink(p.Name), Suspended: p.Viewer.suspended(p.Name, ""), Digest: p.waits.digest, Approval: p.waits.approval, Windows: p.waits.window,
		Approved: p.Viewer.approved(p.Name),
	}
}

// Actions returns the possible actions on the pool.
func (p poolPage) Actions() actionsView {
	key := p.Namespace + "/" + p.Name
	v := actionsView{Viewer: p.Viewer, Target: p.Target, Pool: key, Back: keyLink(p.Target, key), Suspended: p.Viewer.suspended(p.Target, key)}
	v.Keep = v.Operate && p.Drift && (p.held || len(v.Suspended) > 0) && slices.Contains(v.Accepts, p.source)
	return v
}

// Actions returns the possible actions on the plan.
func (p planPage) Actions() actionsView {
	return actionsView{Viewer: p.Viewer, Target: p.Target, Back: targetLink(p.Target) + "/plan", Digest: p.waits.digest, Approval: p.waits.approval, Windows: p.waits.window, Alone: true, Approved: p.Viewer.approved(p.Target)}
}

// Actions returns the possible actions on the pull request's plan.
func (p pullPage) Actions() actionsView {
	v := actionsView{Viewer: p.Viewer, Back: p.Link, Alone: true}
	if p.WantApproval && v.Operate {
		v.Digest, v.Approval = p.Digest, "The plan waits for "+step.WaitOf(step.HeldApproval).For+"."
	}
	return v
}
