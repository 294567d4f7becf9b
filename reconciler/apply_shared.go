package reconciler

import (
	"context"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/refusals"
	"github.com/weir-gitops/weir/reconciler/step"
)

// independent reports whether the other steps of the turn continue even if this one fails: a
// version of a shared template does not matter to pools that want another one.
func independent(st step.Step) bool {
	_, makes := st.Do.(step.CreateLaunchTemplateVersion)
	return makes && st.LaunchConfig != ""
}

// one runs a step that parks alone.
func (s *Scope) one(ctx context.Context, r *plan.Report, i int, key refusals.Key, made step.Made) {
	st, out := r.Plan.Steps[i], &r.Outcomes[i]
	digest := requestOf([]step.Step{st})
	key.What = digest
	switch refused := s.refusals.Refused(key, digest, s.now()); {
	case refused != nil:
		out.Status, out.Err, out.Parked = refusedStatus(refused), refused, true
	case st.Later || ctx.Err() != nil || step.Unmade(step.WithTemplate(st.Do, made)):
		out.Status = step.Skipped
	default:
		if *out = s.do(ctx, r, st, made); out.Status != step.Done {
			out.Parked = out.Err != nil && s.refusals.Refuse(key, digest, out.Err, s.now())
		} else {
			s.refusals.Succeeded(key)
		}
	}
}
