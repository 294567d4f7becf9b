package report

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
)

// A pull request as other weirs show it: what the page and the API show, without secrets, and nothing that anybody could do.

// pullFormat goes up when an older weir would misread a record.
const pullFormat = 1

// longestPull bounds what a record may hold when it is unpacked.
const longestPull = 64 << 20

type pullRecord struct {
	Format int
	Pull   Pull // without its reports
	// Reports are records of reports, and Rolls what each says of refreshes, by the place of the step.
	Reports [][]byte
	Rolls   []map[int]step.StartRefresh
}

// Record is p as other weirs show it, and what stands for its content but for the time of its plan. redact makes the copy that may be shown.
func (p Pull) Record(redact Redact) (data, same []byte, err error) {
	shown := redact.Pull(p.Lean())
	reports := shown.Reports
	shown.Reports = nil
	out := pullRecord{Format: pullFormat, Pull: shown}
	unchanged := out
	unchanged.Pull.PlannedAt = time.Time{}
	asIs := func(r *plan.Report) *plan.Report { return r }
	for _, r := range reports {
		record, err := r.Record(asIs)
		if err != nil {
			return nil, nil, err
		}
		part, err := r.Same(asIs)
		if err != nil {
			return nil, nil, err
		}
		rolls := map[int]step.StartRefresh{}
		if r.Plan != nil {
			for i, s := range r.Plan.Steps {
				if start, ok := s.Do.(step.StartRefresh); ok {
					rolls[i] = start
				}
			}
		}
		out.Reports, out.Rolls = append(out.Reports, record), append(out.Rolls, rolls)
		unchanged.Reports = append(unchanged.Reports, part)
	}
	if data, err = zipped(out); err != nil {
		return nil, nil, fmt.Errorf("record a pull request: %w", err)
	}
	same, err = json.Marshal(unchanged)
	return data, same, err
}

func zipped(v any) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		return nil, err
	}
	err := w.Close()
	return out.Bytes(), err
}

// ReadPull returns the pull request of a record. It bounds the size, because another member may
// have written the record.
func ReadPull(data []byte) (Pull, error) {
	unzip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return Pull{}, fmt.Errorf("read a pull request: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(unzip, longestPull+1))
	if err == nil && len(text) > longestPull {
		err = fmt.Errorf("it has more than %d bytes", longestPull)
	}
	var in pullRecord
	if err == nil {
		err = json.Unmarshal(text, &in)
	}
	if err == nil && in.Format != pullFormat {
		err = fmt.Errorf("it has format %d, this weir knows %d", in.Format, pullFormat)
	}
	if err != nil {
		return Pull{}, fmt.Errorf("read a pull request: %w", err)
	}
	p := in.Pull
	p.Reports = make([]*plan.Report, 0, len(in.Reports))
	for i, record := range in.Reports {
		r, err := plan.ReadRecord(record)
		if err != nil {
			return Pull{}, err
		}
		if r.Plan != nil && i < len(in.Rolls) {
			for at, start := range in.Rolls[i] {
				if at >= 0 && at < len(r.Plan.Steps) {
					r.Plan.Steps[at].Do = start
				}
			}
		}
		p.Reports = append(p.Reports, r)
	}
	return p, nil
}
