package page

import (
	"cmp"
	"slices"

	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/wording"
)

// FormField is the name of the form field that contains the form's token.
const FormField = "form"

// Viewer is the reader of a page, with the actions that the page offers.
type Viewer struct {
	// Name is empty for a reader without a login.
	Name string
	// Operate says that the page shows the forms that change something.
	Operate bool
	// Form is the token of each form. It proves that the form is from weir's own page.
	Form string
	// LogIn and LogOut say that the reader can log in or out.
	LogIn, LogOut bool
	// Said is the result of the last action.
	Said string
	// Holds lists the requested suspensions.
	Holds []Suspension
	// Approvals lists the valid approvals.
	Approvals []Approval
	// Accepts lists the sources for which weir may propose to keep values in AWS.
	Accepts []string
}

// Approval allows the plan of a target with the digest to run.
type Approval struct {
	Target, Digest string
	// Text names the user who gave it, and describes what has started because of it.
	Text string
}

// Suspension is a target, or one pool of it, whose changes are suspended.
type Suspension struct {
	Target string
	// Pool is namespace/name; empty for the whole target.
	Pool string
	// Text describes the suspension: its user, end and reason.
	Text string
}

// readBy sets the reader of the page, for every copy of the page's layout.
func (l layout) readBy(v Viewer) { *l.Viewer = v }

// actionsView contains the possible actions on a page about a target or a pool.
type actionsView struct {
	*Viewer
	Target, Pool string
	// Back is the path of the page itself.
	Back      string
	Suspended []Suspension
	Approved  []Approval
	// Digest is the digest of a plan that waits for an approval, or "". Approval describes the wait.
	Digest, Approval string
	// Windows describes the end of the waits for a window. It is empty if no step waits for a window.
	Windows string
	// Keep says that a pull request can keep the values that AWS has for the pool: it has drifted, and the
	// correction is held.
	Keep bool
	// Alone says that the page is about the plan only.
	Alone bool
}

// waits describes the waits of the steps in a target's last plan.
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

// approved returns the approvals of the target's plans.
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
