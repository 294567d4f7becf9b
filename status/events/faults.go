package events

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/status/events/kinds"
	"github.com/weir-gitops/weir/status/report"
)

func resourceOf(p plan.PoolStatus) step.Resource {
	if p.Kind == intent.NodegroupPool {
		return step.ManagedNodegroup
	}
	return step.AutoScalingGroup
}

// OwnerPool returns the owner of a step in a form for readers.
func OwnerPool(s step.Step) string {
	if s.Pool == "" {
		return s.LaunchConfig
	}
	return s.Pool
}

// plainOwner converts the result of Step.Owner to a form for readers.
func plainOwner(owner string) string {
	if i := strings.LastIndex(owner, " "); i >= 0 {
		return owner[i+1:]
	}
	return owner
}

// ObjectPool returns the namespace/name of the pool that a diagnostic's object ("Kind namespace/name")
// refers to, empty if the report has no such pool.
func ObjectPool(r *plan.Report, object string) string {
	_, key, ok := strings.Cut(object, " ")
	if ok && slices.ContainsFunc(r.Pools, func(p plan.PoolStatus) bool { return report.PoolKey(p) == key }) {
		return key
	}
	return ""
}

// targetFault returns the fault of a target, without the faults that have an event of their own. The keys
// stay the same as long as the fault does, even if AWS puts a different number into each error message.
func targetFault(r *plan.Report) (text string, keys []string) {
	if r.Err != nil {
		return r.Err.Error(), []string{errorKey(r.Err)}
	}
	var first *diag.Diagnostic
	for i, d := range r.Diagnostics {
		if d.Severity != diag.Error || kinds.Findings[d.Code] != "" || poolFails(r, d.Code) {
			continue
		}
		if first == nil {
			first = &r.Diagnostics[i]
		}
		keys = append(keys, d.Code+" "+d.Object+" "+d.Position.String())
	}
	if first == nil {
		return "", nil
	}
	return report.AndMore(report.DiagnosticWords(*first), len(keys)-1), keys
}

// poolFails reports whether the failure of a pool already reports a diagnostic.
func poolFails(r *plan.Report, code string) bool {
	return slices.ContainsFunc(r.Pools, func(p plan.PoolStatus) bool { return p.FailureReason == code })
}

// ofAccount lists the kinds of errors that affect all calls of an account at the same time. Calls run in
// parallel, so the call that fails first varies.
var ofAccount = []observed.ErrorKind{observed.Transient, observed.Throttled, observed.Credentials}

func errorKey(err error) string {
	var call *observed.Error
	switch {
	case errors.As(err, &call) && slices.Contains(ofAccount, call.Kind):
		return string(call.Kind)
	case errors.As(err, &call):
		return call.Service + ":" + call.Operation + ":" + call.Code
	case errors.Is(err, plan.ErrSource):
		return SourceCause
	default:
		return err.Error()
	}
}

// failureKey identifies a failed step as long as it fails in the same way.
func failureKey(o step.Outcome) string {
	key := string(o.Step.Verb) + " " + string(o.Step.Resource) + " " + o.Step.Name
	if o.Err != nil {
		key += " " + o.Err.Operation + " " + o.Err.Code
	}
	return key
}

// ShortHash returns a hash to store instead of a long text.
func ShortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
