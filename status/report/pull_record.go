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

// This file stores a pull request for other members. A record contains what the page and the API show,
// without secrets and without actions.

// pullFormat is increased when an older weir would misread a record.
const pullFormat = 1

// longestPull is the maximum size of an unpacked record in bytes.
const longestPull = 64 << 20

type pullRecord struct {
	Format int
	Pull   Pull // without its reports
	// Reports are records of reports. Rolls has the instance refreshes of each report, by the index of the
	// step.
	Reports [][]byte
	Rolls   []map[int]step.StartRefresh
}

// Record returns p as other members show it. same is equal for two records that differ only in the time of
// the plan. redact removes secrets.
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

// ReadPull returns the pull request in a record. It bounds the size, because another member may have
// written the record.
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
