package membership

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// Reports contains the published reports of targets. The owner of a target's scope publishes them, and all
// members read them.
type Reports struct {
	mirror  *coord.Mirror
	session func() *coord.Session
	log     *slog.Logger
	wake    func() // starts the outbox

	mu sync.Mutex
	// waiting contains the reports to publish, and published the last published report, by target. removed
	// contains the targets whose record must be removed.
	waiting   map[string]waitingReports
	published map[string]published
	removed   []string
	// read contains the versions of the records that Read returned last, by target.
	read map[string]readReport
}

// published is a report's content, see Reports.Publish, and the version of its record.
type published struct {
	same    []byte
	version int64
}

// waitingReports contains a target's reports to publish, in order. same is the content of the last one.
type waitingReports struct {
	lease   *coord.Lease
	reports []waitingReport
	same    []byte
}

// waitingReport is a report to publish. did says that its pass made changes. No later report shows them, so
// this report must not be skipped.
type waitingReport struct {
	data func() ([]byte, error)
	did  bool
}

// readReport is the version of a record, and the number of its newest report.
type readReport struct{ version, n int64 }

func newReports(mirror *coord.Mirror, session func() *coord.Session, log *slog.Logger, wake func()) *Reports {
	return &Reports{
		mirror: mirror, session: session, log: log, wake: wake,
		waiting: map[string]waitingReports{}, published: map[string]published{}, read: map[string]readReport{},
	}
}

// Publish sends a report to the other members, if it has changed. It does not block. It also sends a report
// if another member has changed the record since: a previous owner of the target may have written its last
// report late, or removed the record. same identifies the report's content, data returns its record, and
// did says that the pass made changes.
func (r *Reports) Publish(l *coord.Lease, target string, did bool, same []byte, data func() ([]byte, error)) {
	now := r.mirror.Snapshot().Get(reportKey(target) + "0").Version
	r.mu.Lock()
	waiting, last := r.waiting[target], r.published[target]
	if len(waiting.reports) == 0 && !did && bytes.Equal(last.same, same) && last.version == now {
		r.mu.Unlock()
		return
	}
	list := append(waiting.reports, waitingReport{data, did})
	r.waiting[target] = waitingReports{l, list[max(0, len(list)-keptReports):], same}
	r.mu.Unlock()
	r.wake()
}

// Remove removes the record of a removed target. It does not block.
func (r *Reports) Remove(target string) {
	r.mu.Lock()
	r.removed = append(r.removed, target)
	r.mu.Unlock()
	r.wake()
}

// send removes records, and publishes the waiting reports. It returns false if some must be sent again later.
func (r *Reports) send(ctx context.Context) (done bool) {
	r.mu.Lock()
	removed, targets := r.removed, slices.Collect(maps.Keys(r.waiting))
	r.removed = nil
	r.mu.Unlock()
	for _, target := range removed {
		r.remove(ctx, target)
	}
	done = true
	for _, target := range targets {
		done = r.publish(ctx, target) && done
	}
	return done
}

// flush publishes the waiting reports of a key that is about to be released. It forgets all published
// reports, because another member may publish other reports afterwards.
func (r *Reports) flush(l *coord.Lease) {
	r.mu.Lock()
	var targets []string
	for target, waiting := range r.waiting {
		if waiting.lease == l {
			targets = append(targets, target)
		}
	}
	clear(r.published)
	r.mu.Unlock()
	for _, target := range targets {
		r.publish(context.Background(), target)
	}
}

// publish publishes a target's waiting reports. It returns false if they must be sent again later, as long as this member is the owner.
func (r *Reports) publish(ctx context.Context, target string) (done bool) {
	r.mu.Lock()
	waiting, ok := r.waiting[target]
	delete(r.waiting, target)
	r.mu.Unlock()
	if !ok {
		return true
	}
	list := recordedReports(r.mirror.Snapshot(), target)
	for _, report := range waiting.reports {
		data, err := report.data()
		if err != nil {
			r.log.Error("cannot publish a report", "target", target, "error", err)
			return true
		}
		last := int64(0)
		if len(list) > 0 {
			last = list[len(list)-1].n
		}
		list = append(list, numbered{numberAfter(last), report.did, data})
	}
	data := pack(trim(list))
	if len(data) > mostBytes {
		r.log.Error("a report is too large for the engine, so other members show the previous one: split the target", "target", target, "bytes", len(data), "most", mostBytes)
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	version, err := waiting.lease.Write(ctx, reportOps(r.mirror.Snapshot(), target, data)...)
	if err != nil {
		r.log.Warn("cannot publish a report: other members show the previous one", "target", target, "error", err)
		if errors.Is(err, coord.ErrLost) {
			return true
		}
		r.putBack(target, waiting)
		return false
	}
	_ = r.mirror.Sync(ctx) // so that the next report is based on this one
	r.mu.Lock()
	r.published[target] = published{waiting.same, version}
	r.mu.Unlock()
	return true
}

// putBack puts waiting reports back, before reports that were added in between.
func (r *Reports) putBack(target string, waiting waitingReports) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now, newer := r.waiting[target]; newer {
		waiting = waitingReports{now.lease, append(waiting.reports, now.reports...), now.same}
	}
	waiting.reports = waiting.reports[max(0, len(waiting.reports)-keptReports):]
	r.waiting[target] = waiting
}

// remove deletes the report of a target that no longer exists. It ignores errors: each member deletes the
// record when it notices that the target is gone, and no member shows the report of an unknown target.
func (r *Reports) remove(ctx context.Context, target string) {
	var ops []coord.Op
	for _, record := range r.mirror.Snapshot().List(reportKey(target)) {
		ops = append(ops, coord.Op{Key: record.Key, Delete: true, If: record.Version})
	}
	if s := r.session(); s != nil && len(ops) > 0 {
		ctx, cancel := context.WithTimeout(ctx, writeWithin)
		defer cancel()
		_, _ = s.Write(ctx, coord.Write{Ops: ops})
	}
}

// Read calls take for the reports that were published since the last call, the newest of each target last.
func (r *Reports) Read(take func(target string, data []byte)) {
	now := r.mirror.Snapshot()
	seen := map[string]bool{}
	for _, first := range now.List(reportPrefix) {
		name, part, _ := strings.Cut(strings.TrimPrefix(first.Key, reportPrefix), "/")
		if part != "0" || len(first.Value) == 0 {
			continue
		}
		target, err := url.PathUnescape(name)
		if err != nil {
			continue
		}
		seen[target] = true
		r.mu.Lock()
		old := r.read[target]
		r.mu.Unlock()
		if old.version == first.Version {
			continue
		}
		for _, report := range recordedReports(now, target) {
			if report.n > old.n {
				take(target, report.data)
				old.n = report.n
			}
		}
		old.version = first.Version
		r.mu.Lock()
		r.read[target] = old
		r.mu.Unlock()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.read, func(target string, _ readReport) bool { return !seen[target] })
}

// ReadAll makes the next Read return all reports again.
func (r *Reports) ReadAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.read)
}
