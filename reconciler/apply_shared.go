package reconciler

import (
	"context"

	"github.com/weir-gitops/weir/reconciler/plan"
)

// apart reports whether the steps of its turn go on whatever becomes of a step: a
// version of a shared template is nothing to the pools that want another one.
func apart(st plan.Step) bool {
	_, makes := st.Do.(plan.CreateLaunchTemplateVersion)
	return makes && st.LaunchConfig != ""
}

// one runs a step that is parked by itself.
func (s *Scope) one(ctx context.Context, r *plan.Report, i int, key string, made plan.Made) {
	st, out := r.Plan.Steps[i], &r.Outcomes[i]
	digest := requestOf([]plan.Step{st})
	key += "\x00" + digest
	switch refused := s.refusal(key, digest); {
	case refused != nil:
		out.Status, out.Err, out.Parked = plan.Failed, refused, true
	case st.Later || ctx.Err() != nil || plan.Unmade(plan.WithTemplate(st.Do, made)):
		out.Status = plan.Skipped
	default:
		if *out = s.do(ctx, r, st, made); out.Status != plan.Done {
			out.Parked = out.Err != nil && s.park(key, digest, out.Err)
		} else {
			s.unpark(key)
		}
	}
}
