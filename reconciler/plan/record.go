package plan

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// A record is a report in the form for other weirs: for the views of a target, for the targets that
// wait for it, and for its commit status and its pull request. It has no actions, so nobody can
// execute the plan of its writer from a record. It has no secrets. Its digest is the one of the
// original plan.

// recordFormat increases when an older weir would misread a record.
const recordFormat = 1

// longestRecord limits the bytes of an unpacked record.
const longestRecord = 32 << 20

// Each type below adds the fields that the JSON of the original type omits.
type (
	reportRecord struct {
		Format   int
		Report   bareReport
		Plan     *planRecord     `json:",omitempty"`
		Outcomes []outcomeRecord `json:",omitempty"`
		Err      *errorRecord    `json:",omitempty"`
		// Causes maps indexes in Report.Pools to FailureCauses.
		Causes map[int]string `json:",omitempty"`
	}
	bareReport Report
	barePlan   Plan
	planRecord struct {
		Plan      barePlan
		Digest    string
		Holding   Holding
		Behind    []string                       `json:",omitempty"`
		Reviewed  map[string]string              `json:",omitempty"`
		Resolved  map[string]model.ReviewedImage `json:",omitempty"`
		Later     []int                          `json:",omitempty"` // indexes of steps
		Allowed   []int                          `json:",omitempty"`
		FirstStep []int                          `json:",omitempty"`
	}
	outcomeRecord struct {
		// Step is the index of the outcome's step in the plan. Other is the step itself if it is
		// not in the plan.
		Step     int
		Other    *step.Step `json:",omitempty"`
		Status   step.OutcomeStatus
		Result   step.Result
		Err      *observed.Error `json:",omitempty"`
		Duration time.Duration   `json:",omitempty"`
		Parked   bool            `json:",omitempty"`
		Lift     string          `json:",omitempty"`
	}
	errorRecord struct {
		Text string
		Call *observed.Error `json:",omitempty"`
		// Is is the text of a cause that callers identify by its kind, without the text around it.
		Is string `json:",omitempty"`
	}
)

// kinds lists the texts of the errors that callers distinguish: an unreadable source, and the two
// ends of a context.
var kinds = []string{ErrSource.Error(), "context canceled", "context deadline exceeded"}

// RecordedError is a report's error as a record stores it.
type RecordedError struct {
	text, is string
	call     *observed.Error
}

// Error returns the text.
func (e *RecordedError) Error() string { return e.text }

// As returns the failed call.
func (e *RecordedError) As(target any) bool {
	call, ok := target.(**observed.Error)
	if ok = ok && e.call != nil; ok {
		*call = e.call
	}
	return ok
}

// Is reports whether the cause was target, by its text: a record contains no more of an error.
func (e *RecordedError) Is(target error) bool { return e.is != "" && target.Error() == e.is }

// kindOf returns the text of kinds that occurs in the chain of an error, "" for none.
func kindOf(err error) string {
	for ; err != nil; err = errors.Unwrap(err) {
		if text := err.Error(); slices.Contains(kinds, text) {
			return text
		}
	}
	return ""
}

func newErrorRecord(err error) *errorRecord {
	if err == nil {
		return nil
	}
	out := &errorRecord{Text: err.Error(), Is: kindOf(err)}
	if errors.As(err, &out.Call) {
		out.Call = bareCall(out.Call)
	}
	return out
}

func (e *errorRecord) err() error {
	if e == nil {
		return nil
	}
	return &RecordedError{e.Text, e.Is, e.Call}
}

// bareCall returns a copy without the cause, which repeats the message and may contain anything.
func bareCall(e *observed.Error) *observed.Error {
	if e == nil {
		return nil
	}
	out := *e
	out.Err = nil
	return &out
}

// Record returns r as a record for other weirs. redact makes the copy without secrets.
func (r *Report) Record(redact func(*Report) *Report) ([]byte, error) {
	data, err := json.Marshal(r.record(redact(r)))
	if err != nil {
		return nil, fmt.Errorf("record the report of %s: %w", r.Target, err)
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Same returns the content of a report without the time and the duration of its pass. If it is
// unchanged, other weirs need no new record.
func (r *Report) Same(redact func(*Report) *Report) ([]byte, error) {
	shown := *redact(r)
	shown.StartedAt, shown.Duration = time.Time{}, 0
	shown.Governed = slices.Clone(shown.Governed)
	for i := range shown.Governed { // only gates use the age of these reads
		if p := &shown.Governed[i]; !p.Watched {
			p.Facts.ReadAt, p.Facts.ActivitiesRead = time.Time{}, time.Time{}
		}
	}
	shown.Outcomes = slices.Clone(shown.Outcomes)
	for i := range shown.Outcomes {
		shown.Outcomes[i].Duration = 0
	}
	return json.Marshal(r.record(&shown))
}

// record returns the record of shown, a redacted copy of r. It adds the facts of r that the copy
// does not have.
func (r *Report) record(shown *Report) reportRecord {
	out := reportRecord{Format: recordFormat, Report: bareReport(*shown), Err: newErrorRecord(shown.Err)}
	out.Report.Plan, out.Report.Outcomes, out.Report.Err, out.Report.Milestones = nil, nil, nil, nil
	for i, p := range shown.Pools {
		if p.FailureCause != "" {
			if out.Causes == nil {
				out.Causes = map[int]string{}
			}
			out.Causes[i] = p.FailureCause
		}
	}
	if r.Plan != nil {
		p := &planRecord{
			Plan: barePlan(*shown.Plan), Digest: r.Plan.Digest(), Holding: r.Plan.Holding(), Reviewed: map[string]string{}, Resolved: r.Plan.resolved,
		}
		for i := range r.Plan.pools {
			one := &r.Plan.pools[i]
			if one.Behind {
				p.Behind = append(p.Behind, one.Key.String())
			}
			if one.Reviewed != "" {
				p.Reviewed[one.Key.String()] = one.Reviewed
			}
		}
		slices.Sort(p.Behind)
		for i, s := range shown.Plan.Steps {
			if s.Later {
				p.Later = append(p.Later, i)
			}
			if s.Allowed {
				p.Allowed = append(p.Allowed, i)
			}
			if s.First {
				p.FirstStep = append(p.FirstStep, i)
			}
		}
		out.Plan = p
	}
	for i, o := range shown.Outcomes {
		rec := outcomeRecord{Step: i, Status: o.Status, Result: o.Result, Err: bareCall(o.Err), Duration: o.Duration, Parked: o.Parked, Lift: o.Lift}
		if shown.Plan == nil || len(shown.Plan.Steps) != len(shown.Outcomes) {
			rec.Step, rec.Other = -1, &o.Step
		}
		out.Outcomes = append(out.Outcomes, rec)
	}
	return out
}

// ReadRecord returns the report of a record. It limits the size of the unpacked record, because the
// writer is not trusted.
func ReadRecord(data []byte) (*Report, error) {
	zipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("read a report: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(zipped, longestRecord+1))
	if err != nil {
		return nil, fmt.Errorf("read a report: %w", err)
	}
	if len(text) > longestRecord {
		return nil, fmt.Errorf("read a report: it has more than %d bytes", longestRecord)
	}
	var in reportRecord
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, fmt.Errorf("read a report: %w", err)
	}
	if in.Format != recordFormat {
		return nil, fmt.Errorf("read a report: it has format %d, this weir knows %d", in.Format, recordFormat)
	}
	for i := range in.Report.Pools {
		// Earlier weirs wrote numbers of instances here, without ids.
		p := &in.Report.Pools[i]
		p.Instances = slices.DeleteFunc(p.Instances, func(i Instance) bool { return i.ID == "" })
	}
	return in.report()
}

// pools returns the facts about pools in a record.
func (in *planRecord) pools() model.PoolPlans {
	set := &intent.Set{}
	for _, pool := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(in.Behind, slices.Collect(maps.Keys(in.Reviewed)))))) {
		var key intent.Key
		key.Namespace, key.Name, _ = strings.Cut(pool, "/")
		set.Pools = append(set.Pools, intent.Pool{Key: key})
	}
	out := model.NewPoolPlans(set)
	for i := range out {
		pool := out[i].Key.String()
		out[i].Behind, out[i].Reviewed = slices.Contains(in.Behind, pool), in.Reviewed[pool]
	}
	return out
}

// report rebuilds a report from its stored form, with the plan and the outcomes.
func (in *reportRecord) report() (*Report, error) {
	r := Report(in.Report)
	r.Err, r.Plan, r.Outcomes, r.Milestones = in.Err.err(), nil, nil, nil
	for i, cause := range in.Causes {
		if i >= 0 && i < len(r.Pools) {
			r.Pools[i].FailureCause = cause
		}
	}
	if in.Plan != nil {
		p := Plan(in.Plan.Plan)
		p.Digested, p.held, p.pools, p.resolved = in.Plan.Digest, &in.Plan.Holding, in.Plan.pools(), in.Plan.Resolved
		mark := func(at []int, set func(*step.Step)) {
			for _, i := range at {
				if i >= 0 && i < len(p.Steps) {
					set(&p.Steps[i])
				}
			}
		}
		mark(in.Plan.Later, func(s *step.Step) { s.Later = true })
		mark(in.Plan.Allowed, func(s *step.Step) { s.Allowed = true })
		mark(in.Plan.FirstStep, func(s *step.Step) { s.First = true })
		r.Plan = &p
	}
	for _, o := range in.Outcomes {
		out := step.Outcome{Status: o.Status, Result: o.Result, Err: o.Err, Duration: o.Duration, Parked: o.Parked, Lift: o.Lift}
		switch {
		case o.Other != nil:
			out.Step = *o.Other
		case r.Plan != nil && o.Step >= 0 && o.Step < len(r.Plan.Steps):
			out.Step = r.Plan.Steps[o.Step]
		default:
			return nil, errors.New("read a report: an outcome is of no step")
		}
		r.Outcomes = append(r.Outcomes, out)
	}
	return &r, nil
}
